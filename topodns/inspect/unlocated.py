"""Findings about clients that cannot be located, and why: of known Pods each, of others what would locate them."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from topodns.cluster.model import Kind, Pod
from topodns.cluster.state import ClusterState
from topodns.inspect.coverage_findings import counted, named
from topodns.topology.client_locator import ClientLocator, Method
from topodns.topology.findings import CLUSTER, MAX_NAMED, Finding, Severity

STEP: Final = 100  # Pods located in one step, about 0.4 ms

_PLACING: Final = frozenset[Kind](("Node", "NodeLocator", "Pod", "PodLocator"))
_BY_CIDR: Final = frozenset({Method.PODCIDR, Method.PODCIDR_UNVERIFIED})
_NOT_BY_POD: Final = _BY_CIDR | {Method.NODES, Method.SLICES}


def unlocated_findings(state: ClusterState, methods: Sequence[Method], hard: bool) -> Iterator[Finding | None]:
    """The findings, in small steps: None after each step without one.

    `hard`: whether some Service gives clients of unknown location no endpoint.
    """
    denied = sorted(state.denied & _PLACING)
    if denied:
        kinds = " and ".join(f"{kind}s" for kind in denied)
        yield Finding(CLUSTER, "unlocated", f"RBAC denies {kinds}: clients located by nothing else get every endpoint")
    if "Node" in state.known and "Pod" not in state.known and not set(methods) - _NOT_BY_POD - {Method.PODS}:
        yield from _behind_no_service(state, methods)
    why: dict[str, list[str]] = {}
    locator = ClientLocator(state, methods)
    for at, pod in enumerate(list(state.pods.values()), 1):
        if any(not locator.locate(address).node_name for address in pod.ips):
            why.setdefault(_reason(state, pod), []).append(f"{pod.namespace}/{pod.name}")
        if at % STEP == 0:
            yield None
    effect, severity = ("; hard lists give them no endpoint", Severity.ERROR) if hard else ("", Severity.WARNING)
    for reason, pods in sorted(why.items()):
        shown = named(sorted(pods), len(pods))
        yield Finding(CLUSTER, "unlocated", f"{counted(len(pods), 'Pod')} {reason}{effect}: {shown}", severity)


def _behind_no_service(state: ClusterState, methods: Collection[Method]) -> Iterator[Finding]:
    """The finding about Pods that are not known, as they are not watched, and not located by podCIDRs either."""
    which = "Pods behind no Service" if Method.SLICES in methods else "Pods"
    unknown = "Pods are not known"
    if _BY_CIDR.isdisjoint(methods):
        yield Finding(CLUSTER, "unlocated", f"{which} cannot be located: {unknown}, and `locate` has no podcidr")
        return
    if Method.PODCIDR_UNVERIFIED not in methods and not state.nodes.pod_cidrs_verified:
        yield Finding(CLUSTER, "unlocated", f"{which} cannot be located: {unknown}, and podCIDRs are not proven")
        return
    without = sorted(node.name for node in state.nodes.by_name.values() if not node.pod_cidrs)
    if without:
        nodes = f"{counted(len(without), 'Node')} without podCIDR"
        text = f"{which} cannot be located on {nodes}, as {unknown}: {named(without, len(without))}"
        yield Finding(CLUSTER, "unlocated", text, nodes=len(without), node_names=tuple(without[:MAX_NAMED]))


def _reason(state: ClusterState, pod: Pod) -> str:
    """Why no method locates this Pod, as the predicate of a sentence."""
    if not pod.node_name:
        return "cannot be located, as they are on no Node"
    others = {each.node_name for address in pod.ips for each in state.pods_with_address(address)}
    if len(others) > 1:
        return "cannot be located, as Pods on several Nodes have their address"
    if pod.host_network:
        return "of the host network cannot be located, as no Node alone has their address"
    return "cannot be located by the methods of `locate`"
