"""The EndpointSlices that other objects contradict: a record for the log and a metric. No location depends on it.

Whether an endpoint is contradicted is decided in `topology.node_of_address`; here two slices of different namespaces
that contradict each other are recorded too.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from topodns.cluster.model import Endpoint, EndpointSlice, ObjectKey
from topodns.cluster.state import ClusterState
from topodns.topology.node_of_address import contradiction, is_evidence

MAX_FOUND: Final = 1000  # contradicted slices that are recorded
CHECKED_AT_ONCE: Final = 50  # endpoints per step


class Contradictions:
    """The contradicted slices of one cluster."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._found: dict[ObjectKey, str] = {}

    def check(self) -> Iterator[None]:
        """Check the slices in the state's `unchecked_slices`, which is empty at the end, and update `found`.

        One step (a yield) checks at most 50 endpoints of one slice.
        """
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
                    if at % CHECKED_AT_ONCE == CHECKED_AT_ONCE - 1:
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
        problem = contradiction(self._state, endpoint) or _conflict(self._state, namespace, endpoint)
        return problem and f"says that Pod {endpoint.pod_name} is on node {endpoint.node_name}, but {problem}"

    @property
    def pending(self) -> bool:
        """Whether slices are still to be checked."""
        return bool(self._state.unchecked_slices)

    def found(self) -> Mapping[ObjectKey, str]:
        """The contradicted slices, at most 1,000, each with the predicate of a sentence about it. A live view."""
        return MappingProxyType(self._found)


def _conflict(state: ClusterState, namespace: str, endpoint: Endpoint) -> str:
    """The conflict with a slice of another namespace that has this address on another Node, as a clause; "" if none.

    "" also where the state's Pods or Nodes decide which of the two is right.
    """
    if state.knows_all_pods or state.pods_with_address(endpoint.address):
        return ""
    if state.nodes.with_address(endpoint.address) is not None:
        return ""
    for service, other in state.endpoints_with_address(endpoint.address, besides=namespace):
        if other.node_name != endpoint.node_name and is_evidence(state, other):
            return f"Service {service.namespace}/{service.name} has its address on node {other.node_name}"
    return ""
