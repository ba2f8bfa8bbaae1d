"""One Service as a row of the page: its keys, and per topology zone what a client on each Node gets."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from topodns.cluster.model import ANY_KEY, InvalidPolicy, ObjectKey, Policy
from topodns.files.time_slices import Job
from topodns.plugins.topology import TopologySettings
from topodns.topology.cluster_view import ServiceView
from topodns.topology.coverage import Coverage, FamilyAnswer, coverage_steps
from topodns.topology.node_groups import NodeGroups
from topodns.topology.select import OnInvalid, UnknownClient

MAX_ROWS: Final = 2000  # in one reply
STEP: Final = 100  # groups of Nodes counted in one step

DARK: Final = 3  # severities: clients on some Node get no endpoint
EMPTY: Final = 2  # there is no ready endpoint
PROBLEM: Final = 1  # the keys are invalid, without effect, or harmful


class ZoneCell(NamedTuple):
    """One topology zone of one Service."""

    endpoints: int
    nodes: int
    covered: int  # Nodes whose clients get an endpoint
    near: int  # Nodes whose clients get endpoints by another key than `*`


@dataclass(frozen=True, slots=True)
class ServiceRow:
    name: str  # namespace/name
    severity: int  # 0, or one of the constants above
    text: str  # a JSON object, see `row_of`
    zones: Mapping[str, ZoneCell] = field(default_factory=dict)


def service_row(
    key: ObjectKey, view: ServiceView | None, notice: str, groups: NodeGroups, topology: TopologySettings | None
) -> Job[ServiceRow]:
    """The row of one Service. `view` None: it is not headless. `notice`: the state's warning about its keys."""
    name = f"{key.namespace}/{key.name}"
    if view is None:
        row = {"id": name, "keys": [], "source": "", "problems": [notice], "endpoints": 0, "zones": {}}
        return ServiceRow(name, PROBLEM, json.dumps(row))
    found = yield from view_coverage(view, groups, topology)
    cells = yield from zone_cells(found)
    severity = DARK if found.covered < found.nodes else PROBLEM if problems_of(view, notice) else 0
    text = json.dumps(row_of(found, cells, view, notice))
    return ServiceRow(name, severity if found.endpoints else EMPTY, text, cells)


def view_coverage(view: ServiceView, groups: NodeGroups, topology: TopologySettings | None) -> Job[Coverage]:
    """The coverage of a view under the options of `topology`."""
    unknown_client = topology.unknown_client if topology is not None else UnknownClient.STRICT
    on_invalid = topology.on_invalid if topology is not None else OnInvalid.IGNORE
    return (yield from coverage_steps(view, groups, unknown_client, on_invalid))


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


def row_of(found: Coverage, cells: Mapping[str, ZoneCell], view: ServiceView, notice: str = "") -> Mapping[str, object]:
    """The row as a JSON object. `zones`: a ZoneCell, an array, by the zone's name."""
    return {
        "id": f"{view.key.namespace}/{view.key.name}",
        "keys": _keys_of(view),
        "source": view.policy.source.value if view.policy is not None else "",
        "problems": problems_of(view, notice),
        "endpoints": found.endpoints,
        "zones": cells,
    }


def _keys_of(view: ServiceView) -> list[str]:
    """The keys of a valid policy; for one that follows the EndpointSlices' hints the word `hints`."""
    if not isinstance(view.policy, Policy):
        return []
    return list(view.policy.keys) or ["hints"]


def problems_of(view: ServiceView, notice: str = "") -> list[str]:
    """What is wrong with the keys, a line each."""
    policy, problems = view.policy, [notice] if notice else []
    if isinstance(policy, InvalidPolicy):
        problems.append(policy.problem)
    elif policy is not None:
        problems += policy.warnings
        if view.governing and not policy.asks_nothing:
            problems.append("the governing Service of a StatefulSet: its members may not find each other")
    return problems


def is_near(answer: FamilyAnswer) -> bool:
    """Whether a client gets endpoints by another key than `*`."""
    return bool(answer.group.endpoints) and answer.key not in ("", ANY_KEY)
