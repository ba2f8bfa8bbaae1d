"""Nodes of three zones, three endpoints on them, and clients: for tests of which endpoints `select` chooses."""

from collections.abc import Mapping, Sequence

from tests.support.model_builders import endpoint, endpoint_slice, node
from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import Pool
from topodns.cluster.model import Endpoint, Node
from topodns.topology.select import Location

H = "kubernetes.io/hostname"
Z = "topology.kubernetes.io/zone"
K = "example.com/rack"

NODES = {
    each.name: each
    for each in (
        node("n1", {H: "n1", Z: "a", K: "7"}),
        node("n2", {H: "n2", Z: "a"}),
        node("n3", {H: "n3", Z: "b", K: "7"}),
        node("far", {H: "far", Z: "c"}),
        node("bare"),
    )
}
E1 = endpoint("10.0.0.1", node="n1")
E2 = endpoint("10.0.0.2", node="n2")
E3 = endpoint("10.0.0.3", node="n3")


def pool_of(endpoints: Sequence[Endpoint], nodes: Mapping[str, Node] = NODES) -> Pool:
    return Backends([endpoint_slice("db", *endpoints)], nodes.get, terminating_fallback=False).pools[4]


def at(node_name: str) -> Location:
    """The location of a client on this node; "": of one that is on none."""
    return Location(node_name, NODES.get(node_name), "nodes") if node_name else Location()
