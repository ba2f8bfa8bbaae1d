"""The node's network around a node cache's server, with fakes of the reconciler and the self-check."""

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.exposition_samples import only, scraped
from tests.support.node_cache_template import ENVIRONMENT, node_flags
from topodns.hostnet.reconciler import HostNetworkCounts
from topodns.hostnet.rules import Firewall, HostNetwork
from topodns.metrics.registry import Reading
from topodns.nodecache.corefile import NodeCorefile
from topodns.nodecache.network import NodeNetwork, node_readings
from topodns.plugins.forward.upstreams import ForwardCounts
from topodns.plugins.setup import Shared

MANUAL = (Path(__file__).parents[3] / "docs/operate/node-cache.md").read_text(encoding="utf-8")
METRIC_ROW = re.compile(r"^\| `((?:coredns|topodns)_nodecache_\w+)` \| (\w+) \| ([^|]*)\|", re.MULTILINE)


class FakeSelfCheck:
    """A self-check with fixed results."""

    def __init__(self, answered: bool = False, successor: bool = False) -> None:
        self.is_answered, self.successor = answered, successor

    async def answered(self) -> bool:
        return self.is_answered

    async def has_successor(self) -> bool:
        return self.successor


class FakeReconciler(SimpleNamespace):
    """Counts renewals and announcements, and keeps the argument of `release`."""

    def __init__(self, has_begun: bool = True) -> None:
        super().__init__(counts=HostNetworkCounts(), has_begun=has_begun, renewals=0, announcements=0, is_on=False)
        self.has_successor: bool | None = None
        self.instance_registry = SimpleNamespace(announce=self.announce)

    def is_redirecting(self) -> bool:
        return bool(self.is_on)

    def renew(self) -> None:
        self.renewals += 1
        self.is_on = True

    def announce(self) -> None:
        self.announcements += 1

    async def release(self, has_successor: bool) -> None:
        self.has_successor = has_successor


def network(
    directory: Path, monkeypatch: pytest.MonkeyPatch, reconciler: SimpleNamespace, *arguments: str
) -> NodeNetwork:
    monkeypatch.setattr("topodns.nodecache.network.HostNetworkReconciler", lambda *_: reconciler)
    flags = node_flags(directory, *arguments)
    made = NodeNetwork(flags, NodeCorefile(flags, ENVIRONMENT))
    made.use_network(HostNetwork(flags.local_ips, 53, 8080, "nodelocaldns", flags.setup_interface, Firewall.NONE))
    return made


def test_every_metric_of_a_node_is_in_the_manual_with_its_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reconciler = SimpleNamespace(counts=HostNetworkCounts(), is_redirecting=lambda: False)
    published = {}
    for reading in network(tmp_path, monkeypatch, reconciler).readings(Shared()):
        assert isinstance(reading, Reading)
        name = f"{reading.name}_total" if reading.kind == "counter" else reading.name
        published[name] = (reading.kind, list(reading.labels))
    assert {name: (kind, labels.split()) for name, kind, labels in METRIC_ROW.findall(MANUAL)} == published


@pytest.mark.parametrize(
    ("arguments", "link", "rules", "on", "waits_for"),
    [
        ([], False, False, False, ["the link", "the rules", "the answers to its self-probes"]),
        ([], True, False, False, ["the rules", "the answers to its self-probes"]),
        ([], True, True, False, ["the answers to its self-probes"]),
        ([], True, True, True, []),
        ([], False, True, True, ["the link"]),
        (["-setupinterface=false"], False, True, True, []),
    ],
)
def test_readiness_needs_link_rules_and_an_answer_to_the_probe(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    link: bool,
    rules: bool,
    on: bool,
    waits_for: list[str],
) -> None:
    reconciler = SimpleNamespace(counts=HostNetworkCounts(link, rules), is_redirecting=lambda: on)
    waiting = network(tmp_path, monkeypatch, reconciler, *arguments).waits_for()
    assert list(waiting) == [f"node-cache: waiting for {what}" for what in waits_for]


@pytest.mark.parametrize(("answered", "renewals"), [(True, 5), (False, 0)])
def test_the_redirect_is_renewed_and_the_instance_announced_while_the_self_check_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answered: bool, renewals: int
) -> None:
    reconciler = FakeReconciler()
    monkeypatch.setattr("topodns.nodecache.network.SelfCheck", lambda *_: FakeSelfCheck(answered=answered))
    node_network = network(tmp_path, monkeypatch, reconciler)

    async def renew() -> None:
        for _ in range(5):
            await node_network.renew()

    asyncio.run(renew())
    assert (reconciler.renewals, reconciler.announcements) == (renewals, renewals)


def test_where_another_program_redirects_no_self_probe_is_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As a CiliumLocalRedirectPolicy does, to a Pod that has none of the addresses."""
    caplog.set_level("INFO")
    reconciler = FakeReconciler()
    reconciler.counts = HostNetworkCounts(link_present=False, rules_present=True)
    monkeypatch.setattr("topodns.nodecache.network.SelfCheck", lambda *_: FakeSelfCheck(answered=False))
    node_network = network(tmp_path, monkeypatch, reconciler, "-setupinterface=false")

    async def renew() -> None:
        for _ in range(3):
            await node_network.renew()

    asyncio.run(renew())
    assert (reconciler.renewals, reconciler.announcements, list(node_network.waits_for())) == (3, 3, [])
    assert caplog.messages == [
        "node-cache: this instance makes no link and no rules: another program redirects DNS to it"
    ]


def test_a_redirect_that_goes_on_or_off_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    reconciler, check = FakeReconciler(), FakeSelfCheck(answered=True)
    monkeypatch.setattr("topodns.nodecache.network.SelfCheck", lambda *_: check)
    node_network = network(tmp_path, monkeypatch, reconciler)

    async def renew() -> None:
        for answers in (True, True, False, False):
            check.is_answered, reconciler.is_on = answers, False
            await node_network.renew()

    asyncio.run(renew())
    assert caplog.messages == [
        "node-cache: self-probes are answered: DNS of this node is redirected to this node cache",
        "node-cache: no answers to self-probes: DNS of this node goes to the cluster DNS",
    ]


@pytest.mark.parametrize(
    ("has_begun", "successor", "has_successor"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_everything_is_left_to_a_successor_unless_this_instance_has_changed_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_begun: bool, successor: bool, has_successor: bool
) -> None:
    reconciler = FakeReconciler(has_begun)
    monkeypatch.setattr("topodns.nodecache.network.SelfCheck", lambda *_: FakeSelfCheck(successor=successor))
    asyncio.run(network(tmp_path, monkeypatch, reconciler).before_drain())
    assert reconciler.has_successor is has_successor


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
