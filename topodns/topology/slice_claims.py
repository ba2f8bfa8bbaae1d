"""Decides which Pods and which endpoints of EndpointSlices count as evidence for the Node of an address.

For NodeLocators and PodLocators, `topology.locator_claims` decides.

Write permission for slices in one namespace must not move clients of another. So an endpoint counts only for the Pod
of its targetRef, in the slice's own namespace, and only while no other known object contradicts it.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from topodns.cluster.model import Endpoint, Pod
from topodns.cluster.state import ClusterState


def node_of_pods(pods: Sequence[Pod]) -> str:
    """The Node name of Pods that share one address (hostNetwork Pods may); "" if there is none, or they disagree.

    Pods that are not terminating decide; if they are on different Nodes, the result is "". If all are terminating, the
    Pod started last decides: it got the address last.
    """
    if not pods:
        return ""
    current = [pod for pod in pods if not pod.terminating]
    if current:
        return _sole(pod.node_name for pod in current)
    last_start = max(pod.started for pod in pods)
    return _sole(pod.node_name for pod in pods if pod.started == last_start)


def node_of_endpoints(state: ClusterState, address: bytes) -> str:
    """The Node name of an address by EndpointSlices; "" if no endpoint counts, or if they disagree.

    Within a namespace an endpoint that is not terminating overrides terminating ones, since a slice may still list the
    previous Pod of an address. Namespaces do not override each other: all must agree.
    """
    if state.knows_all_pods and not state.pods_with_address(address):
        return ""  # no Pod has the address, so no endpoint counts; this saves a walk over very many slices
    by_namespace: dict[str, list[Endpoint]] = {}
    for service, endpoint in state.endpoints_with_address(address):
        if is_evidence(state, endpoint):
            by_namespace.setdefault(service.namespace, []).append(endpoint)
    return _sole(map(_node_of, by_namespace.values()))


def is_evidence(state: ClusterState, endpoint: Endpoint) -> bool:
    """Whether an endpoint of a slice is evidence for its address: it has a Pod and a Node, without contradiction."""
    if not endpoint.node_name or not endpoint.pod_name:
        return False
    return contradiction(state, endpoint.address, endpoint.node_name) is None


class Contradiction(NamedTuple):
    """The evidence against the Node that an object gives for an address."""

    reason: str  # node_address, pod, pod_cidr; of locators also conflict, superseded
    clause: str  # of a log line that begins with what the object says


def contradiction(state: ClusterState, address: bytes, node_name: str) -> Contradiction | None:
    """The evidence against an address being on this Node; None if there is none.

    In order: the Node with the address, the Pods with it, the Node whose pod CIDR holds it, if Pods provably get their
    addresses from pod CIDRs. The first found decides, for or against.
    """
    owner = state.nodes.with_address(address)
    if owner is not None:
        problem = f"that is an address of Node {owner.name}"
        return Contradiction("node_address", problem) if owner.name != node_name else None
    pods = state.pods_with_address(address)
    if pods:
        other = next((pod for pod in pods if pod.node_name != node_name), None)
        if other is None or node_of_pods(pods) == node_name:
            return None
        problem = f"Pod {other.namespace}/{other.name} has its address on node {other.node_name}"
        return Contradiction("pod", problem)
    owner = state.nodes.with_pod_cidr(address)
    if owner is not None and owner.name != node_name and state.nodes.pod_cidrs_verified:
        return Contradiction("pod_cidr", f"that is in the podCIDR of Node {owner.name}")
    return None


def _node_of(endpoints: Sequence[Endpoint]) -> str:
    current = [endpoint for endpoint in endpoints if not endpoint.terminating]
    return _sole(endpoint.node_name for endpoint in current or endpoints)


def _sole(node_names: Iterable[str]) -> str:
    distinct = set(node_names)
    return distinct.pop() if len(distinct) == 1 else ""
