"""Writes the snapshot of a live state: after changes, in slices of time between which queries are answered."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from topodns.cluster.model import Kind
from topodns.cluster.packed_objects import KINDS, batches
from topodns.cluster.publishing_state import PublishingState
from topodns.files.framed_file import replacing
from topodns.kube.informer.informer import ApiSource
from topodns.kube.snapshot.format import KIND, Head, Part, Section, snapshot_frames
from topodns.time_slices import in_slices

log = logging.getLogger(__name__)

_LARGEST_SHARE: Final = 0.05  # of `max_age`: the snapshot of a state without changes is written as often


@dataclass(frozen=True, slots=True)
class SnapshotCounts:
    """Counts the snapshots of all clusters: `writes` by outcome, `refused` by `UnusableFile.reason`."""

    writes: Counter[str] = field(default_factory=lambda: Counter(written=0, failed=0))
    refused: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """The file with the snapshot of one cluster.

    `selections`: for each kind, which of its objects the state has, as a text. A snapshot with other ones is not of
    this state.
    """

    path: str
    max_age: float  # seconds
    selections: Mapping[Kind, str]
    counts: SnapshotCounts


class SnapshotWriter:
    """Writes the state that `source` keeps current.

    Never one that is not complete, or that has objects of a snapshot itself. Its time is that until which the state is
    known to have been the API server's, so an outage does not make a snapshot look newer than it is.
    """

    def __init__(self, file: SnapshotFile, interval: float, published: PublishingState, source: ApiSource) -> None:
        """`interval`: seconds between two looks at the state."""
        self._file = file
        self._interval = interval
        self._state, self._wall_clock = published.state, published.wall_clock
        self._source = source
        self._written: tuple[int, float] | None = None  # (revision, Unix time) of the state that was written last
        self._problem = ""  # why the last write failed; "": it did not

    async def run(self) -> None:
        """Write the state each `interval` if it has changed, until cancelled."""
        while True:
            await asyncio.sleep(self._interval)
            head = self._due()
            if head is not None:
                await self._write(head)

    def _due(self) -> Head | None:
        """The head of the snapshot to write now; None for none."""
        state = self._state
        if not state.synced or not self._source.cluster_uid:
            return None
        current_until = self._wall_clock() - self._source.age
        if self._written is not None:
            revision, before = self._written
            if revision == state.revision and current_until - before < self._file.max_age * _LARGEST_SHARE:
                return None
        return Head(self._source.cluster_uid, current_until, state.serial, tuple(sorted(state.denied)))

    async def _write(self, head: Head) -> None:
        revision = self._state.revision
        try:
            async with replacing(self._file.path, KIND) as file:
                await in_slices(map(file.write, snapshot_frames(head, self._parts())))
        except OSError as problem:
            self._failed(problem)
            return
        if self._problem:
            log.info("plugin/kubernetes: the snapshot %s is written again", self._file.path)
        self._problem, self._written = "", (revision, head.unix_time)
        self._file.counts.writes["written"] += 1

    def _failed(self, problem: OSError) -> None:
        self._file.counts.writes["failed"] += 1
        text = str(problem)
        if text != self._problem:
            log.warning("plugin/kubernetes: cannot write the snapshot %s: %s", self._file.path, text)
        self._problem = text

    def _parts(self) -> Iterator[Part]:
        for kind in KINDS:
            if kind in self._state.known:
                yield Section(kind, self._source.seen_version(kind), self._file.selections.get(kind, ""))
                yield from batches(self._state, kind)
