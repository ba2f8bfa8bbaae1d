"""Each way to find a client's node, on a network whose addresses are what test_addresses.py says."""

from collections.abc import Iterator

import pytest

from tests.cluster.conftest import Serve
from tests.support.dns_messages import Opt, node_identity, subnet
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.location_service import NAME, NOWHERE, node_of, whereabouts
from tests.support.kube.objects import pod, sleeping_container
from tests.support.kube.query_pods import Asker, asker
from tests.support.kube.server_pods import Server

PORTS = {"nodes": 1053, "slices": 1054, "pods": 1055, "podcidr-unverified": 1056}
TRUSTING = 1057  # and asks `slices`
SERVER_NODE, OTHER = "node1", "node3"

Got = dict[str, str]


def corefile() -> str:
    blocks = [topology_block(port, f"locate {method}") for method, port in PORTS.items()]
    trusting = topology_block(TRUSTING, "locate slices\n        trust 10.244.0.0/16")
    first = ".:53 {\n    ready\n    whoami\n}\n"
    return "".join([first, *blocks, trusting])


def topology_block(port: int, options: str) -> str:
    return f".:{port} {{\n    kubernetes cluster.local\n    topology {{\n        {options}\n    }}\n}}\n"


@pytest.fixture(scope="module")
def locating(serve: Serve) -> Iterator[Server]:
    with serve("locating", corefile(), node=SERVER_NODE) as server:
        yield server


@pytest.fixture(scope="module")
def here(cluster: Cluster) -> Iterator[Place]:
    """The Service that shows a client's location, and a pod on the other node behind no Service."""
    with cluster.namespace() as place:
        place.create(*whereabouts(cluster.nodes), pod("loner", "loner", sleeping_container(), OTHER))
        yield place


@pytest.fixture(scope="module")
def loner(cluster: Cluster, here: Place) -> Iterator[Asker]:
    (only,) = here.pods_once_ready("loner", 1)
    with asker(cluster.lab, only) as asking:
        yield asking


class Guesses:
    """Where the servers believe a client to be."""

    def __init__(self, server: Server, place: Place) -> None:
        self._to, self._nodes, self._name = server.pod.ip, place.cluster.nodes, place.fqdn(NAME)

    def __call__(self, client: Asker, port: int, opt: Opt | None = None) -> str:
        reply = client.ask(f"{self._name} A", self._to, port, opt=opt)
        assert reply.rcode == "NOERROR", str(reply)
        return node_of(set(reply.data), self._nodes)


@pytest.fixture(scope="module")
def guess(locating: Server, here: Place) -> Guesses:
    return Guesses(locating, here)


def everywhere(nodes: list[str]) -> Got:
    return {node: node for node in nodes}


def nowhere(nodes: list[str]) -> Got:
    return dict.fromkeys(nodes, NOWHERE)


def test_nodes_finds_processes_of_other_nodes_only(
    guess: Guesses, cluster: Cluster, askers: Askers, host_askers: Askers
) -> None:
    port = PORTS["nodes"]
    assert {node: guess(client, port) for node, client in askers.items()} == nowhere(cluster.nodes)
    expected = everywhere(cluster.nodes) | {SERVER_NODE: NOWHERE}  # the gateway's address is no Node's
    assert {node: guess(client, port) for node, client in host_askers.items()} == expected


def test_slices_finds_pods_behind_some_service(guess: Guesses, cluster: Cluster, askers: Askers, loner: Asker) -> None:
    port = PORTS["slices"]
    assert {node: guess(client, port) for node, client in askers.items()} == everywhere(cluster.nodes)
    assert guess(loner, port) == NOWHERE


def test_pods_finds_every_pod(guess: Guesses, cluster: Cluster, askers: Askers, loner: Asker) -> None:
    port = PORTS["pods"]
    assert {node: guess(client, port) for node, client in askers.items()} == everywhere(cluster.nodes)
    assert guess(loner, port) == OTHER


def test_podcidr_finds_pods_and_the_gateway(
    guess: Guesses, cluster: Cluster, askers: Askers, host_askers: Askers, loner: Asker
) -> None:
    port = PORTS["podcidr-unverified"]
    assert {node: guess(client, port) for node, client in askers.items()} == everywhere(cluster.nodes)
    assert guess(loner, port) == OTHER
    assert guess(host_askers[SERVER_NODE], port) == SERVER_NODE
    assert guess(host_askers[OTHER], port) == NOWHERE  # a Node's address is in no podCIDR


def test_a_node_cache_may_name_its_node_and_a_pod_may_not(guess: Guesses, askers: Askers, host_askers: Askers) -> None:
    port = PORTS["nodes"]
    assert guess(host_askers["node2"], port, Opt(options=[node_identity("node2")])) == "node2"
    assert guess(host_askers["node2"], port, Opt(options=[node_identity("node4")])) == "node2"
    assert guess(askers["node2"], port, Opt(options=[node_identity("node4")])) == NOWHERE


def test_the_gateway_may_name_its_own_node_only(guess: Guesses, host_askers: Askers) -> None:
    port, gateway = PORTS["podcidr-unverified"], host_askers[SERVER_NODE]
    assert guess(gateway, port, Opt(options=[node_identity(SERVER_NODE)])) == SERVER_NODE
    assert guess(gateway, port, Opt(options=[node_identity("node4")])) == SERVER_NODE


def test_client_subnet_is_believed_from_trusted_clients(guess: Guesses, askers: Askers) -> None:
    of_other = subnet(f"{askers[OTHER].pod.ip}/32")
    assert guess(askers["node2"], TRUSTING, Opt(options=[of_other])) == OTHER
    assert guess(askers["node2"], PORTS["slices"], Opt(options=[of_other])) == "node2"
