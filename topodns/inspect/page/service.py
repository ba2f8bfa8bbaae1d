"""One Service on the page: as a row with what clients of each topology zone get, and with all details."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from ipaddress import ip_address
from typing import Final

from topodns.cluster.endpoints import EMPTY_GROUP, Group
from topodns.cluster.model import ZONE_LABEL, Endpoint, Node, ObjectKey, Policy
from topodns.inspect.askers import NO_ASKERS, Askers
from topodns.inspect.coverage import use_coverage_steps
from topodns.inspect.findings import coverage_finding_steps, view_findings
from topodns.inspect.model import (
    ClientGroup,
    Coverage,
    NodeGroups,
    ServiceView,
    Steps,
    ZoneCoverage,
    free_steps,
    gather_steps,
    policy_text,
)
from topodns.plugins.kubernetes.question import ALL, NEAR
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.query_sample import MINUTES

MAX_ROWS: Final = 2000  # in one reply
MAX_COLUMNS: Final = 50  # zones
MAX_ENDPOINTS: Final = 500  # shown of one Service
MAX_GROUPS: Final = 500  # groups of Nodes shown
MAX_FINDINGS: Final = 20  # of an audit shown
MAX_NAMES: Final = 100  # of the Nodes of one group
STEP: Final = 100  # endpoints or groups written in one step

_GROUPS: Final = 100  # of clients, or of endpoints, whose flows are added in one step

UNCOVERED: Final = 3  # severities: clients on some Node get no endpoint
EMPTY: Final = 2  # there is no ready endpoint
PROBLEM: Final = 1  # the keys are invalid, without effect, or harmful


Cell = tuple[int, int, int, int]
"""One topology zone of one Service: endpoints, and Nodes, all, covered and near, as of a ZoneCoverage."""


class ZoneColumns:
    """The zones that have a column of their own on the page: those with the most Nodes; all others share one.

    Where there is room, so have zones of endpoints without a Node, in the order in which they are met.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        counts = Counter(node.labels.get(ZONE_LABEL, "") for node in nodes)
        self.names = set(nsmallest(MAX_COLUMNS, counts, key=lambda name: (-counts[name], name)))
        self.others = len(counts) > MAX_COLUMNS  # whether some zone has none

    def split(self, zones: Mapping[str, ZoneCoverage]) -> tuple[Mapping[str, Cell], Cell | None]:
        """The cells of zones with a column, and the sum of the others; None if there are none."""
        shown = {name: _cell(one) for name, one in zones.items() if self._has(name)}
        if len(shown) == len(zones):
            return shown, None
        others = [_cell(one) for name, one in zones.items() if name not in shown]
        endpoints, nodes, covered, near = map(sum, zip(*others, strict=True))
        return shown, (endpoints, nodes, covered, near)

    def _has(self, name: str) -> bool:
        if name not in self.names and len(self.names) < MAX_COLUMNS:
            self.names.add(name)
        self.others = self.others or name not in self.names
        return name in self.names


@dataclass(frozen=True, slots=True, eq=False)
class RowScope:
    """What rows are made of beside their Service: the Nodes, the columns, and the options of `topology`."""

    groups: NodeGroups
    columns: ZoneColumns
    topology: TopologySettings


@dataclass(frozen=True, slots=True)
class ServiceRow:
    name: str  # namespace/name
    severity: int  # 0, or one of the constants above
    endpoints: int  # ready ones
    text: str  # a JSON object, see `row_of`
    zones: Mapping[str, ZoneCoverage] = field(default_factory=dict)  # with and without a column


def service_row_steps(
    key: ObjectKey, view: ServiceView | None, notices: tuple[str, ...], scope: RowScope
) -> Steps[ServiceRow]:
    """The row of one Service. `view` None: it is not headless, so the row has only `notices`.

    `notices`: the findings about its annotations, objects and labels (`inspect.findings.notice_steps`).
    """
    name = str(key)
    if view is None:
        row = {"id": name, "keys": [], "source": "", "problems": notices, "endpoints": 0, "zones": {}, "others": None}
        return ServiceRow(name, PROBLEM, 0, json.dumps(row))

    def row_steps(found: Coverage) -> Steps[ServiceRow]:
        written = row_of(found, notices, scope)
        yield
        severity = UNCOVERED if found.covered < found.nodes else PROBLEM if written["problems"] else 0
        severity = severity if found.endpoints else EMPTY
        return ServiceRow(name, severity, found.endpoints, json.dumps(written), found.zones)

    return (yield from use_coverage_steps(view, scope.groups, scope.topology, row_steps, with_alone=False))


