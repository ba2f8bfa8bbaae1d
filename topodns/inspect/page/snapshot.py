"""Snapshots of one cluster for the page, each made in slices of time between queries, and kept while nothing changes.

A row is made again only if its Service's policy or endpoints, or any Node, changed.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from topodns.cluster.model import ZONE_LABEL, Node, ObjectKey
from topodns.dns.name import name_text
from topodns.inspect.askers import NO_ASKERS, RecentAskers
from topodns.inspect.errors import Refused
from topodns.inspect.findings import notice_steps
from topodns.inspect.http import JobQueue
from topodns.inspect.model import NodeGroups, ServiceView, Steps, service_view
from topodns.inspect.page.service import (
    MAX_COLUMNS,
    MAX_ROWS,
    RowScope,
    ServiceRow,
    ZoneColumns,
    service_detail_steps,
    service_row_steps,
)
from topodns.inspect.what_if import parse_change_steps, scenario_steps
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.query_sample import QuerySample

EVERY: Final = 0.5  # seconds for which a snapshot is given out again: at most two are made a second
MAX_NODES: Final = 10_000  # names of Nodes shown
STEP: Final = 100  # Services looked at, or Nodes written, in one step


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The state of the page. All values are JSON."""

    revision: int  # grows by one with every snapshot that differs from the one before
    summary: str  # an object: what is known of the cluster, its zones, misses
    nodes: str  # an array of [name, zone]
    rows: Mapping[str, str]  # by `namespace/name`, objects

    def shows(self, summary: str, nodes: str, rows: Mapping[str, str]) -> bool:
        """Whether the page looks as it would with these."""
        return (self.summary, self.nodes, self.rows) == (summary, nodes, rows)

    def pieces(self, about: str) -> Iterator[str]:
        """The whole state as one object, in pieces. `about`: a JSON object on the page itself."""
        yield f'{{"about":{about},"revision":{self.revision},"summary":{self.summary},"nodes":{self.nodes},"rows":['
        yield ",".join(self.rows.values())
        yield "]}"


@dataclass(frozen=True, slots=True)
class _Kept:
    view: ServiceView | None
    notices: tuple[str, ...]
    scope: RowScope
    row: ServiceRow


@dataclass(frozen=True, slots=True)
class ClusterNotes:
    """Facts about a cluster for the page's summary, which do not come from its objects."""

    misses: Mapping[str, int]  # by Service, of the last minutes
    prefixes: Mapping[str, int]  # queries of unlocated clients by source prefix; empty unless the page may show them
    unknown: tuple[str, ...]  # the kinds of objects that are not known, and why, a line each


