"""One Service as a row of the page: its keys, and per topology zone what a client on each Node gets."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Final, NamedTuple

from topodns.cluster.model import ANY_KEY, ZONE_LABEL, Node, ObjectKey, Policy
from topodns.inspect.cluster_view import ServiceView
from topodns.inspect.coverage import Coverage, FamilyAnswer, coverage_steps, free_steps, parts_of
from topodns.inspect.node_groups import NodeGroups
from topodns.plugins.topology.settings import TopologySettings
from topodns.time_slices import Job
from topodns.topology.findings import key_findings
from topodns.topology.select import OnInvalid, UnknownClient

MAX_ROWS: Final = 2000  # in one reply
MAX_COLUMNS: Final = 50  # zones
STEP: Final = 100  # groups of Nodes counted in one step

UNCOVERED: Final = 3  # severities: clients on some Node get no endpoint
EMPTY: Final = 2  # there is no ready endpoint
PROBLEM: Final = 1  # the keys are invalid, without effect, or harmful


class ZoneCell(NamedTuple):
    """One topology zone of one Service."""

    endpoints: int
    nodes: int
    covered: int  # Nodes whose clients get an endpoint
    near: int  # Nodes whose clients get endpoints by another key than `*`


class ZoneColumns:
    """The zones that have a column of their own on the page: those with the most Nodes; all others share one.

    Where there is room, so have zones of endpoints without a Node, in the order in which they are met.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        counts = Counter(node.labels.get(ZONE_LABEL, "") for node in nodes)
        self.names = set(nsmallest(MAX_COLUMNS, counts, key=lambda name: (-counts[name], name)))
        self.others = len(counts) > MAX_COLUMNS  # whether some zone has none

    def split(self, cells: Mapping[str, ZoneCell]) -> tuple[Mapping[str, ZoneCell], ZoneCell | None]:
        """The cells of zones with a column, and the sum of the others; None if there are none."""
        shown = {name: cell for name, cell in cells.items() if self._has(name)}
        if len(shown) == len(cells):
            return shown, None
        others = (cell for name, cell in cells.items() if name not in shown)
        return shown, ZoneCell(*map(sum, zip(*others, strict=True)))

    def _has(self, name: str) -> bool:
        if name not in self.names and len(self.names) < MAX_COLUMNS:
            self.names.add(name)
        self.others = self.others or name not in self.names
        return name in self.names


@dataclass(frozen=True, slots=True)
class ServiceRow:
    name: str  # namespace/name
    severity: int  # 0, or one of the constants above
    text: str  # a JSON object, see `row_of`
    zones: Mapping[str, ZoneCell] = field(default_factory=dict)  # with and without a column


def service_row(
    key: ObjectKey,
    view: ServiceView | None,
    notice: str,
    groups: NodeGroups,
    columns: ZoneColumns,
    topology: TopologySettings | None,
) -> Job[ServiceRow]:
    """The row of one Service, as a job of short steps. `view` None: it is not headless, so the row has only `notice`.

    `notice`: the state's warning about its keys, "" for none. `topology` None: the options are the defaults.
    """
    name = str(key)
    if view is None:
        row = {"id": name, "keys": [], "source": "", "problems": [notice], "endpoints": 0, "zones": {}, "others": None}
        return ServiceRow(name, PROBLEM, json.dumps(row))
    found = yield from view_coverage(view, groups, topology, with_alone=False)
    cells = yield from zone_cells(found)
    written = row_of(found, cells, view, notice, columns, topology)
    severity = UNCOVERED if found.covered < found.nodes else PROBLEM if written["problems"] else 0
    made = ServiceRow(name, severity if found.endpoints else EMPTY, json.dumps(written), cells)
    parts = parts_of(found)
    del found
    yield from free_steps(parts)
    return made


def view_coverage(
    view: ServiceView, groups: NodeGroups, topology: TopologySettings | None, with_alone: bool = True
) -> Job[Coverage]:
    """The coverage of a view under the options of `topology`. `with_alone`: as of `coverage_steps`."""
    unknown_client = topology.unknown_client if topology is not None else UnknownClient.STRICT
    on_invalid = topology.on_invalid if topology is not None else OnInvalid.IGNORE
    return (yield from coverage_steps(view, groups, unknown_client, on_invalid, with_alone))


def zone_cells(found: Coverage) -> Job[Mapping[str, ZoneCell]]:
    """The cells by zone; "" for Nodes and endpoints without one."""
    near: Counter[str] = Counter()
    for at, group in enumerate(found.clients, 1):
        if any(map(is_near, group.answers)):
            near[group.topology_zone] += group.size
        if at % STEP == 0:
            yield
    return {
        each.topology_zone: ZoneCell(each.endpoints, each.nodes, each.covered, near[each.topology_zone])
        for each in found.zones
    }


def row_of(
    found: Coverage,
    cells: Mapping[str, ZoneCell],
    view: ServiceView,
    notice: str,
    columns: ZoneColumns,
    topology: TopologySettings | None,
) -> Mapping[str, object]:
    """The row as a JSON object.

    `zones`: a ZoneCell, an array, by the name of each zone that has a column; `others`: one for all other zones, null
    if there is none.
    """
    shown, others = columns.split(cells)
    return {
        "id": str(view.key),
        "keys": _keys_of(view),
        "source": view.policy.source.value if view.policy is not None else "",
        "problems": _problems(view, notice, topology),
        "endpoints": found.endpoints,
        "zones": shown,
        "others": others,
    }


def _keys_of(view: ServiceView) -> list[str]:
    """The keys of a valid policy; for one that follows the EndpointSlices' hints the word `hints`."""
    if not isinstance(view.policy, Policy):
        return []
    return list(view.policy.keys) or ["hints"]


def _problems(view: ServiceView, notice: str, topology: TopologySettings | None) -> list[str]:
    """What is wrong with the keys, a line each: what an audit finds in them."""
    ignored = topology is None or topology.on_invalid is OnInvalid.IGNORE
    findings = key_findings(view.key, view.policy, view.governing, ignored)
    return [*((notice,) if notice else ()), *(finding.text for finding in findings)]


def is_near(answer: FamilyAnswer) -> bool:
    """Whether a client gets endpoints by another key than `*`."""
    return bool(answer.group.endpoints) and answer.key not in ("", ANY_KEY)
