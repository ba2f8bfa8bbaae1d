"""Audit of clusters: coverage and findings of every Service with topology keys or a bound, as it is or for a what-if.

Its JSON document is an `inspect.documents.AuditDocument`. The work is done in small steps, since a server does it
between queries.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import merge
from itertools import chain, islice
from typing import Any, Final, cast

from topodns.cluster.findings.finding import CLUSTER, Finding, Severity
from topodns.cluster.model import ANY_KEY, InvalidPolicy, ObjectKey, Policy
from topodns.cluster.state import ClusterState
from topodns.dns.name import name_text
from topodns.inspect.coverage import use_coverage_steps
from topodns.inspect.documents import (
    VERSION,
    AuditedServiceObject,
    ChangedServiceObject,
    CountsObject,
    FindingObject,
    NumbersObject,
)
from topodns.inspect.errors import Refused
from topodns.inspect.findings import coverage_finding_steps, state_findings, unlocated_finding_steps, view_findings
from topodns.inspect.model import (
    Coverage,
    NodeGroups,
    ServiceView,
    Steps,
    T,
    ZoneCoverage,
    free_steps,
    gather_steps,
    policy_text,
    service_view,
)
from topodns.inspect.what_if import WhatIf, parse_change_steps, scenario_steps
from topodns.kube.manifests.source import ManifestSource
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.kubernetes.findings import corefile_findings
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.zone import excludes
from topodns.plugins.topology.findings import with_origin
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.select import UnknownClient

MAX_ROWS: Final = 5000  # Services, and findings about none of them, each; the others are counted
MAX_OCTETS: Final = 8 << 20  # of the members of lists, in JSON
MAX_SKIPPED: Final = 100  # manifest files and objects that cannot be read
MAX_ZONES: Final = 100  # of one Service
STEP: Final = 200  # keys or findings put in order in one step, about 0.3 ms

_RANKS: Final = {severity: rank for rank, severity in enumerate(Severity)}
_CLEAN: Final = len(_RANKS)
_NO_NODES: Final = "no Node is known, so it is not known which clients get an endpoint"


_ALL_NAMESPACES: Final = KubernetesSettings(())


@dataclass(frozen=True, slots=True)
class AuditSubject:
    """One cluster to audit, under the options of `topology` and `kubernetes`.

    `waiting`: why its state is not complete, a line each. `skipped`: the manifest files and the objects that cannot be
    read, likewise.
    """

    state: ClusterState
    topology: TopologySettings
    origins: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    kubernetes: KubernetesSettings = _ALL_NAMESPACES


def subjects(clusters: Iterable[Cluster]) -> list[AuditSubject]:
    """The clusters that have the directive `topology`."""
    return [
        AuditSubject(
            cluster.state,
            cluster.topology,
            tuple(map(name_text, cluster.kubernetes.origins)),
            cluster.incomplete(),
            _unread(cluster),
            cluster.kubernetes,
        )
        for cluster in clusters
        if cluster.topology is not None
    ]


def _unread(cluster: Cluster) -> tuple[str, ...]:
    files = cluster.source.unreadable if isinstance(cluster.source, ManifestSource) else ()
    return (*files, *cluster.source.skipped)


@dataclass(frozen=True, slots=True)
class ServiceReport:
    """One Service of an audit. `covered` counts the Nodes whose clients get an endpoint."""

    service: ObjectKey
    keys: tuple[str, ...]  # empty if invalid, without a policy, or if it follows the hints
    source: str  # of the keys, as in the option `keys`; "" without a policy
    guards: Mapping[str, str]  # as of `PolicyText`
    endpoints: int
    nodes: int
    covered: int
    zones: Mapping[str, ZoneCoverage]  # by name
    skew: float
    findings: tuple[Finding, ...]  # the worst first


@dataclass(frozen=True, slots=True)
class AuditReport:
    """An audit: the Services with keys or a bound, the worst first, and the findings about none of them."""

    nodes: int
    services: tuple[ServiceReport, ...]
    others: tuple[Finding, ...]  # about the cluster, and Services whose keys have no effect; the worst first

    @property
    def findings(self) -> Iterable[Finding]:
        yield from self.others
        for each in self.services:
            yield from each.findings


@dataclass(frozen=True, slots=True)
class ServiceDifference:
    """A Service whose report a what-if changes."""

    before: ServiceReport  # of the cluster as it is
    after: ServiceReport  # of the cluster with the changes
    gone: tuple[Finding, ...]  # only in `before`, the worst first
    new: tuple[Finding, ...]  # only in `after`, the worst first


def document_steps(clusters: Sequence[AuditSubject], changes: Sequence[str]) -> Steps[bytes]:
    """The document in UTF-8, in steps of about 1 ms; `changes` are the texts of a what-if.

    Of several clusters, a what-if is of those that have all its names. Raises Refused.
    """
    parsed = yield from parse_change_steps(changes)
    room = _Room(MAX_OCTETS)
    documents: list[bytes] = []
    refused: Refused | None = None
    supposed = False
    for cluster in clusters:
        try:
            document = yield from _cluster_steps(cluster, parsed, changes, room)
            supposed = True
        except Refused as problem:
            refused = refused or problem
            document = yield from _cluster_steps(cluster, (), (), room)
        documents.append(document)
    if refused is not None and not supposed:
        raise refused
    return b'{"version":%d,"clusters":[%b]}' % (VERSION, b",".join(documents))


class _Room:
    """The octets that are left for the members of lists."""

    def __init__(self, octets: int) -> None:
        self._left = octets

    def take(self, size: int) -> bool:
        self._left -= size
        return self._left >= 0


def _cluster_steps(
    cluster: AuditSubject, parsed: tuple[WhatIf, ...], changes: Sequence[str], room: _Room
) -> Steps[bytes]:
    before, after = yield from audit_steps(cluster.state, cluster.topology, parsed, cluster.kubernetes)
    members: dict[str, bytes] = {
        "origins": _json(cluster.origins),
        "waiting": _json(cluster.waiting),
        "skipped": _json(cluster.skipped[:MAX_SKIPPED]),
        "nodes": _json(before.nodes),
        "counts": _json(_counts(before)),
    }
    members["others"], members["others_left_out"] = yield from _list_steps(map(finding_object, before.others), room)
    services = map(service_object, before.services)
    members["services"], members["services_left_out"] = yield from _list_steps(services, room)
    members["what_if"] = b"null"
    if after is not None:
        changed = (difference_object(each) if each is not None else None for each in difference_steps(before, after))
        listed, left_out = yield from _list_steps(changed, room)
        members["what_if"] = _object(
            {
                "changes": _json(changes),
                "counts": _json(_counts(after)),
                "services": listed,
                "services_left_out": left_out,
            }
        )
        yield
    parts: list[object] = [*before.services, *before.others, *(after.services if after is not None else ())]
    del before, after
    yield from free_steps(parts)
    return _object(members)


def _list_steps(members: Iterable[Mapping[str, object] | None], room: _Room) -> Steps[tuple[bytes, bytes]]:
    """The first MAX_ROWS of these objects as a list, as far as there is room, and the number of the others.

    None is a step without an object.
    """
    listed: list[bytes] = []
    left_out = 0
    for member in members:
        if member is None:
            yield
            continue
        text = _json(member) if len(listed) < MAX_ROWS and not left_out else b""
        if text and room.take(len(text)):
            listed.append(text)
        else:
            left_out += 1
        yield
    return b"[%b]" % b",".join(listed), _json(left_out)


def audit_steps(
    state: ClusterState,
    topology: TopologySettings,
    changes: tuple[WhatIf, ...] = (),
    kubernetes: KubernetesSettings = _ALL_NAMESPACES,
) -> Steps[tuple[AuditReport, AuditReport | None]]:
    """The audit of a cluster under these options: the report, and that with the changes; without the namespaces that
    `kubernetes` hides.

    Raises Refused. Services that are changed between two steps are taken as they are when their turn comes.
    """
    nodes, hides = NodeGroups(state.all_nodes()), partial(excludes, kubernetes, state)
    yield
    scenario = (yield from scenario_steps(state, nodes.nodes, changes, hides)) if changes else None
    after_nodes = NodeGroups(scenario.nodes) if scenario is not None else nodes
    yield
    before, after, hard = _WorstFirst(), _WorstFirst(), False
    yield from state.policies.look_up_steps()
    keys = {*state.policies.all(), *state.max_endpoints, *(scenario.services if scenario is not None else ())}
    for key in (yield from _order_steps(keys, lambda key: key)):
        view = service_view(state, key) if not hides(key.namespace) else None
        yield
        if view is None:
            continue
        hard = hard or _is_hard(view.policy)
        before.add((yield from _service_steps(view, nodes, topology)))
        if scenario is not None:
            after.add((yield from _service_steps((yield from scenario.view_steps(view)), after_nodes, topology)))
    hard = hard and topology.unknown_client is not UnknownClient.ALL
    unlocated = unlocated_finding_steps(state, topology.locate, hard)
    of_corefile = corefile_findings(state, kubernetes, topology, hides)
    others = yield from gather_steps(chain(state_findings(state, hides), of_corefile, unlocated))
    others = yield from _order_steps(others, _rank)
    report = _report(len(nodes.nodes), before.services, others)
    return report, None if scenario is None else _report(len(scenario.nodes), after.services, others)


def _order_steps(values: Collection[T], rank: Callable[[T], Any]) -> Steps[list[T]]:
    """These values in order of their rank, in steps."""
    some, runs = list(values), []
    for at in range(0, len(some), STEP):
        runs.append(sorted(some[at : at + STEP], key=rank))
        yield
    ordered: list[T] = []
    for value in merge(*runs, key=rank):
        ordered.append(value)
        if len(ordered) % STEP == 0:
            yield
    return ordered


def _report(nodes: int, services: tuple[ServiceReport, ...], others: list[Finding]) -> AuditReport:
    """`others` are in order."""
    unknown: list[Finding] = []
    if not nodes and any(each.source for each in services):
        unknown.append(Finding(CLUSTER, "no_nodes", _NO_NODES, Severity.ERROR))
    return AuditReport(nodes, services, tuple(merge(unknown, others, key=_rank)))


def difference_steps(before: AuditReport, after: AuditReport) -> Iterator[ServiceDifference | None]:
    """The Services whose report a what-if changes, by namespace and name; None for each of the others."""
    then: Mapping[ObjectKey, ServiceReport] = {each.service: each for each in after.services}
    for each in sorted(before.services, key=lambda each: each.service):
        yield _difference(each, then[each.service]) if each != then[each.service] else None


def _difference(before: ServiceReport, after: ServiceReport) -> ServiceDifference:
    gone = tuple(each for each in before.findings if each not in after.findings)
    new = tuple(each for each in after.findings if each not in before.findings)
    return ServiceDifference(before, after, gone, new)


def _service_steps(view: ServiceView, nodes: NodeGroups, topology: TopologySettings) -> Steps[ServiceReport]:
    def report_steps(found: Coverage) -> Steps[ServiceReport]:
        findings = chain(view_findings(view, topology, nodes), coverage_finding_steps(found, nodes))
        ranked = _ranked(with_origin(each, view.policy, topology) for each in (yield from gather_steps(findings)))
        text = policy_text(view.policy, view.guards.max_endpoints)
        return ServiceReport(
            service=view.key,
            keys=text.keys,
            source=text.source,
            guards=text.guards,
            endpoints=found.endpoints,
            nodes=found.nodes,
            covered=found.covered,
            zones=found.zones,
            skew=round(found.skew, 3),
            findings=ranked,
        )

    return use_coverage_steps(view, nodes, topology, report_steps)


def _is_hard(policy: Policy | InvalidPolicy | None) -> bool:
    """Whether clients of unknown location get no endpoint of a Service with this policy."""
    return isinstance(policy, Policy) and bool(policy.keys) and policy.keys[-1] != ANY_KEY


def _ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=_rank))


def _rank(found: Finding) -> tuple[int, ObjectKey, str, str]:
    return _RANKS[found.severity], found.service, found.kind, found.text


class _WorstFirst:
    """Reports by their worst finding, those of one severity in the order in which they are added."""

    def __init__(self) -> None:
        self._by_rank: list[list[ServiceReport]] = [[] for _ in range(_CLEAN + 1)]

    def add(self, report: ServiceReport) -> None:
        self._by_rank[_RANKS[report.findings[0].severity] if report.findings else _CLEAN].append(report)

    @property
    def services(self) -> tuple[ServiceReport, ...]:
        return tuple(chain.from_iterable(self._by_rank))


def service_object(report: ServiceReport) -> AuditedServiceObject:
    """One Service of an audit."""
    findings = [finding_object(each) for each in report.findings]
    return {"service": str(report.service), **_numbers(report), "findings": findings}


def _numbers(report: ServiceReport) -> NumbersObject:
    return {
        "keys": report.keys,
        "source": report.source or None,
        "guards": report.guards,
        "endpoints": report.endpoints,
        "nodes": report.nodes,
        "covered": report.covered,
        "zones": [
            {"zone": name, "nodes": each.nodes, "covered": each.covered, "endpoints": each.endpoints}
            for name, each in islice(report.zones.items(), MAX_ZONES)
        ],
        "skew": report.skew,
    }


def difference_object(change: ServiceDifference) -> ChangedServiceObject:
    """One Service that a what-if changes."""
    return {
        "service": str(change.before.service),
        "before": _numbers(change.before),
        "after": _numbers(change.after),
        "gone": [finding_object(each) for each in change.gone],
        "new": [finding_object(each) for each in change.new],
    }


def finding_object(found: Finding) -> FindingObject:
    """One finding as a JSON object, without members that have no value."""
    details: Mapping[str, object] = {
        "nodes": found.nodes,
        "node_names": found.node_names,
        "zones": found.zones,
        "keys": found.keys,
        "endpoints": found.endpoints,
        "family": found.family,
        "ratio": found.ratio,
    }
    head: FindingObject = {
        "service": str(found.service) if found.service != CLUSTER else None,
        "severity": found.severity.value,
        "kind": found.kind,
        "text": found.text_with_names,
    }
    return cast(FindingObject, {**head, **{name: value for name, value in details.items() if value}})


def _counts(report: AuditReport) -> CountsObject:
    counts = Counter(found.severity for found in report.findings)
    return {"error": counts[Severity.ERROR], "warning": counts[Severity.WARNING], "info": counts[Severity.INFO]}


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _object(members: Mapping[str, bytes]) -> bytes:
    return b"{%b}" % b",".join(b'"%b":%b' % (name.encode(), value) for name, value in members.items())
