"""What-if for the page: the rows of Services as they would be after changes that are only supposed."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from topodns.app.topology_page.rows import MAX_ROWS, ServiceRow, ZoneCell, service_row
from topodns.app.topology_page.work import Refused
from topodns.cluster.model import ObjectKey
from topodns.cluster.state import ClusterState
from topodns.files.time_slices import Job
from topodns.plugins.topology import TopologySettings
from topodns.topology.cluster_view import service_view
from topodns.topology.node_groups import NodeGroups
from topodns.topology.what_if import BadWhatIf, Rekeyed, ScaledDown, Scenario, parse_changes

_NO_CELL: Final = ZoneCell(0, 0, 0, 0)


def scenario_of(state: ClusterState, groups: NodeGroups, texts: Sequence[str]) -> Scenario:
    """The scenario of these changes, `topology.what_if` has their form. Raises Refused for nonsense."""
    if not texts:
        raise Refused(400, "found no change, expected change=node=NAME:down or another")
    try:
        changes = parse_changes(texts)
        named = {change.service for change in changes if isinstance(change, ScaledDown | Rekeyed)}
        known = {key for key in named if (service := state.service(key)) is not None and service.headless}
        if named - known:  # the message has the nearest name of all
            known = {ObjectKey(*key) for key, service in state.services.items() if service.headless}
        return Scenario(changes, groups.nodes, known)
    except BadWhatIf as problem:
        raise Refused(400, str(problem)) from None


def what_if(state: ClusterState, topology: TopologySettings | None, scenario: Scenario, groups: NodeGroups) -> Job[str]:
    """The result as a JSON object: `rows` are those that would differ, `worse` the Services whose clients would lose.

    A member of `worse`: the Service, and for how many more of the Nodes that are left clients would get no endpoint
    (`dark`) or only far ones (`far`). `differ` is the number of rows that would, of which the first MAX_ROWS are there,
    and `nodes` that of the Nodes that are left. Raises Refused if a Service has fewer Pods than the scenario takes.
    """
    after_groups = NodeGroups(scenario.nodes)
    governing, notices = state.governing_services(), state.policy_notices()
    differ, rows = 0, list[str]()
    worse: list[Mapping[str, object]] = []
    for key in sorted({*state.policies, *scenario.services}):
        view = service_view(state, key, governing)
        if view is None:
            continue
        notice = notices.get(key, "")
        try:
            then = scenario.view(view)
        except BadWhatIf as problem:
            raise Refused(400, str(problem)) from None
        yield
        before = yield from service_row(key, view, notice, groups, topology)
        yield
        after = yield from service_row(key, then, notice, after_groups, topology)
        yield
        if after.text == before.text:
            continue
        differ += 1
        if len(rows) < MAX_ROWS:
            rows.append(after.text)
        dark, far = _lost(before, after)
        if dark or far:
            worse.append({"id": after.name, "dark": dark, "far": far})
    counts = f'"differ":{differ},"nodes":{len(scenario.nodes)}'
    return f'{{{counts},"worse":{json.dumps(worse)},"rows":[{",".join(rows)}]}}'


def _lost(before: ServiceRow, after: ServiceRow) -> tuple[int, int]:
    """On how many more Nodes clients get no endpoint, and on how many others only far ones instead of near ones."""
    dark = far = 0
    for name, then in after.zones.items():
        now = before.zones.get(name, _NO_CELL)
        darker = max(0, (then.nodes - then.covered) - (now.nodes - now.covered))
        dark += darker
        far += max(0, (then.nodes - then.near) - (now.nodes - now.near) - darker)
    return dark, far
