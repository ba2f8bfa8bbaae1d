"""The source address that a DNS server sees, by the places of server and client: all locating rests on it.

A pod is seen by its own address, and so is every other process, except where another address is put in its place: a
process of the node comes to the node's own pods from their gateway, and a pod that asks another node is masqueraded.
"""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import NamedTuple

import pytest

from tests.cluster.conftest import COREFILE, Serve
from tests.kubelab.options import CLUSTER_DNS, CLUSTER_DNS_IPV6
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster
from tests.support.kube.objects import metadata
from tests.support.kube.server_pods import Server
from tests.support.kube.waiting import becomes

SERVER_NODE = "node1"
FAMILIES = {"IPv4": 0, "IPv6": 1}

numbers = count(1)


class Standing(NamedTuple):
    """A server, and the addresses of the Service before it; each of both families."""

    server: Server
    own: tuple[str, ...]
    virtual: tuple[str, ...]


@pytest.fixture(scope="module")
def in_a_pod(dns: Server) -> Standing:
    return Standing(dns, dns.pod.ips, (CLUSTER_DNS, CLUSTER_DNS_IPV6))


@pytest.fixture(scope="module")
def on_the_node(cluster: Cluster, serve: Serve) -> Iterator[Standing]:
    name = "host-dns"
    spec = {
        "selector": {"app": name},
        "ipFamilyPolicy": "RequireDualStack",
        "ports": [{"name": f"dns-{kind}".lower(), "port": 53, "protocol": kind} for kind in ("UDP", "TCP")],
    }
    cluster.create("kube-system", {"apiVersion": "v1", "kind": "Service", "metadata": metadata(name), "spec": spec})
    with serve(name, COREFILE, node=SERVER_NODE, host_network=True) as server:
        service = cluster.read("Service", "kube-system", name)
        assert service is not None
        node = cluster.lab.node(SERVER_NODE)
        yield Standing(server, tuple(node.ips), tuple(service["spec"]["clusterIPs"]))
    cluster.delete("Service", "kube-system", name)


def seen(standing: Standing, to: str, tcp: bool, askers: Mapping[str, Askers]) -> dict[tuple[str, str], str]:
    """By kind of client and node: the source address of its query in the server's log."""
    names = {}
    for kind, its in askers.items():
        for node, asker in its.items():
            names[kind, node] = f"probe-{next(numbers)}.cluster.local"
            asker.ask(f"{names[kind, node]} A", to, tcp=tcp)
    found: dict[tuple[str, str], str] = {}

    def all_logged() -> bool:
        remotes = standing.server.remotes()
        found.update({client: remotes.get(name, "") for client, name in names.items()})
        return all(found.values())

    becomes(all_logged, True)
    return found


@pytest.mark.parametrize("tcp", [False, True], ids=["UDP", "TCP"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("to", ["own", "virtual"], ids=["its own address", "its Service's address"])
def test_a_server_in_a_pod_sees_pods_as_they_are_and_its_own_node_as_the_gateway(
    in_a_pod: Standing, cluster: Cluster, askers: Askers, host_askers: Askers, to: str, family: str, tcp: bool
) -> None:
    which = FAMILIES[family]
    expected = {("pod", node): asker.pod.ips[which] for node, asker in askers.items()}
    expected |= {("process", node): cluster.lab.node(node).ips[which] for node in cluster.nodes}
    expected["process", SERVER_NODE] = cluster.lab.node(SERVER_NODE).gateways[which]
    clients = {"pod": askers, "process": host_askers}
    assert seen(in_a_pod, getattr(in_a_pod, to)[which], tcp, clients) == expected


@pytest.mark.parametrize("tcp", [False, True], ids=["UDP", "TCP"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("to", ["own", "virtual"], ids=["its own address", "its Service's address"])
def test_a_server_of_the_nodes_network_sees_pods_of_other_nodes_as_their_node(
    on_the_node: Standing, cluster: Cluster, askers: Askers, host_askers: Askers, to: str, family: str, tcp: bool
) -> None:
    """And answers its own node's pods from the address that they asked, or they would not take the reply."""
    which = FAMILIES[family]
    expected = {
        (kind, node): cluster.lab.node(node).ips[which] for kind in ("pod", "process") for node in cluster.nodes
    }
    expected["pod", SERVER_NODE] = askers[SERVER_NODE].pod.ips[which]
    clients = {"pod": askers, "process": host_askers}
    assert seen(on_the_node, getattr(on_the_node, to)[which], tcp, clients) == expected
