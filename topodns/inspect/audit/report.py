"""Audit of a cluster: the coverage and the findings of every Service with topology keys, as it is or for a what-if.

The work is done in small steps, since a server does it between queries.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from itertools import chain
from typing import Any, Final, TypeVar

from topodns.cluster.model import ANY_KEY, InvalidPolicy, ObjectKey, Policy
from topodns.cluster.state import ClusterState
from topodns.inspect.cluster_view import ServiceView, service_view
from topodns.inspect.coverage import ZoneCoverage, coverage_steps, free_steps, parts_of
from topodns.inspect.coverage_findings import coverage_findings
from topodns.inspect.node_groups import NodeGroups
from topodns.inspect.unlocated import unlocated_findings
from topodns.inspect.what_if import WhatIf, scenario_steps
from topodns.topology.client_locator import Method
from topodns.topology.findings import CLUSTER, Finding, Severity, key_findings, left_out_findings, notice_findings
from topodns.topology.select import OnInvalid, UnknownClient

STEP: Final = 200  # keys or findings put in order in one step, about 0.3 ms

T = TypeVar("T")

_RANKS: Final = {severity: rank for rank, severity in enumerate(Severity)}
_CLEAN: Final = len(_RANKS)
_NO_NODES: Final = "no Node is known, so it is not known which clients get an endpoint"


@dataclass(frozen=True, slots=True)
class AuditRules:
    """The options of the directive `topology` that decide which client gets which endpoints."""

    unknown_client: UnknownClient
    on_invalid: OnInvalid
    methods: tuple[Method, ...]


@dataclass(frozen=True, slots=True)
class ServiceReport:
    """One Service of an audit. `covered` counts the Nodes whose clients get an endpoint."""

    service: ObjectKey
    keys: tuple[str, ...]  # empty if invalid, without a policy, or if it follows the hints
    source: str  # of the keys, as in the option `keys`; "" without a policy
    endpoints: int
    nodes: int
    covered: int
    zones: tuple[ZoneCoverage, ...]
    skew: float
    findings: tuple[Finding, ...]  # the worst first


@dataclass(frozen=True, slots=True)
class AuditReport:
    """An audit: the Services with keys, the worst first, and the findings about none of them."""

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


def audit_steps(
    state: ClusterState, rules: AuditRules, changes: tuple[WhatIf, ...] = ()
) -> Generator[None, None, tuple[AuditReport, AuditReport | None]]:
    """Audit a cluster in steps of less than 1 ms each; the generator returns the report, and that with the changes.

    Raises BadWhatIf. Services that are changed between two steps are taken as they are when their turn comes.
    """
    nodes = NodeGroups(state.all_nodes())
    yield
    scenario = (yield from scenario_steps(state, nodes.nodes, changes)) if changes else None
    after_nodes = NodeGroups(scenario.nodes) if scenario is not None else nodes
    yield
    governing = state.governing_services()
    before, after = _WorstFirst(), _WorstFirst()
    keys = {*state.policies, *(scenario.services if scenario is not None else ())}
    for key in (yield from _order_steps(keys, lambda key: key)):
        view = service_view(state, key, governing)
        if view is None:
            continue
        yield
        before.add((yield from _service_steps(view, nodes, rules)))
        if scenario is not None:
            after.add((yield from _service_steps(scenario.view(view), after_nodes, rules)))
    others: list[Finding] = []
    for notice in chain(left_out_findings(state), notice_findings(state)):
        if notice is not None:
            others.append(notice)
        yield
    hard = rules.unknown_client is not UnknownClient.ALL and any(map(_is_hard, state.policies.values()))
    for found in unlocated_findings(state, rules.methods, hard):
        if found is not None:
            others.append(found)
        yield
    others = yield from _order_steps(others, _rank)
    report = _report(len(nodes.nodes), before.services, others)
    return report, None if scenario is None else _report(len(scenario.nodes), after.services, others)


def _order_steps(values: Collection[T], rank: Callable[[T], Any]) -> Generator[None, None, list[T]]:
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


def difference(before: AuditReport, after: AuditReport) -> Iterator[ServiceDifference | None]:
    """The Services whose report a what-if changes, by namespace and name; None for each of the others."""
    then: Mapping[ObjectKey, ServiceReport] = {each.service: each for each in after.services}
    for each in sorted(before.services, key=lambda each: each.service):
        yield _difference(each, then[each.service]) if each != then[each.service] else None


def _difference(before: ServiceReport, after: ServiceReport) -> ServiceDifference:
    gone = tuple(each for each in before.findings if each not in after.findings)
    new = tuple(each for each in after.findings if each not in before.findings)
    return ServiceDifference(before, after, gone, new)


def _service_steps(view: ServiceView, nodes: NodeGroups, rules: AuditRules) -> Generator[None, None, ServiceReport]:
    found = yield from coverage_steps(view, nodes, rules.unknown_client, rules.on_invalid)
    ignored = rules.on_invalid is OnInvalid.IGNORE
    findings = list(key_findings(view.key, view.policy, view.governing, ignored))
    for one in coverage_findings(view, found, nodes):
        if one is not None:
            findings.append(one)
        yield
    policy = view.policy
    report = ServiceReport(
        view.key,
        policy.keys if isinstance(policy, Policy) else (),
        policy.source.value if policy is not None else "",
        found.endpoints,
        found.nodes,
        found.covered,
        found.zones,
        round(found.skew, 3),
        _ranked(findings),
    )
    yield
    parts = parts_of(found)
    del found
    yield from free_steps(parts)
    return report


def _is_hard(policy: Policy | InvalidPolicy) -> bool:
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
