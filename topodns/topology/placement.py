"""The Node of an address by Pods and by EndpointSlices, and the contradictions between a slice and the other objects.

Write permission for slices in one namespace must not move clients of another. So an endpoint counts only for the Pod
of its targetRef, in the slice's own namespace, and only while no other known object contradicts it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from topodns.cluster.model import Endpoint, EndpointSlice, ObjectKey, Pod
from topodns.cluster.state import ClusterState

MAX_FOUND: Final = 1000  # contradicted slices that are kept
PORTION: Final = 50  # endpoints checked in one step


def node_of_pods(pods: Sequence[Pod]) -> str:
    """The Node name of Pods that share one address (hostNetwork Pods may); "" if there is none, or they disagree.

    Pods that are not terminating decide; if they are on different Nodes, the result is "". If all are terminating, the
    Pod started last decides: it got the address last.
    """
    if not pods:
        return ""
    staying = [pod for pod in pods if not pod.terminating]
    if staying:
        return _sole(pod.node_name for pod in staying)
    last_start = max(pod.started for pod in pods)
    return _sole(pod.node_name for pod in pods if pod.started == last_start)


def node_of_endpoints(state: ClusterState, address: bytes) -> str:
    """The Node name of an address by EndpointSlices; "" if no endpoint counts, or if they disagree.

    Within a namespace an endpoint that is not terminating overrides terminating ones, since a slice may still list the
    previous Pod of an address. Namespaces do not override each other: all must agree.
    """
    if state.knows_all_pods and not state.pods_with_address(address):
        return ""  # no Pod has the address, so no endpoint counts; this saves a walk over very many slices
    heard: dict[str, list[Endpoint]] = {}
    for service, endpoint in state.endpoints_with_address(address):
        if counts(state, endpoint):
            heard.setdefault(service.namespace, []).append(endpoint)
    return _sole(map(_node_of, heard.values()))


def counts(state: ClusterState, endpoint: Endpoint) -> bool:
    """Whether an endpoint of a slice is evidence for its address: it has a Pod and a Node, without contradiction."""
    return bool(endpoint.node_name and endpoint.pod_name) and not contradiction(state, endpoint)


def contradiction(state: ClusterState, endpoint: Endpoint) -> str:
    """The evidence against this endpoint's nodeName, as a clause for a log line; "" if there is none.

    In order: the Node with the address, the Pods with it, the proven pod CIDR around it. The first found decides.
    """
    address, node_name = endpoint.address, endpoint.node_name
    owner = state.nodes.with_address(address)
    if owner is not None:
        return "" if owner.name == node_name else f"that is an address of Node {owner.name}"
    pods = state.pods_with_address(address)
    if pods:
        other = next((pod for pod in pods if pod.node_name != node_name), None)
        if other is None or node_of_pods(pods) == node_name:
            return ""
        return f"Pod {other.namespace}/{other.name} has its address on node {other.node_name}"
    owner = state.nodes.with_pod_cidr(address)
    if owner is not None and owner.name != node_name and state.nodes.pod_cidrs_verified:
        return f"that is in the podCIDR of Node {owner.name}"
    return ""


def _of_slices(state: ClusterState, namespace: str, endpoint: Endpoint) -> str:
    """The conflict with a slice of another namespace that has this address on another Node, as a clause; "" if none.

    Only where neither Pods nor Nodes decide which of the two is right.
    """
    if state.knows_all_pods or state.pods_with_address(endpoint.address):
        return ""
    if state.nodes.with_address(endpoint.address) is not None:
        return ""
    for service, other in state.endpoints_with_address(endpoint.address, besides=namespace):
        if other.node_name != endpoint.node_name and counts(state, other):
            return f"Service {service.namespace}/{service.name} has its address on node {other.node_name}"
    return ""


def _node_of(endpoints: Sequence[Endpoint]) -> str:
    staying = [endpoint for endpoint in endpoints if not endpoint.terminating]
    return _sole(endpoint.node_name for endpoint in staying or endpoints)


def _sole(node_names: Iterable[str]) -> str:
    distinct = set(node_names)
    return distinct.pop() if len(distinct) == 1 else ""


class Contradictions:
    """The contradicted slices of one state, for the log and a metric; no location depends on this record."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._found: dict[ObjectKey, str] = {}

    def check(self) -> Iterator[None]:
        """Check the slices that the state has marked as unchecked, at most 50 endpoints per step."""
        unchecked = self._state.unchecked_slices
        while unchecked:
            key = unchecked.pop()
            one = self._state.held("EndpointSlice", key)
            problem = ""
            if isinstance(one, EndpointSlice) and one.service_name and not one.imported:
                for at, endpoint in enumerate(one.endpoints):
                    problem = self._problem(one.namespace, endpoint)
                    if problem:
                        break
                    if at % PORTION == PORTION - 1:
                        yield
            if not problem:
                self._found.pop(key, None)
            elif key in self._found or len(self._found) < MAX_FOUND:
                self._found[key] = problem
            yield

    def _problem(self, namespace: str, endpoint: Endpoint) -> str:
        """The predicate of a sentence whose subject is the slice, if the endpoint is contradicted; else ""."""
        if not endpoint.node_name or not endpoint.pod_name:
            return ""
        problem = contradiction(self._state, endpoint) or _of_slices(self._state, namespace, endpoint)
        return problem and f"says that Pod {endpoint.pod_name} is on node {endpoint.node_name}, but {problem}"

    @property
    def pending(self) -> bool:
        """Whether slices are still to be checked."""
        return bool(self._state.unchecked_slices)

    def found(self) -> Mapping[ObjectKey, str]:
        """The contradicted slices, at most 1,000, each with its problem. A live view."""
        return MappingProxyType(self._found)
