"""What-if for the page: the rows of Services as they would be after hypothetical changes of the cluster."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from topodns.inspect.errors import Refused
from topodns.inspect.findings import notice_steps
from topodns.inspect.model import NodeGroups, Steps, ZoneCoverage, service_view
from topodns.inspect.page.service import MAX_ROWS, ServiceRow, service_row_steps
from topodns.inspect.page.snapshot import SnapshotMaker
from topodns.inspect.what_if import parse_change_steps, scenario_steps

_NO_ZONE: Final = ZoneCoverage(0, 0, 0, 0)


def what_if_steps(maker: SnapshotMaker, texts: Sequence[str]) -> Steps[bytes]:
    """The result of these changes as a JSON object: `rows` are those that would differ, `worse` the Services whose
    clients would lose. `inspect.what_if` has the form of a change.

    A member of `worse`: the Service, for how many more of the Nodes that are left clients would get no endpoint
    (`without_endpoints`) or only far ones (`far`), and how many endpoints it has then (`endpoints`); those that would
    have none are all there. `differ` is the number of rows that would, of which the first MAX_ROWS are there, `nodes`
    that of the Nodes that are left, `endpoints` the ready ones of all Services of the page before and after. Raises
    Refused for nonsense.
    """
    changes = yield from parse_change_steps(texts)
    if not changes:
        raise Refused("found no change, expected change=node=NAME:down or another")
    state, scope, hides = maker.cluster.state, maker.scope(), maker.cluster.hides
    yield
    scenario = yield from scenario_steps(state, scope.groups.nodes, changes, hides)
    after_scope = replace(scope, groups=NodeGroups(scenario.nodes))
    yield
    notices = yield from notice_steps(state, hides)
    differ, rows, ready_before, ready_after = 0, list[str](), 0, 0
    worse: list[Mapping[str, object]] = []
    for key in sorted({*state.policies.all(), *state.max_endpoints, *scenario.services}):
        view = service_view(state, key) if not hides(key.namespace) else None
        if view is None:
            yield
            continue
        problems = notices.get(key, ())
        then = yield from scenario.view_steps(view)
        yield
        before = maker.kept_row(key, view, problems, scope)
        if before is None or not before.zones:
            before = yield from service_row_steps(key, view, problems, scope)
        yield
        after = yield from service_row_steps(key, then, problems, after_scope)
        yield
        ready_before, ready_after = ready_before + before.endpoints, ready_after + after.endpoints
        if after.text == before.text:
            continue
        differ += 1
        if len(rows) < MAX_ROWS:
            rows.append(after.text)
        without, far = _lost(before, after)
        if without or far or before.endpoints > after.endpoints == 0:
            lost = {"id": after.name, "without_endpoints": without, "far": far, "endpoints": after.endpoints}
            worse.append(lost)
    yield
    counts = f'"differ":{differ},"nodes":{len(scenario.nodes)},"endpoints":[{ready_before},{ready_after}]'
    return f'{{{counts},"worse":{json.dumps(worse)},"rows":[{",".join(rows)}]}}'.encode()


def _lost(before: ServiceRow, after: ServiceRow) -> tuple[int, int]:
    """On how many more Nodes clients get no endpoint, and on how many others only far ones instead of near ones."""
    without = far = 0
    for name, then in after.zones.items():
        now = before.zones.get(name, _NO_ZONE)
        more = max(0, (then.nodes - then.covered) - (now.nodes - now.covered))
        without += more
        far += max(0, (then.nodes - then.near) - (now.nodes - now.near) - more)
    return without, far
