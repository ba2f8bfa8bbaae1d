"""Metrics of a node cache: its node's network, its configuration and its upstreams."""

from types import SimpleNamespace
from typing import Any

from tests.support.exposition_samples import only, scraped
from topodns.hostnet.reconciler import HostNetworkCounts
from topodns.nodecache.metrics import node_readings
from topodns.plugins.forward.upstreams import ForwardCounts


def samples(counts: HostNetworkCounts, forward: ForwardCounts, setup_errors: int = 0) -> dict[str, float]:
    reconciler: Any = SimpleNamespace(counts=counts, is_redirecting=lambda: True, port_sockets=lambda: {"dnsmasq": 2})
    watch: Any = SimpleNamespace(setup_errors=setup_errors, accepted_at=7.0, in_force=False)
    return scraped(readings=node_readings(reconciler, watch, forward))


def test_errors_have_the_types_of_nodelocal_dnscache_from_the_start() -> None:
    counts = HostNetworkCounts()
    counts.errors["route"] += 3
    assert only(samples(counts, ForwardCounts(), setup_errors=2), "coredns_nodecache_setup_errors_total") == {
        '{errortype="configmap"}': 2,
        '{errortype="interface_add"}': 0,
        '{errortype="interface_check"}': 0,
        '{errortype="iptables"}': 0,
        '{errortype="iptables_lock"}': 0,
        '{errortype="route"}': 3,
    }


def test_the_network_of_the_node_is_described() -> None:
    counts = HostNetworkCounts(link_present=True)
    counts.repaired["rules"] += 4
    found = samples(counts, ForwardCounts())
    name = "topodns_nodecache_"
    assert (found[f"{name}link_present"], found[f"{name}rules_present"], found[f"{name}switched_on"]) == (1, 0, 1)
    assert only(found, f"{name}repairs_total") == {'{what="link"}': 0, '{what="rules"}': 4}
    assert only(found, f"{name}port_sockets") == {'{holder="dnsmasq"}': 2}
    assert (found[f"{name}config_timestamp_seconds"], found[f"{name}config_in_force"]) == (7, 0)


def test_an_upstream_is_shown_once_it_is_known_whether_it_can_be_reached() -> None:
    forward = ForwardCounts()
    for name, reachable in (("10.0.0.1:53", True), ("10.0.0.2:53", False), ("10.0.0.3:53", None)):
        forward.upstream(name).reachable = reachable
    found = only(samples(HostNetworkCounts(), forward), "topodns_nodecache_upstream_reachable")
    assert found == {'{to="10.0.0.1:53"}': 1, '{to="10.0.0.2:53"}': 0}
