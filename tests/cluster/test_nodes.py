"""Nodes that change their place, go and come: their clients and their endpoints move in the same answer."""

from collections.abc import Iterator, Mapping

import pytest

from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.expected_nearest import answers
from tests.support.kube.location_service import NAME, node_of, whereabouts
from tests.support.kube.objects import HOSTNAME, ZONE, Object, headless, manual_slice, metadata
from tests.support.kube.waiting import becomes, eventually

ADDRESSES = {"node1": "198.51.100.1", "node2": "198.51.100.2", "node3": "198.51.100.3", "node4": "198.51.100.4"}


@pytest.fixture
def near(place: Place) -> str:
    """The name of a Service by zone, with an endpoint on each node."""
    place.create(
        headless("near", ZONE, app=""),
        manual_slice("near", "near", [(address, node) for node, address in ADDRESSES.items()]),
    )
    return place.fqdn("near")


@pytest.fixture
def moved(cluster: Cluster) -> Iterator[str]:
    """A node that is back at its old place in the end."""
    yield "node3"
    cluster.patch("Node", "", "node3", {"metadata": {"labels": {ZONE: cluster.topology_zones["node3"]}}})


def node_object(name: str, labels: Mapping[str, str]) -> Object:
    """Of a node that is not there: no pod may be put on it."""
    spec = {"taints": [{"key": "topodns.io/no-such-machine", "effect": "NoSchedule"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata(name, labels), "spec": spec}


def on(*nodes: str) -> set[str]:
    return {ADDRESSES[node] for node in nodes}


def test_a_relabelled_node_moves_with_its_clients_and_its_endpoints(
    cluster: Cluster, askers: Askers, near: str, moved: str
) -> None:
    before = {"node1": on("node1", "node2"), "node2": on("node1", "node2"), "node3": on("node3"), "node4": on("node4")}
    becomes(lambda: answers(askers, near), before)
    cluster.patch("Node", "", moved, {"metadata": {"labels": {ZONE: "c"}}})
    after = before | {"node3": on("node3", "node4"), "node4": on("node3", "node4")}
    becomes(lambda: answers(askers, near), after)
    cluster.patch("Node", "", moved, {"metadata": {"labels": {ZONE: None}}})
    becomes(lambda: answers(askers, near), before | {"node3": set()})


def test_an_endpoint_is_near_once_its_node_is_there(cluster: Cluster, place: Place, askers: Askers, near: str) -> None:
    place.create(manual_slice("near", "late", [("198.51.100.99", "late-node")]))
    place.create(headless("all", app=""), manual_slice("all", "all", [("198.51.100.99", "late-node")]))
    becomes(lambda: askers["node4"].addresses(place.fqdn("all")), {"198.51.100.99"})
    assert askers["node4"].addresses(near) == on("node4")
    cluster.create("", node_object("late-node", {ZONE: "c", HOSTNAME: "late-node"}))
    try:
        becomes(lambda: askers["node4"].addresses(near), on("node4") | {"198.51.100.99"})
        assert askers["node3"].addresses(near) == on("node3")
    finally:
        cluster.delete("Node", "", "late-node")
    becomes(lambda: askers["node4"].addresses(near), on("node4"))


def test_clients_of_a_deleted_node_are_in_no_zone_until_it_is_back(
    cluster: Cluster, place: Place, askers: Askers, near: str
) -> None:
    """Its pods run on without a kubelet, and ask."""
    place.create(*whereabouts(cluster.nodes))
    asker, where = askers["node4"], place.fqdn(NAME)
    becomes(lambda: asker.addresses(near), on("node4"))
    lab = cluster.lab
    lab.machine("node4").stop("kubelet")
    try:
        cluster.delete("Node", "", "node4")
        becomes(lambda: asker.addresses(near), set())
        got = node_of(asker.addresses(where), cluster.nodes)
        assert got == "node4"  # a slice still says where the pod is, and the same node needs no label
        assert askers["node1"].addresses(near) == on("node1", "node2")
    finally:
        assert lab.register(lab.node("node4")).ok
        lab.machine("node4").start("kubelet")
    eventually(lab.all_ready, "node4 is Ready again")
    becomes(lambda: answers(askers, near)["node4"], on("node4"))