def service_detail_steps(
    view: ServiceView, notices: tuple[str, ...], scope: RowScope, askers: Askers = NO_ASKERS
) -> Steps[bytes]:
    """The details of a Service as a JSON object; the first arguments are those of `service_row_steps`.

    `names`: to which of its names the keys apply, in words.
    `clients`: groups of Nodes whose clients get the same answers, those without an endpoint first. `flows`: see
    `_flow_steps`, with each Node as one client. `queries`: the same by the queries of the last `minutes`, of which
    `unlocated` came from clients without a Node; null if too few are known. `findings`: those of an audit that are no
    `problems`, each with its severity.
    """

    def detail_steps(found: Coverage) -> Steps[bytes]:
        clients = yield from _client_steps(found, view.guards.max_endpoints)
        findings = yield from gather_steps(coverage_finding_steps(found, scope.groups))
        endpoints = yield from _endpoint_steps(found, scope.groups.nodes)
        flows = yield from _flow_steps(found, scope, lambda name: 1)
        queries = (yield from _queries_steps(found, scope, askers)) if askers.is_known else None
        findings = [each for each in findings if not each.text.endswith(notices)]  # those are `problems` already
        detail = {
            **row_of(found, notices, scope),
            "names": _names(view),
            "findings": [
                {"severity": finding.severity.value, "text": finding.text} for finding in findings[:MAX_FINDINGS]
            ],
            "flows": flows,
            "queries": queries,
            "clients_left_out": len(found.clients) - len(clients),
            "listed_of": len(found.load),
            "skew": round(found.skew, 2),
        }
        lists = f'"clients":[{",".join(clients)}],"listed":[{",".join(endpoints)}]'
        return f"{json.dumps(detail)[:-1]},{lists}}}".encode()

    return use_coverage_steps(view, scope.groups, scope.topology, detail_steps)


def row_of(found: Coverage, notices: tuple[str, ...], scope: RowScope) -> Mapping[str, object]:
    """The row as a JSON object.

    `problems`: what is wrong with the keys, a line each: what an audit finds in them. `zones`: a Cell, an array, by the
    name of each zone that has a column; `others`: one for all other zones, null if there is none.
    """
    view = found.service
    shown, others = scope.columns.split(found.zones)
    text = policy_text(view.policy, view.guards.max_endpoints)
    hints = isinstance(view.policy, Policy) and not text.keys  # it follows the EndpointSlices' hints
    return {
        "id": str(view.key),
        "keys": ["hints"] if hints else text.keys,
        "source": text.source,
        "guards": text.guards,
        "problems": [*notices, *(found.text for found in view_findings(view, scope.topology, scope.groups))],
        "endpoints": found.endpoints,
        "zones": shown,
        "others": others,
    }


def _cell(zone_coverage: ZoneCoverage) -> Cell:
    return zone_coverage.endpoints, zone_coverage.nodes, zone_coverage.covered, zone_coverage.near


def _names(view: ServiceView) -> str:
    name, near, every = view.key.name, f"{NEAR}.{view.key.name}", f"{ALL}.{view.key.name}"
    if view.policy is None:
        return f"{near} by hostname, zone and *; {name} and {every} without keys"
    if isinstance(view.policy, Policy) and view.policy.near_only:
        return f"{near} by the keys, and so the figures here; {name} and {every} without keys"
    return f"{name} and {near} by the keys; {every} without keys"


def _client_steps(found: Coverage, most: int | None) -> Steps[list[str]]:
    """The groups of clients as JSON."""
    first: list[tuple[bool, str, int, int, ClientGroup]] = []
    for at, group in enumerate(found.clients, 1):
        first.append((group.covered, group.topology_zone, -group.size, at, group))
        if at % MAX_GROUPS == 0:
            yield
            first = sorted(first)[:MAX_GROUPS]
            yield
    clients = []
    for at, (*_, group) in enumerate(sorted(first)[:MAX_GROUPS], 1):
        clients.append(json.dumps(_group(group, most)))
        if at % STEP == 0:
            yield
    return clients


def _group(group: ClientGroup, most: int | None) -> Mapping[str, object]:
    """`most`: the endpoints of an answer at most; None: no bound."""
    names = [node.name for node, _ in zip(group.nodes, range(MAX_NAMES), strict=False)]
    return {
        "zone": group.topology_zone,
        "nodes": names,
        "size": group.size,
        "covered": group.covered,
        "near": group.near,
        "answers": [
            {
                "family": answer.family,
                "reason": answer.reason.value,
                "key": answer.key,
                "endpoints": min(len(answer.group.endpoints), most or answer.matches),
            }
            for answer in group.answers
        ],
    }


