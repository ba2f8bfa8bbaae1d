"""The answers that a Pod gets through the node cache of its node, and the part of them that other processes see."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support.dns_messages import NODE_IDENTITY
from tests.support.namespaced_cluster import LISTENED, SERVERS, UPSTREAM_SERVICE, NodeScene, node_scene
from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL, Namespace
from tests.support.node_processes import HEADLESS, READY, cluster_dns, dig, node_cache
from tests.support.stub_resolver_load import asking

# Packets to port 53 that arrive in a namespace, as they are on the wire, read beside their receiver (packet(7)).

_ETH_P_ALL: Final = 3
_ETH_P_IP, _ETH_P_IPV6 = 0x0800, 0x86DD
_PROTOCOLS: Final = {6: "tcp", 17: "udp"}
_PORT: Final = 53


class Packet(NamedTuple):
    protocol: str  # "udp" or "tcp"
    source: str
    to: str
    payload: bytes  # behind the header of UDP or TCP


@dataclass(slots=True)
class Tapped:
    packets: list[Packet] = field(default_factory=list)

    @property
    def protocols(self) -> set[str]:
        return {packet.protocol for packet in self.packets}

    def claims(self) -> set[str]:
        """The nodes that queries said they came from (EDNS option 65518)."""
        code = struct.pack("!H", NODE_IDENTITY)
        found: set[str] = set()
        for packet in self.packets:
            _, there, rest = packet.payload.partition(code)
            while there:
                size = int.from_bytes(rest[:2], "big")
                found.add(rest[2 : 2 + size].decode(errors="replace"))
                _, there, rest = rest.partition(code)
        return found


@contextmanager
def tapped(where: Namespace) -> Iterator[Tapped]:
    """Everything that came in for port 53 meanwhile; all of it is there when the block has ended."""
    seen = Tapped()
    with where.entered():
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ETH_P_ALL))
    done = threading.Event()

    def read() -> None:
        while True:
            try:
                data, (_, protocol, kind, *_rest) = sock.recvfrom(0xFFFF)
            except TimeoutError:
                if done.is_set():
                    return
                continue
            packet = _read(data, protocol) if kind == socket.PACKET_HOST else None
            if packet is not None:
                seen.packets.append(packet)

    with sock:
        sock.settimeout(0.05)
        thread = threading.Thread(target=read, name="wire tap")
        thread.start()
        try:
            yield seen
        finally:
            done.set()
            thread.join()


def _read(data: bytes, protocol: int) -> Packet | None:
    """None for other ports than 53. No program here makes extension headers of IPv6."""
    if protocol == _ETH_P_IP:
        start, kind, source, to = (data[0] & 15) * 4, data[9], data[12:16], data[16:20]
    elif protocol == _ETH_P_IPV6:
        start, kind, source, to = 40, data[6], data[8:24], data[24:40]
    else:
        return None
    if kind not in _PROTOCOLS or struct.unpack_from("!H", data, start + 2)[0] != _PORT:
        return None
    size = 8 if kind == socket.IPPROTO_UDP else (data[start + 12] >> 4) * 4
    return Packet(_PROTOCOLS[kind], str(ip_address(source)), str(ip_address(to)), data[start + size :])


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
