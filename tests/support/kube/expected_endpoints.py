"""The endpoints that a client ought to get, worked out from the API server's EndpointSlices and Nodes: a second
opinion on the rule of docs/reference/topology.md.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from tests.support.kube.cluster import Cluster
from tests.support.kube.objects import HOSTNAME, ZONE, Object

SERVICE_NAME = "kubernetes.io/service-name"

Labels = Mapping[str, Mapping[str, str]]  # of each Node there is


class Endpoint(NamedTuple):
    """`topology_zone` is the slice's copy of what the Node once said; "" for none."""

    address: str
    node: str
    topology_zone: str


def ready_endpoints(slice_: Object) -> frozenset[Endpoint]:
    """Absent counts as ready."""
    ready = (each for each in slice_.get("endpoints") or () if each.get("conditions", {}).get("ready", True))
    return frozenset(
        Endpoint(address, each.get("nodeName", ""), each.get("zone", ""))
        for each in ready
        for address in each["addresses"]
    )


def chosen(endpoints: Collection[Endpoint], keys: Sequence[str], client: str, labels: Labels) -> frozenset[str]:
    """For a client on that node; without keys everything."""
    tries = (_matching(endpoints, key, client, labels) for key in keys or ("*",))
    return next((found for found in tries if found), frozenset())


def _matching(endpoints: Iterable[Endpoint], key: str, client: str, labels: Labels) -> frozenset[str]:
    if key == "*":
        return frozenset(endpoint.address for endpoint in endpoints)
    own = _value(key, Endpoint("", client, ""), labels)
    if own is None:
        return frozenset()
    return frozenset(endpoint.address for endpoint in endpoints if _value(key, endpoint, labels) == own)


def _value(key: str, endpoint: Endpoint, labels: Labels) -> str | None:
    """Of the Node, while there is one; else the slice's zone, and its node name as the host's."""
    node = labels.get(endpoint.node)
    if key == HOSTNAME:
        return (node or {}).get(HOSTNAME, endpoint.node)
    if node is not None:
        return node.get(key)
    return (endpoint.topology_zone or None) if key == ZONE else None


def node_labels(cluster: Cluster) -> Labels:
    return {node["metadata"]["name"]: node["metadata"]["labels"] for node in cluster.list("Node", "")}


def service_endpoints(cluster: Cluster, namespace: str) -> Mapping[str, frozenset[Endpoint]]:
    """By Service: its ready endpoints."""
    found: dict[str, frozenset[Endpoint]] = {}
    for each in cluster.list("EndpointSlice", namespace):
        service = each["metadata"]["labels"][SERVICE_NAME]
        found[service] = found.get(service, frozenset()) | ready_endpoints(each)
    return found