class _Flows:
    """Where the queries of a zone's clients go: a client divides its queries evenly among the endpoints of its answer.

    All figures but `nodes` are in the unit of `_flow_steps`.
    """

    def __init__(self) -> None:
        self.nodes = 0
        self.all = 0.0
        self.nowhere = 0.0
        self.own_node = 0.0
        # By the zone of the endpoints; None: one without a column.
        self.to: defaultdict[str | None, float] = defaultdict(float)

    def json(self, topology_zone: str | None) -> Mapping[str, object]:
        to = [[name, round(share, 2)] for name, share in self.to.items()]
        return {
            "zone": topology_zone,
            "nodes": self.nodes,
            "all": round(self.all, 2),
            "nowhere": round(self.nowhere, 2),
            "own_node": round(self.own_node, 2),
            "to": to,
        }


def _queries_steps(found: Coverage, scope: RowScope, askers: Askers) -> Steps[Mapping[str, object]]:
    by_node = askers.by_node
    flows = yield from _flow_steps(found, scope, by_node.__getitem__)
    return {"minutes": MINUTES, "all": askers.queries, "unlocated": by_node[""], "flows": flows}


def _flow_steps(found: Coverage, scope: RowScope, weight: Callable[[str], float]) -> Steps[list[Mapping[str, object]]]:
    """The flows from each zone with Nodes, for the family with more endpoints.

    `weight`: of a Node's clients, by its name; all flows are in its unit.

    A zone without a column counts as null. Each group of endpoints is gone through once, not once per client.
    """
    names, nodes = scope.columns.names, scope.groups.nodes
    family = max(found.service.families, key=lambda each: len(each[1]), default=(4, ()))[0]
    flows: dict[str | None, _Flows] = {}
    askers: dict[
        int, tuple[Group, defaultdict[str | None, float]]
    ] = {}  # by id() of endpoints: these, and clients by zone
    asked: dict[str, int] = {}  # by the name of a Node: id() of the endpoints that its clients get
    done = 0
    for clients in found.clients:
        here = clients.topology_zone if clients.topology_zone in names else None
        of_zone = flows.setdefault(here, _Flows())
        of_zone.nodes += clients.size
        size = sum(weight(node.name) for node in clients.nodes)
        of_zone.all += size
        group = next((each.group for each in clients.answers if each.family == family), EMPTY_GROUP)
        if not group.endpoints:
            of_zone.nowhere += size
            continue
        askers.setdefault(id(group), (group, defaultdict(float)))[1][here] += size
        for node in clients.nodes:
            asked[node.name] = id(group)
            done += 1
            if done % _GROUPS == 0:
                yield
    for number, (group, clients_by_zone) in askers.items():
        share = 1 / len(group.endpoints)
        of_group: Counter[str | None] = Counter()
        for endpoint in group.endpoints:
            there = _zone_of(endpoint, nodes)
            to = there if there in names else None
            of_group[to] += 1
            if asked.get(endpoint.node_name) == number:
                flows[to].own_node += share * weight(endpoint.node_name)
            done += 1
            if done % _GROUPS == 0:
                yield
        for here, size in clients_by_zone.items():
            for to, count in of_group.items():
                flows[here].to[to] += size * count * share
    parts: list[object] = list(askers.values())
    askers.clear()
    yield from free_steps(parts)
    return [flows[each].json(each) for each in sorted(flows, key=lambda name: (name is None, name))]


def _endpoint_steps(found: Coverage, nodes: Mapping[str, Node]) -> Steps[list[str]]:
    """The first endpoints as JSON."""
    endpoints = []
    for at, (endpoint, clients) in enumerate(found.load[:MAX_ENDPOINTS], 1):
        one = {
            "address": str(ip_address(endpoint.address)),
            "hostname": endpoint.hostname,
            "node": endpoint.node_name,
            "zone": _zone_of(endpoint, nodes),
            "clients": round(clients, 2),
        }
        endpoints.append(json.dumps(one))
        if at % STEP == 0:
            yield
    return endpoints


def _zone_of(endpoint: Endpoint, nodes: Mapping[str, Node]) -> str:
    """The value of topology.kubernetes.io/zone that counts: the Node's, or without a Node the slice's."""
    node = nodes.get(endpoint.node_name)
    return node.labels.get(ZONE_LABEL, "") if node is not None else endpoint.topology_zone or ""
