"""The value of a topology key at an endpoint: the one rule for Services, and the one for ServiceImports."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from topodns.cluster.cluster_set import ClusterSet
from topodns.cluster.model import CLUSTER_KEY, HOSTNAME_LABEL, REGION_LABEL, ZONE_LABEL, Endpoint, Node

NodeOf = Callable[[str], Node | None]  # the Node of this name
Pairs = Iterable[tuple[str | None, Endpoint]]  # an endpoint with each of its values; None: it has no value


def label_of(node: Node | None, endpoint: Endpoint, key: str) -> str | None:
    """The value of a topology key at an endpoint's Node; None: absent.

    If there is a Node object only its label counts: the slice's copies may stay stale forever. Without a label
    kubernetes.io/hostname its value is the Node's name.
    """
    name = endpoint.node_name
    if node is not None:
        return node.labels.get(key, name if key == HOSTNAME_LABEL else None)
    if name and key == HOSTNAME_LABEL:
        return name
    of_slice = endpoint.topology_zone if key == ZONE_LABEL else None
    return endpoint.topology.get(key) if of_slice is None else of_slice


def imported_label_of(cluster_set: ClusterSet, node: Node | None, endpoint: Endpoint, key: str) -> str | None:
    """As `label_of`, at an endpoint of a ServiceImport: see `cluster.cluster_set`. `node`: of the endpoint's nodeName,
    if this cluster has one.
    """
    if key == CLUSTER_KEY:
        return endpoint.topology.get(key)
    if key == ZONE_LABEL:
        return endpoint.topology_zone
    if key == REGION_LABEL:
        return cluster_set.region_of(endpoint.topology_zone)
    return label_of(node, endpoint, key) if cluster_set.has(endpoint) else None


def pairs_of_nodes(of_node: dict[str, str | None], node_of: NodeOf, key: str, endpoints: Sequence[Endpoint]) -> Pairs:
    """Endpoints with their values of a topology key, without those that have none.

    `of_node`: the value by the name of each Node with an object, which is filled here.
    """
    for endpoint in endpoints:
        name = endpoint.node_name
        if name in of_node:
            value = of_node[name]
        else:
            node = node_of(name) if name else None
            value = label_of(node, endpoint, key)
            if node is not None:
                of_node[name] = value
        if value is not None:
            yield value, endpoint


def imported_pairs(cluster_set: ClusterSet, node_of: NodeOf, key: str, endpoints: Sequence[Endpoint]) -> Pairs:
    """As `pairs_of_nodes`, of the endpoints of a ServiceImport."""
    for endpoint in endpoints:
        value = imported_label_of(cluster_set, node_of(endpoint.node_name), endpoint, key)
        if value is not None:
            yield value, endpoint


def nodes_of(endpoints: Sequence[Endpoint]) -> Iterator[tuple[str, Endpoint]]:
    """Endpoints with the names of their Nodes, without those that have none."""
    return ((endpoint.node_name, endpoint) for endpoint in endpoints if endpoint.node_name)


def own_nodes(cluster_set: ClusterSet, endpoints: Sequence[Endpoint]) -> Iterator[tuple[str, Endpoint]]:
    """As `nodes_of`, of the endpoints of a ServiceImport: without those of other clusters."""
    return nodes_of([endpoint for endpoint in endpoints if cluster_set.has(endpoint)])
