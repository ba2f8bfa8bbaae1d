"""Findings about the topology policies of a cluster's Services: the one type, and the kinds that one Service can have.

`policy_findings` needs no endpoints: they are in the log and in `check`. `coverage_findings` are of an audit only, as
they change with every rollout.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from typing import Final

from topodns.cluster.model import ANY_KEY, HOSTNAME_LABEL, InvalidPolicy, ObjectKey, Policy
from topodns.cluster.state import ClusterState
from topodns.topology.cluster_view import PodKey, ServiceView, pod_key
from topodns.topology.coverage import ClientGroup, Coverage
from topodns.topology.node_groups import NodeGroups

CLUSTER: Final = ObjectKey("", "")
"""In place of a Service, for findings about all of them."""

MAX_NAMED: Final = 10  # Nodes, zones, endpoints or Pods that a finding names
MAX_SKEW: Final = 2.0  # times the mean load, which an endpoint may have without a finding

STEP: Final = 200  # groups of clients judged in one step

_GOVERNING: Final = (
    "topology keys on the governing Service of a StatefulSet hide its members from each other when they look up the "
    "Service's name; give clients a headless Service of their own"
)
_NAMED_IN_TEXT: Final = 5


class Severity(StrEnum):
    """The severity of a finding; members are in the order from the worst."""

    ERROR = "error"  # clients get no endpoint, or the keys are not those that were meant
    WARNING = "warning"  # one failure away from it, or most likely a mistake
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of one Service's policy, or of the whole cluster (service CLUSTER). `kind` is one of

    invalid: the key list breaks a rule. mended: parts of the list are ignored, or topodns.io/ttl is ignored or clamped.
    governing: the Service is a StatefulSet's governing one, so its members may not find each other. misplaced: the
    Service has keys, but is not headless. overridden: two annotations are set, one of them wins.
    uncovered: clients on some Nodes get no endpoint. empty: no endpoint is ready. single_point: an endpoint alone
    serves clients on several Nodes. skew: an endpoint has far more clients than others. ineffective: a key that no Node
    has, or that decides for no client. unlocated: clients that cannot be located. no_nodes: no Node is known.
    """

    service: ObjectKey
    kind: str
    text: str
    severity: Severity = Severity.WARNING
    nodes: int = 0  # Nodes whose clients it concerns
    node_names: tuple[str, ...] = ()  # of them, at most MAX_NAMED
    zones: tuple[str, ...] = ()  # those it concerns as a whole, at most MAX_NAMED
    keys: tuple[str, ...] = ()  # topology keys that it concerns
    endpoints: tuple[str, ...] = ()  # addresses, at most MAX_NAMED
    family: int = 0  # 4 or 6 if it concerns one family of two
    ratio: float = 0.0  # of a skew: the highest load over the mean

    def __str__(self) -> str:
        if self.service == CLUSTER:
            return f"all Services: {self.text}"
        return f"Service {self.service}: {self.text}"


def policy_findings(state: ClusterState, ignored: bool) -> Iterator[Finding | None]:
    """The findings about key lists, in no particular order; in small steps, None after each Service with a list.

    The state may change between steps: a Service is taken as it was at the first one.

    `ignored` is on_invalid: True (ignore) leaves a Service with an invalid policy unfiltered, False (deny) empties it.
    """
    governing = state.governing_services()
    for key, policy in tuple(state.policies.items()):
        yield from key_findings(key, policy, key in governing, ignored)
        yield None
    yield from notice_findings(state)


def notice_findings(state: ClusterState) -> Iterator[Finding]:
    """The findings about keys without effect, as the Service is not headless, or another annotation wins.

    The state may change between two findings.
    """
    for key, notice in tuple(state.policy_notices().items()):
        service = state.service(key)
        if service is not None and service.headless:
            yield Finding(key, "overridden", notice, Severity.INFO)
        else:
            yield Finding(key, "misplaced", notice)


def key_findings(
    key: ObjectKey, policy: Policy | InvalidPolicy | None, governing: bool, ignored: bool
) -> Iterator[Finding]:
    """The findings about one Service's key list alone; the arguments are those of `policy_findings`."""
    if isinstance(policy, InvalidPolicy):
        effect = "the Service stays unfiltered" if ignored else "no client gets an endpoint (on_invalid deny)"
        text = f"topology {policy.source.value}: {policy.problem}; {effect}"
        yield Finding(key, "invalid", text, Severity.ERROR)
        return
    if policy is None:
        return
    for warning in policy.warnings:
        yield Finding(key, "mended", f"topology {policy.source.value}: {warning}")
    if governing and not policy.asks_nothing:
        yield Finding(key, "governing", _GOVERNING)


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
