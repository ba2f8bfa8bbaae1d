"""A dump of a cluster of several hundred objects, served to clients located in every way there is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dns_messages import ECS, NODE_IDENTITY, Opt, node_identity, subnet
from tests.support.kubectl_dump import (
    NODES,
    cluster_ip,
    dump,
    node_name,
    pod_address,
    pod_addresses,
)
from tests.support.server_process import METRICS, Server, serving

COREFILE = """
. {
    bind HERE
    prometheus HERE:%(metrics)d
    kubernetes cluster.local in-addr.arpa {
        manifests cluster.yaml
        pods %(pods)s
    }
    topology {
        locate %(locate)s
        trust 127.0.0.0/16
    }
}
"""
TRUSTED, UNTRUSTED = "127.0.0.1", "127.99.0.1"  # neither is a node's nor a pod's

NEAR, ZONAL = "near.team-3.svc.cluster.local A", "zonal.team-3.svc.cluster.local A"
ALL_NEAR = pod_addresses(3, "near")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dump")
    (directory / "cluster.yaml").write_text(dump())
    return directory


def cluster(directory: Path, pods: str, locate: str = "nodes podcidr slices") -> str:
    return COREFILE % {"metrics": METRICS, "pods": pods, "locate": locate}


@pytest.fixture(scope="module")
def served(directory: Path) -> Iterator[Server]:
    with serving(directory, cluster(directory, "verified")) as server:
        yield server


def test_every_object_of_the_dump_is_held(served: Server) -> None:
    held = {kind: served.metric("topodns_state_objects", kind=kind) for kind in ("Node", "Service", "Pod")}
    assert held == {"Node": 12, "Service": 32, "Pod": 384}
    assert served.metric("topodns_manifest_objects_skipped") == 0


@pytest.mark.parametrize("node", range(1, NODES + 1))
def test_each_client_is_located_by_its_source_address(served: Server, node: int) -> None:
    for source in (pod_address(1, "front", node), f"127.20.0.{node}", f"127.20.{node}.250"):
        assert served.ask(NEAR, source).data == [pod_address(3, "near", node)]
        assert served.ask(ZONAL, source).data == pod_addresses(3, "zonal", zone_of=node)


@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
def test_a_service_without_keys_has_the_same_answer_for_every_client(served: Server, tcp: bool) -> None:
    for source in (TRUSTED, "127.20.4.11"):
        assert served.ask("front.team-3.svc.cluster.local A", source, tcp=tcp).data == [cluster_ip(3)]
        assert served.ask("plain.team-3.svc.cluster.local A", source, tcp=tcp).data == pod_addresses(3, "plain")


ECS_CASES = [
    ("a pod's address", "127.20.5.11/32", [pod_address(3, "near", 5)], 32),
    ("a node's address", "127.20.0.5/32", [pod_address(3, "near", 5)], 32),
    ("a node's podCIDR", "127.20.5.0/24", [pod_address(3, "near", 5)], 24),
    ("more than one node", "127.20.0.0/16", ALL_NEAR, 0),
    ("nobody's", "10.1.2.0/24", ALL_NEAR, 0),
]


@pytest.mark.parametrize(
    ("claimed", "expected", "scope"), [case[1:] for case in ECS_CASES], ids=[case[0] for case in ECS_CASES]
)
def test_a_client_subnet_from_a_trusted_source_is_believed(
    served: Server, claimed: str, expected: list[str], scope: int
) -> None:
    code, data = subnet(claimed)
    reply = served.ask(NEAR, TRUSTED, Opt(options=[(code, data)]))
    assert reply.data == expected
    # RFC 7871 section 7.2.1: everything but SCOPE comes back as it was sent.
    assert reply.options == {ECS: data[:3] + bytes([scope]) + data[4:]}


def test_a_client_subnet_from_anyone_else_is_ignored_and_not_echoed(served: Server) -> None:
    for source, expected in ((UNTRUSTED, ALL_NEAR), ("127.20.7.11", [pod_address(3, "near", 7)])):
        reply = served.ask(NEAR, source, Opt(options=[subnet("127.20.5.11/32")]))
        assert (reply.data, reply.options) == (expected, {})


def test_a_subnet_does_not_stick_to_the_source_that_claimed_it(served: Server) -> None:
    for node in (5, 6, 5):
        reply = served.ask(NEAR, TRUSTED, Opt(options=[subnet(f"127.20.{node}.11/32")]))
        assert reply.data == [pod_address(3, "near", node)]
    assert served.ask(NEAR, TRUSTED, Opt()).data == ALL_NEAR


def test_a_malformed_client_subnet_is_formerr_only_where_it_is_read(served: Server) -> None:
    broken = Opt(options=[(ECS, b"\0\1\x20\0\x7f")])  # 1 octet of an address of 32 bits
    assert served.ask(NEAR, TRUSTED, broken).rcode == "FORMERR"
    assert served.ask(NEAR, UNTRUSTED, broken).rcode == "NOERROR"


IDENTITY_CASES = [
    ("a trusted source", TRUSTED, "node-5", [pod_address(3, "near", 5)]),
    ("a node, for the node it is", "127.20.0.5", "node-5", [pod_address(3, "near", 5)]),
    ("a node, for another", "127.20.0.6", "node-5", [pod_address(3, "near", 6)]),
    ("a podCIDR's gateway, for its own node", "127.20.5.1", "node-5", [pod_address(3, "near", 5)]),
    ("a podCIDR's gateway, for another node", "127.20.6.1", "node-5", [pod_address(3, "near", 6)]),
    ("a pod, for another node", "127.20.7.11", "node-5", [pod_address(3, "near", 7)]),
    ("nobody", UNTRUSTED, "node-5", ALL_NEAR),
    ("no node name", TRUSTED, "Node 5", ALL_NEAR),
]


@pytest.mark.parametrize(
    ("source", "claimed", "expected"), [case[1:] for case in IDENTITY_CASES], ids=[case[0] for case in IDENTITY_CASES]
)
def test_a_node_identity_is_believed_from_trusted_addresses(
    served: Server, source: str, claimed: str, expected: list[str]
) -> None:
    reply = served.ask(NEAR, source, Opt(options=[node_identity(claimed)]))
    assert reply.data == expected
    assert NODE_IDENTITY not in (reply.options or {})


def test_a_node_identity_wins_over_a_client_subnet(served: Server) -> None:
    reply = served.ask(NEAR, TRUSTED, Opt(options=[subnet("127.20.5.11/32"), node_identity(node_name(9))]))
    assert reply.data == [pod_address(3, "near", 9)]


A_POD, NO_POD = "127-20-1-10.team-1.pod.cluster.local A", "127-20-1-99.team-1.pod.cluster.local A"
ELSEWHERE, NO_ADDRESS = "127-20-1-10.team-2.pod.cluster.local A", "a-b-c-d.team-1.pod.cluster.local A"

POD_MODES = [
    ("verified", {A_POD: "127.20.1.10", NO_POD: "NXDOMAIN", ELSEWHERE: "NXDOMAIN", NO_ADDRESS: "NXDOMAIN"}),
    ("insecure", {A_POD: "127.20.1.10", NO_POD: "127.20.1.99", ELSEWHERE: "127.20.1.10", NO_ADDRESS: "NXDOMAIN"}),
    ("disabled", {A_POD: "NXDOMAIN", NO_POD: "NXDOMAIN", ELSEWHERE: "NXDOMAIN", NO_ADDRESS: "NXDOMAIN"}),
]


@pytest.mark.parametrize(("mode", "expected"), POD_MODES, ids=[case[0] for case in POD_MODES])
def test_pod_names_are_as_the_mode_says(directory: Path, tmp_path: Path, mode: str, expected: dict[str, str]) -> None:
    (tmp_path / "cluster.yaml").symlink_to(directory / "cluster.yaml")
    with serving(tmp_path, cluster(tmp_path, mode, "nodes pods")) as server:
        got = {}
        for question in expected:
            reply = server.ask(question)
            got[question] = reply.data[0] if reply.data else reply.rcode
        assert got == expected
        assert server.ask(NEAR, pod_address(1, "front", 4)).data == [pod_address(3, "near", 4)]