class SnapshotMaker:
    """Makes the snapshots of one cluster. `notes` is called for each; `clock` gives seconds, monotonic.

    `sample`: the queries of the process, for the flows of a Service.
    """

    def __init__(
        self,
        cluster: Cluster,
        notes: Callable[[], ClusterNotes],
        queue: JobQueue,
        clock: Callable[[], float] = time.monotonic,
        sample: QuerySample | None = None,
    ) -> None:
        self.cluster = cluster
        self._askers = RecentAskers(cluster, sample or QuerySample())
        self._notes = notes
        self._queue = queue
        self._clock = clock
        self._scope = RowScope(NodeGroups({}), ZoneColumns(()), cluster.topology or TopologySettings())
        self._nodes: list[Node] = []  # those of the state when `scope` was called last
        self._kept: dict[ObjectKey, _Kept] = {}
        self._names = self._scope, "[]"  # the names and zones of its Nodes as JSON
        self._made_of: tuple[int, ClusterNotes] | None = None  # the state's revision and the notes of the last snapshot
        self._task: asyncio.Task[Snapshot] | None = None
        self._made_at = 0.0
        self._snapshot: Snapshot | None = None

    def latest(self) -> asyncio.Task[Snapshot]:
        """The snapshot being made, the last one if it is younger than EVERY, or a new one; the same one if nothing has
        changed. Callers share the task, so it must not be cancelled.
        """
        task = self._task
        if task is None or (task.done() and self._clock() - self._made_at >= EVERY):
            task = self._task = asyncio.create_task(self._make(), name="topology page")
        return task

    def scope(self) -> RowScope:
        """The scope of now; the same object while names and labels of Nodes stay, on which alone answers depend."""
        known, before = self.cluster.state.all_nodes(), self._nodes
        nodes = self._nodes = list(known.values())
        if len(nodes) != len(before) or any(
            new is not old and (new.name, new.labels) != (old.name, old.labels)
            for new, old in zip(nodes, before, strict=True)
        ):
            self._scope = replace(self._scope, groups=NodeGroups(known), columns=ZoneColumns(nodes))
        return self._scope

    def detail_steps(self, key: ObjectKey, texts: Sequence[str] = ()) -> Steps[bytes]:
        """The details of a Service, see `service_detail_steps`, after hypothetical changes of these texts.

        Raises Refused if no headless Service has this key, or its namespace is hidden, and for nonsense.
        """
        changes = yield from parse_change_steps(texts)
        state, scope, hides = self.cluster.state, self.scope(), self.cluster.hides
        yield
        view = service_view(state, key) if not hides(key.namespace) else None
        if view is None:
            raise Refused(f"no headless Service {key.name!r} in namespace {key.namespace!r}", 404)
        if changes:
            scenario = yield from scenario_steps(state, scope.groups.nodes, changes, hides)
            view, scope = (yield from scenario.view_steps(view)), replace(scope, groups=NodeGroups(scenario.nodes))
            yield
        notices = yield from notice_steps(state, hides)
        askers = yield from self._askers.steps()
        return (yield from service_detail_steps(view, notices.get(key, ()), scope, askers.get(key, NO_ASKERS)))

    def kept_row(
        self, key: ObjectKey, view: ServiceView | None, notices: tuple[str, ...], scope: RowScope
    ) -> ServiceRow | None:
        """The row of a Service in the last snapshot, if it was made of the same; else None.

        Without `zones` if these are more than MAX_COLUMNS.
        """
        known = self._kept.get(key)
        if known is None or known.scope is not scope or known.notices != notices or not _same(known.view, view):
            return None
        return known.row

    def forget(self) -> None:
        """Free the rows that are kept for the next snapshot; to be called when no browser has the page open."""
        self._kept.clear()

    async def _make(self) -> Snapshot:
        try:
            return await self._queue.do(self._snapshot_steps())
        finally:
            self._made_at = self._clock()

    def _snapshot_steps(self) -> Steps[Snapshot]:
        """The snapshot of now; the last one if the page looks the same.

        The state may change between two steps. What it was made of is read first, so that such a change, which may be
        in this snapshot or not, is in the next one.
        """
        last, made_of = self._snapshot, (self.cluster.state.revision, self._notes())
        if last is not None and made_of == self._made_of:
            return last
        scope = self.scope()
        yield
        nodes = yield from self._name_steps(scope)
        all_rows = yield from self._row_steps(scope)
        rows = {row.name: row.text for row in _worst(all_rows)}
        yield
        _, notes = made_of
        summary = json.dumps(self._summary(notes, scope, len(all_rows) - len(rows)))
        yield
        self._made_of = made_of
        if last is None or not last.shows(summary, nodes, rows):
            last = self._snapshot = Snapshot(last.revision + 1 if last is not None else 1, summary, nodes, rows)
        return last

    def _row_steps(self, scope: RowScope) -> Steps[list[ServiceRow]]:
        """The rows of all Services with keys, valid or not, a bound or notices, in no particular order; not of hidden
        namespaces.
        """
        state, hides = self.cluster.state, self.cluster.hides
        notices = yield from notice_steps(state, hides)
        keys = list(dict.fromkeys((*state.policies.all(), *state.max_endpoints, *notices)))
        yield
        rows: list[ServiceRow] = []
        kept: dict[ObjectKey, _Kept] = {}
        for at, key in enumerate(keys, 1):
            if at % STEP == 0:
                yield
            if hides(key.namespace):
                continue
            view, problems = service_view(state, key), notices.get(key, ())
            row = self.kept_row(key, view, problems, scope)
            if row is None:
                row = yield from service_row_steps(key, view, problems, scope)
                if len(row.zones) > MAX_COLUMNS:  # of thousands of Services that would be hundreds of MB
                    row = replace(row, zones={})
                yield
            kept[key] = _Kept(view, problems, scope, row)
            rows.append(row)
        self._kept = kept
        return rows

    def _name_steps(self, scope: RowScope) -> Steps[str]:
        """The names and zones of the Nodes as JSON."""
        written_of, written = self._names
        if written_of is scope:
            return written
        parts = []
        for at, node in enumerate(islice(scope.groups.nodes.values(), MAX_NODES), 1):
            parts.append(json.dumps([node.name, node.labels.get(ZONE_LABEL, "")]))
            if at % STEP == 0:
                yield
        written = f"[{','.join(parts)}]"
        self._names = scope, written
        return written

    def _summary(self, notes: ClusterNotes, scope: RowScope, left_out: int) -> Mapping[str, object]:
        return {
            "name": name_text(self.cluster.kubernetes.origins[0]),
            "synced": self.cluster.state.synced,
            "unknown": list(notes.unknown),
            "nodes": len(scope.groups.nodes),
            "left_out": left_out,
            "zones": sorted(scope.columns.names),
            "other_zones": scope.columns.others,
            "misses": dict(notes.misses),
            "prefixes": dict(notes.prefixes),
        }


def _worst(rows: list[ServiceRow]) -> list[ServiceRow]:
    """These rows, of more than MAX_ROWS the worst, in order."""
    return rows if len(rows) <= MAX_ROWS else sorted(rows, key=lambda row: (-row.severity, row.name))[:MAX_ROWS]


def unknown_of(cluster: Cluster) -> tuple[str, ...]:
    """The kinds of objects of a cluster that are not known, a line each: not synced yet, of a snapshot, or denied by
    RBAC.
    """
    return (*cluster.incomplete(), *cluster.lacks(), *_denied(cluster))


def _denied(cluster: Cluster) -> Iterable[str]:
    return (f"{kind}s cannot be read: the API server denies them" for kind in sorted(cluster.state.denied))


def _same(held: ServiceView | None, new: ServiceView | None) -> bool:
    """Whether the views have the same policy, role, guards and endpoints, by identity of most that they refer to."""
    if held is None or new is None:
        return held is new
    same_endpoints = held.ipv4 is new.ipv4 and held.ipv6 is new.ipv6
    same_annotations = held.policy is new.policy and held.guards == new.guards
    return same_endpoints and same_annotations and held.governing == new.governing
