"""Findings about the endpoints that clients get by the topology keys of a Service, and about clients that cannot be
located. They change with every rollout, so they are in an audit only; all others are in `cluster.findings`.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from heapq import nsmallest
from ipaddress import ip_address
from itertools import chain
from typing import Final

from topodns.cluster.findings.finding import CLUSTER, MAX_NAMED, Finding, Findings, Hides, Severity, hides_none, visible
from topodns.cluster.findings.key_lists import absent_keys, key_findings, partial_findings, partial_keys, shadowed_keys
from topodns.cluster.findings.labels import label_findings, service_label_findings
from topodns.cluster.findings.objects import annotation_findings, left_out_findings, object_findings
from topodns.cluster.model import ANY_KEY, Kind, ObjectKey, Pod, Policy
from topodns.cluster.state import ClusterState
from topodns.inspect.model import (
    ClientGroup,
    Coverage,
    NodeGroups,
    PodKey,
    ServiceView,
    Steps,
    free_steps,
    gather_steps,
    pod_key,
)
from topodns.inspect.text import counted, named
from topodns.plugins.kubernetes.question import NEAR
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.client_locator import ClientLocator, Method
from topodns.topology.select import OnInvalid

MAX_SKEW: Final = 2.0  # times the mean load, which an endpoint may have without a finding
GROUPS: Final = 200  # of clients, judged in one step
PODS: Final = 100  # located in one step, about 0.4 ms

_PLACING: Final = frozenset[Kind](("Node", "NodeLocator", "Pod", "PodLocator"))
_BY_CIDR: Final = frozenset({Method.PODCIDR, Method.PODCIDR_UNVERIFIED})
_NOT_BY_POD: Final = _BY_CIDR | {Method.NODES, Method.SLICES}


def view_findings(service: ServiceView, topology: TopologySettings, nodes: NodeGroups) -> Iterator[Finding]:
    """The findings about the keys of a Service (`cluster.findings.key_lists`), under the options of `topology`.

    Once its coverage is known: then `nodes` has the labels counted.
    """
    ignored, bounded = topology.on_invalid is OnInvalid.IGNORE, service.guards.max_endpoints is not None
    return key_findings(service.key, service.policy, service.governing, bounded, ignored, nodes.labels)


def coverage_finding_steps(found: Coverage, nodes: NodeGroups) -> Iterator[Finding | None]:
    """The findings about the endpoints of clients, for a Service with a valid policy or a bound; none for others.

    In steps of less than 1 ms: None is a step without a finding. Where keys apply to `_near.SERVICE` alone, the texts
    begin with that name.
    """
    key, policy = found.service.key, found.service.policy
    if not isinstance(policy, Policy) and (policy is not None or found.service.guards.max_endpoints is None):
        return
    if not found.endpoints:
        text = "no endpoint is ready: NXDOMAIN for every client"
        yield Finding(key, "empty", text, Severity.ERROR, nodes=found.nodes)
        return
    near = f"{NEAR}.{key.name}: " if policy is not None and policy.near_only else ""
    for each in _client_finding_steps(found, policy, nodes):
        yield replace(each, text=near + each.text) if each is not None else None


def _client_finding_steps(found: Coverage, policy: Policy | None, nodes: NodeGroups) -> Iterator[Finding | None]:
    judged = _Judged()
    for at, one in enumerate(found.clients, 1):
        judged.add(one)
        if at % GROUPS == 0:
            yield None
    for (family, severity), lost in judged.without.items():
        yield _without_endpoints(found, lost, family, severity)
    for alone, several in judged.several.items():
        if several:
            yield _single_point(found, several, alone)
    yield None
    if found.skew > MAX_SKEW:
        yield _skewed(found)
    if policy is not None:
        yield from _ineffective(found, policy, nodes, judged.winners)
    soles: list[object] = [sole for served in judged.served.values() for sole in served.values()]
    judged.served.clear()
    yield from free_steps(soles)


def state_findings(state: ClusterState, hides: Hides = hides_none) -> Findings:
    """The findings of an audit that depend on no client: about annotations, objects and labels of Nodes, none of hidden
    namespaces. Those about labels that an audit has by Service are left out: of zone and region there is one, too.
    """
    yield from visible(chain(left_out_findings(state), annotation_findings(state), object_findings(state)), hides)
    for each in label_findings(state, hides):
        yield each if each is not None and each.severity is not Severity.INFO else None


def notice_steps(state: ClusterState, hides: Hides = hides_none) -> Steps[dict[ObjectKey, tuple[str, ...]]]:
    """The texts of the findings about annotations, objects, and labels of Nodes, by Service; without those about none,
    and without hidden namespaces.
    """
    found: dict[ObjectKey, tuple[str, ...]] = {}
    findings = chain(annotation_findings(state), object_findings(state), _all_label_findings(state))
    for each in (yield from gather_steps(visible(findings, hides))):
        found[each.service] = (*found.get(each.service, ()), each.text)
    found.pop(CLUSTER, None)
    return found


def _all_label_findings(state: ClusterState) -> Findings:
    """`service_label_findings` of each Service: looked for once for all that share a policy."""
    known: dict[Policy, list[Finding]] = {}
    for key, policy in state.policies.all().items():
        if isinstance(policy, Policy):
            if policy not in known:
                known[policy] = yield from gather_steps(service_label_findings(state, key, policy))
            yield from (replace(each, service=key) for each in known[policy])
        yield None


class _Sole:
    """A Pod that alone serves some clients: its first address, and the Nodes of these clients by family."""

    def __init__(self, address: bytes) -> None:
        self.address = address
        self.nodes: Counter[int] = Counter()


class _Judged:
    """What the groups of clients of one Service give rise to, collected in one go: there may be one for each Node."""

    def __init__(self) -> None:
        self.without: dict[tuple[int, Severity], list[ClientGroup]] = {}  # by family (0: both): get no endpoint
        self.served: dict[bool, dict[PodKey, _Sole]] = {True: {}, False: {}}  # by FamilyAnswer.alone
        self.several: dict[bool, dict[bytes, int]] = {True: {}, False: {}}  # the same by address: Nodes if several
        self.winners: set[str] = set()  # keys

    def add(self, one: ClientGroup) -> None:
        if not one.covered:
            self.without.setdefault((0, Severity.ERROR), []).append(one)
            return
        for answer in one.answers:
            self.winners.add(answer.key)
            endpoints = answer.group.endpoints
            if not endpoints:
                self.without.setdefault((answer.family, Severity.WARNING), []).append(one)
            elif answer.matches == 1:
                pod = pod_key(endpoints[0])
                sole = self.served[answer.alone].setdefault(pod, _Sole(endpoints[0].address))
                sole.nodes[answer.family] += one.size
                if (nodes := max(sole.nodes.values())) > 1:
                    self.several[answer.alone][sole.address] = nodes


def _without_endpoints(found: Coverage, groups: Sequence[ClientGroup], family: int, severity: Severity) -> Finding:
    count, names = _nodes_of(groups)
    nodes_by_zone: dict[str, int] = {}
    for group in groups:
        nodes_by_zone[group.topology_zone] = nodes_by_zone.get(group.topology_zone, 0) + group.size
    zones = sorted(each for each, size in nodes_by_zone.items() if each and size == found.zones[each].nodes)
    what = "no endpoint (NODATA)" if not family else f"no IPv{family} endpoint (NODATA), though one of the other family"
    whole = sum(found.zones[name].nodes for name in zones)
    in_zones = (
        f", {'all' if whole == count else 'among them all'} of {_plural('zone', zones)} {named(zones)}" if zones else ""
    )
    text = f"clients on {count} of {found.nodes} Nodes get {what}{in_zones}: {named(names, count)}"
    return Finding(
        found.service.key, "uncovered", text, severity, count, names, zones=tuple(zones[:MAX_NAMED]), family=family
    )


def _plural(noun: str, named_ones: Sequence[str]) -> str:
    return noun if len(named_ones) == 1 else f"{noun}s"


def _nodes_of(groups: Sequence[ClientGroup]) -> tuple[int, tuple[str, ...]]:
    """How many Nodes, and the first names of them."""
    names: list[str] = []
    for group in groups:
        # Enough of each group that the first names of all are among them: the Nodes of a group are in order.
        names += [node.name for _, node in zip(range(MAX_NAMED), group.nodes, strict=False)]
    return sum(group.size for group in groups), tuple(sorted(names)[:MAX_NAMED])


def _single_point(found: Coverage, several: Mapping[bytes, int], alone: bool) -> Finding:
    most = nsmallest(MAX_NAMED, several.items(), key=lambda each: (-each[1], each[0]))
    addresses = [str(ip_address(address)) for address, _ in most]
    left = "no endpoint" if alone else "those of a later key"
    if len(several) == 1:
        text = f"{addresses[0]} alone serves clients on {most[0][1]} Nodes, which without it get {left}"
    else:
        shown = (f"{address} ({nodes} Nodes)" for address, (_, nodes) in zip(addresses, most, strict=True))
        text = (
            f"{len(several)} endpoints each serve clients on several Nodes alone, which without it get {left}: "
            f"{named(shown, len(several))}"
        )
    severity = Severity.WARNING if alone else Severity.INFO
    nodes = sum(several.values())
    return Finding(found.service.key, "single_point", text, severity, nodes, endpoints=tuple(addresses))


def _skewed(found: Coverage) -> Finding:
    most = max(found.load, key=lambda each: each.clients)
    address = str(ip_address(most.endpoint.address))
    text = (
        f"{address} has {found.skew:.1f} times the mean load: {most.clients:.3g} of {found.nodes} clients, if there is "
        f"one on each Node, and one of {found.endpoints} endpoints"
    )
    return Finding(found.service.key, "skew", text, endpoints=(address,), ratio=round(found.skew, 3))


def _ineffective(found: Coverage, policy: Policy, nodes: NodeGroups, winners: Set[str]) -> Iterator[Finding]:
    if not found.nodes:
        return
    yield from partial_findings(
        found.service.key, partial_keys(policy, nodes.labels), nodes.labels, nodes.nodes.values()
    )
    never = {*absent_keys(policy.keys, nodes.labels), *(key for key, _ in shadowed_keys(policy, nodes.labels))}
    idle = tuple(key for key in policy.keys if key not in (ANY_KEY, *winners, *never))
    if idle:
        text = f"no client gets its endpoints by the {_plural('key', idle)} {', '.join(idle)} at present"
        yield Finding(found.service.key, "ineffective", text, Severity.INFO, keys=idle)


def unlocated_finding_steps(state: ClusterState, methods: Sequence[Method], hard: bool) -> Iterator[Finding | None]:
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
            why.setdefault(_unlocated_reason(state, pod), []).append(f"{pod.namespace}/{pod.name}")
        if at % PODS == 0:
            yield None
    effect, severity = ("; hard lists give them no endpoint", Severity.ERROR) if hard else ("", Severity.WARNING)
    for reason, pods in sorted(why.items()):
        shown = named(sorted(pods))
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
        text = f"{which} cannot be located on {nodes}, as {unknown}: {named(without)}"
        yield Finding(CLUSTER, "unlocated", text, nodes=len(without), node_names=tuple(without[:MAX_NAMED]))


def _unlocated_reason(state: ClusterState, pod: Pod) -> str:
    """Why no method locates this Pod, as the predicate of a sentence."""
    if not pod.node_name:
        return "cannot be located, as they are on no Node"
    others = {each.node_name for address in pod.ips for each in state.pods_with_address(address)}
    if len(others) > 1:
        return "cannot be located, as Pods on several Nodes have their address"
    if pod.host_network:
        return "of the host network cannot be located, as no Node alone has their address"
    return "cannot be located by the methods of `locate`"
