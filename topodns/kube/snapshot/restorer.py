"""Reads a snapshot into the state while the API server is away, and drops one of another cluster once it is back."""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from topodns.cluster.known_kinds import Restored
from topodns.cluster.model import Kind
from topodns.cluster.publishing_state import PublishingState
from topodns.files.framed_file import UnusableFile
from topodns.files.regular import open_regular
from topodns.kube.informer.informer import ApiSource
from topodns.kube.snapshot.format import Head, Part, Section, head_steps, part_steps
from topodns.kube.snapshot.writer import SnapshotFile
from topodns.time_slices import Job, do_in_slices, in_slices

log = logging.getLogger(__name__)

_SectionJob = Job[Section | None]


class SnapshotRestorer:
    """Restores the kinds of a state that have no complete list yet.

    Each is replaced by its list as in a state that was listed before: see `kube.informer.lister.ListCheck`. No list is
    applied while objects of one kind are restored, or while they are dropped.
    """

    def __init__(self, file: SnapshotFile, published: PublishingState, source: ApiSource) -> None:
        self._file = file
        self._published = published
        self._state = published.state
        self._source = source

    async def restore(self) -> None:
        """Take the snapshot, if there is a usable one; else log and count why not. The file stays as it is."""
        try:
            with open_regular(self._file.path) as file:
                await self._restore(file)
        except FileNotFoundError:
            log.warning("plugin/kubernetes: there is no snapshot %s", self._file.path)
        except OSError as problem:
            self._refuse(UnusableFile("unreadable", f"cannot be read: {problem.strerror}"))
        except UnusableFile as problem:
            self._refuse(problem)

    async def compare(self) -> None:
        """Once the API server answers, drop the objects of a snapshot of another cluster, and count that."""
        await self._source.identify()
        async with self._source.turns.turn():
            restored = self._state.restored
            if restored is None or self._source.snapshot_uid == self._source.cluster_uid:
                return
            self._refuse(_foreign(self._source.snapshot_uid, self._source.cluster_uid))
            await self._forget(restored.kinds)
            self._published.publish(self._state.restore(None))

    async def _restore(self, file: BinaryIO) -> None:
        head = await do_in_slices(head_steps(file))
        known = self._source.cluster_uid
        if known and head.cluster_uid != known:
            raise _foreign(head.cluster_uid, known)
        age = self._age(head)
        parts, versions = part_steps(file), dict[Kind, str]()
        try:
            section = await self._take_section(None, parts, versions)
            while section is not None:
                section = await self._take_section(section, parts, versions)
        except (UnusableFile, OSError):
            async with self._source.turns.turn():
                await self._forget(versions)
            raise
        async with self._source.turns.turn():
            self._count(head, age, frozenset(filter(self._awaits, versions)))

    def _age(self, head: Head) -> float:
        """Seconds since the state of the snapshot was the API server's. Raises UnusableFile for too many.

        A time ahead of the clock counts as so long ago: one of the two clocks was wrong by that at least, and a
        snapshot whose age is unknown is not taken for a new one.
        """
        ahead = head.unix_time - self._published.wall_clock()
        if abs(ahead) > self._file.max_age:
            how = f"is of a time {ahead:.0f} s ahead of the clock" if ahead > 0 else f"is {-ahead:.0f} s old"
            raise UnusableFile("old", f"{how}, expected at most {self._file.max_age:.0f} s (max_age)")
        return abs(ahead)

    async def _take_section(
        self, section: Section | None, parts: Iterator[Part], versions: dict[Kind, str]
    ) -> Section | None:
        """Take the objects of a section, unless it is None; returns the next one. No list is applied meanwhile."""
        async with self._source.turns.turn():
            return await do_in_slices(self._section_steps(section, parts, versions))

    def _section_steps(self, section: Section | None, parts: Iterator[Part], versions: dict[Kind, str]) -> _SectionJob:
        """`versions` gets the resourceVersion of the kind, if its objects are taken."""
        kind = section.kind if section is not None and self._is_wanted(section) else None
        if section is not None and kind is not None:
            versions[kind] = section.version
            self._source.count_as_seen(kind, section.version)
        for part in parts:
            if isinstance(part, Section):
                return part
            if kind is not None:
                self._published.take_restored(kind, part)
            yield
        return None

    def _is_wanted(self, section: Section) -> bool:
        """Whether the state waits for the objects of this section."""
        return self._awaits(section.kind) and section.selection == self._file.selections.get(section.kind)

    def _awaits(self, kind: Kind) -> bool:
        """Whether the state has no list of this kind, and none is being applied."""
        return kind in self._state.unsynced and kind not in self._state.replacing

    def _count(self, head: Head, age: float, kinds: frozenset[Kind]) -> None:
        state, source = self._state, self._source
        state.serial = max(state.serial, head.serial)
        for kind in head.denied:
            if kind in state.unsynced:
                self._published.publish(state.do_without(kind))
        source.snapshot_uid, source.snapshot_since = head.cluster_uid, asyncio.get_running_loop().time() - age
        self._published.publish(state.restore(Restored(kinds, int(head.unix_time)) if kinds else None))
        lacks = sorted(set(state.unsynced) - kinds)
        log.warning(
            "plugin/kubernetes: answering from the snapshot %s, %.0f s old: %s%s",
            self._file.path,
            age,
            ", ".join(f"{state.counts()[kind]} {kind}" for kind in sorted(kinds)) or "it has no kind that is missing",
            f"; it lacks {', '.join(lacks)}" if lacks else "",
        )

    async def _forget(self, kinds: Iterable[Kind]) -> None:
        """Remove the objects of those of these kinds whose list does not, as it is there or is being applied."""
        for kind in filter(self._awaits, kinds):
            self._source.count_as_seen(kind, "")
            await in_slices(self._published.forget_steps(kind))

    def _refuse(self, problem: UnusableFile) -> None:
        self._file.counts.refused[problem.reason] += 1
        log.warning("plugin/kubernetes: the snapshot %s %s; it is not used, and stays", self._file.path, problem)


def _foreign(found: str, expected: str) -> UnusableFile:
    return UnusableFile("foreign", f"is of another cluster: Namespace kube-system has uid {found}, expected {expected}")
