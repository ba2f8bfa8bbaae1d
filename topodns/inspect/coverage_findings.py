"""Findings about the endpoints that clients get by the topology keys of a Service. They change with every rollout, so
they are in an audit only.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from ipaddress import ip_address
from typing import Final

from topodns.cluster.model import ANY_KEY, HOSTNAME_LABEL, Policy
from topodns.inspect.cluster_view import PodKey, ServiceView, pod_key
from topodns.inspect.coverage import ClientGroup, Coverage
from topodns.inspect.node_groups import NodeGroups
from topodns.topology.findings import MAX_NAMED, Finding, Severity

MAX_SKEW: Final = 2.0  # times the mean load, which an endpoint may have without a finding
STEP: Final = 200  # groups of clients judged in one step

_NAMED_IN_TEXT: Final = 5


def coverage_findings(service: ServiceView, found: Coverage, nodes: NodeGroups) -> Iterator[Finding | None]:
    """The findings about the endpoints of clients, for a Service with a valid policy; none for others.

    In steps of less than 1 ms: None is a step without a finding.
    """
    policy = service.policy
    if not isinstance(policy, Policy):
        return
    if not found.endpoints:
        text = "no endpoint is ready: NXDOMAIN for every client"
        yield Finding(service.key, "empty", text, Severity.ERROR, nodes=found.nodes)
        return
    judged = _Judged()
    for at, one in enumerate(found.clients, 1):
        judged.add(one)
        if at % STEP == 0:
            yield None
    for (family, severity), lost in judged.without.items():
        yield _without_endpoints(found, lost, family, severity)
    for alone, served in judged.served.items():
        several = {sole.address: count for sole in served.values() if (count := max(sole.nodes.values())) > 1}
        if several:
            yield _single_point(found, several, alone)
    yield None
    if found.skew > MAX_SKEW:
        yield _skewed(found)
    yield from _ineffective(found, policy, nodes, judged.winners)


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
            elif len(endpoints) == 1:
                pod = pod_key(endpoints[0])
                sole = self.served[answer.alone].setdefault(pod, _Sole(endpoints[0].address))
                sole.nodes[answer.family] += one.size


def counted(count: object, noun: str) -> str:
    """`1 Node`, `2 Nodes`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def named(names: Iterable[str], count: int) -> str:
    """The first of `count` names as text: `a, b and 3 more`."""
    shown = [name for _, name in zip(range(_NAMED_IN_TEXT), names, strict=False)]
    more = f" and {count - len(shown)} more" if count > len(shown) else ""
    return f"{', '.join(shown)}{more}"


def _without_endpoints(found: Coverage, groups: Sequence[ClientGroup], family: int, severity: Severity) -> Finding:
    count, names = _nodes_of(groups)
    nodes_by_zone: dict[str, int] = {}
    for group in groups:
        nodes_by_zone[group.topology_zone] = nodes_by_zone.get(group.topology_zone, 0) + group.size
    whole = {each.topology_zone: each.nodes for each in found.zones}
    zones = sorted(each for each, size in nodes_by_zone.items() if each and size == whole[each])
    what = "no endpoint (NODATA)" if not family else f"no IPv{family} endpoint (NODATA), though one of the other family"
    in_zones = f", all of zone {named(zones, len(zones))}" if zones else ""
    text = f"clients on {count} of {found.nodes} Nodes get {what}{in_zones}: {named(names, count)}"
    return Finding(
        found.service, "uncovered", text, severity, count, names, zones=tuple(zones[:MAX_NAMED]), family=family
    )


def _nodes_of(groups: Sequence[ClientGroup]) -> tuple[int, tuple[str, ...]]:
    """How many Nodes, and the first names of them."""
    names: list[str] = []
    for group in groups:
        # Enough of each group that the first names of all are among them: the Nodes of a group are in order.
        names += [node.name for _, node in zip(range(MAX_NAMED), group.nodes, strict=False)]
    return sum(group.size for group in groups), tuple(sorted(names)[:MAX_NAMED])


def _single_point(found: Coverage, several: Mapping[bytes, int], alone: bool) -> Finding:
    most = sorted(several.items(), key=lambda each: (-each[1], each[0]))[:MAX_NAMED]
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
    return Finding(found.service, "single_point", text, severity, nodes, endpoints=tuple(addresses))


def _skewed(found: Coverage) -> Finding:
    most = max(found.load, key=lambda each: each.clients)
    address = str(ip_address(most.endpoint.address))
    text = (
        f"{address} has {found.skew:.1f} times the mean load: {most.clients:.3g} of {found.nodes} clients, if there is "
        f"one on each Node, and one of {found.endpoints} endpoints"
    )
    return Finding(found.service, "skew", text, endpoints=(address,), ratio=round(found.skew, 3))


def _ineffective(found: Coverage, policy: Policy, nodes: NodeGroups, winners: Set[str]) -> Iterator[Finding]:
    if not found.nodes:
        return
    labels = nodes.grouping(frozenset(policy.labels))
    keys = [key for key in policy.keys if key != ANY_KEY]
    absent = tuple(key for key in keys if key != HOSTNAME_LABEL and not labels.has(key))
    if absent:
        text = f"no Node has the label {', '.join(absent)}, which therefore never matches"
        yield Finding(found.service, "ineffective", text, keys=absent)
    idle = tuple(key for key in keys if key not in winners and key not in absent)
    if idle:
        text = f"the key {', '.join(idle)} decides for no client at present"
        yield Finding(found.service, "ineffective", text, Severity.INFO, keys=idle)
