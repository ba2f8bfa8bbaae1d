"""The answers that a Pod gets through the node cache of its node, and the part of them that other processes see."""

from pathlib import Path

import pytest

from tests.support.namespaced_cluster import LISTENED, SERVERS, UPSTREAM_SERVICE, NodeScene, node_scene
from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL, Namespace
from tests.support.node_processes import HEADLESS, READY, cluster_dns, dig, node_cache
from tests.support.packet_capture import tapped
from tests.support.stub_resolver_load import asking

FIREWALLS = pytest.mark.parametrize("firewall", ["nftables", "iptables"])
WEB = ["10.96.10.20"]  # shop/web
EVERYWHERE = ["127.10.1.30", "127.10.2.30", "127.10.4.30"]  # all that is ready of shop/cache


def asked_everywhere(where: Namespace) -> set[tuple[str, ...]]:
    return {tuple(dig(where, address, READY, more)) for address in LISTENED for more in ("+notcp", "+tcp")}


@FIREWALLS
@pytest.mark.usefixtures("servers")
def test_no_question_at_a_listen_address_is_tracked_from_a_pod_or_from_the_node_itself(
    cluster: NodeScene, tmp_path: Path, firewall: str
) -> None:
    node = cluster.node
    with node_cache(node, tmp_path, firewall) as cache:
        for where in (cluster.pod, node.namespace):
            node.forget_tracked()
            assert asked_everywhere(where) == {tuple(WEB)}
            assert [address for address in LISTENED if node.is_tracked(address)] == []
        assert node.is_tracked(UPSTREAM_SERVICE[4])  # what the cache asks itself
        assert cache.stop() == 0
        for address in CLUSTER_DNS.values():
            for where in (cluster.pod, node.namespace):
                node.forget_tracked()
                assert dig(where, address, READY) == WEB
                assert node.is_tracked(address)


@FIREWALLS
@pytest.mark.usefixtures("servers")
def test_replies_leave_from_the_address_that_was_asked(cluster: NodeScene, tmp_path: Path, firewall: str) -> None:
    """`dig` and the load's sockets, which are connected, take a reply from nowhere else."""
    with (
        node_cache(cluster.node, tmp_path, firewall),
        asking(cluster.node.pods[1], LISTENED, 200, tcp_every=5) as of_a_pod,
        asking(cluster.node.namespace, LISTENED, 200, tcp_every=5) as of_the_node,
    ):
        for _ in range(4):
            assert asked_everywhere(cluster.pod) == {tuple(WEB)}
    for outcome in (of_a_pod, of_the_node):
        assert (outcome.lost, outcome.wrong) == ([], []), outcome


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.usefixtures("servers")
def test_the_cluster_dns_is_asked_over_tcp_alone_and_gets_the_node_identity(
    cluster: NodeScene, tmp_path: Path, version: int
) -> None:
    with node_cache(cluster.node, tmp_path, version=version), tapped(cluster.cluster) as tap:
        with asking(cluster.pod, LISTENED, 200) as outcome:
            assert dig(cluster.pod, CLUSTER_DNS[4], HEADLESS) == ["127.10.1.30"]
        assert (outcome.lost, outcome.wrong) == ([], []), outcome
    to_servers = [packet for packet in tap.packets if packet.to in {server[version] for server in SERVERS}]
    assert {packet.protocol for packet in to_servers} == {"tcp"}
    assert tap.claims() == {"node-a1"}


@pytest.mark.usefixtures("servers")
def test_a_forged_identity_goes_no_further_than_the_node_and_is_never_believed(
    cluster: NodeScene, tmp_path: Path
) -> None:
    forged = f"+ednsopt=65518:{b'node-b1'.hex()}"
    with node_cache(cluster.node, tmp_path) as cache, tapped(cluster.cluster) as tap:
        for address in LISTENED:
            for more in ("+notcp", "+tcp"):
                assert dig(cluster.pod, address, HEADLESS, f"{forged} {more}") == ["127.10.1.30"]
        assert dig(cluster.pod, LISTENED[0], "nobody-asked-before.shop.svc.cluster.local", forged) == []
        cache.stop()
    assert tap.claims() == {"node-a1"}
    assert dig(cluster.pod, CLUSTER_DNS[4], HEADLESS, forged) == EVERYWHERE  # from no node that it trusts


def test_pods_of_two_nodes_get_the_endpoints_of_their_own_zones(tmp_path: Path) -> None:
    with node_scene("node-a2", "node-b2") as cluster, cluster_dns(cluster, tmp_path):
        of_zone = {"node-a2": ["127.10.2.30"], "node-b2": ["127.10.4.30"]}  # the one on node-b2 is not ready
        first, second = cluster.nodes
        with node_cache(first, tmp_path), node_cache(second, tmp_path):
            for node in (first, second, first):
                asked = {tuple(dig(node.pods[0], address, HEADLESS)) for address in LISTENED}
                assert asked == {tuple(of_zone[node.name])}, node.name
                assert dig(node.namespace, LINK_LOCAL[4], HEADLESS) == of_zone[node.name]
