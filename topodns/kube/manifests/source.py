"""Reads manifest files, reads them again when they change, and emits the differences."""

import logging
import os
import time
from collections.abc import AsyncIterable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from topodns.cluster.label_selector import Selector
from topodns.cluster.model import Change, ClusterObject, Kind, ObjectKey, Replaced, Upserted
from topodns.files.regular import FileState, file_state, read_regular
from topodns.kube.manifests.documents import MAX_BYTES
from topodns.kube.manifests.objects import Contents, ManifestSet, read_contents
from topodns.time_slices import in_slices

log = logging.getLogger(__name__)


_WRITTEN_WITHIN: Final = 10.0  # seconds from an empty file to its contents
SUFFIXES: Final = (".yaml", ".yml", ".json")  # of the files read in a directory, as kubectl -f does


@dataclass(slots=True)
class _File:
    """A file: its state and digest at the last read, and the problem with it, "" for none."""

    state: FileState | None = None
    digest: bytes = b""
    problem: str = ""


class ManifestSource:
    """Emits the objects of manifest files as changes: call `load` or `load_gently` once, then `run`.

    The iterator that `emit` returns is exhausted, since a large list is applied in steps.

    `paths` are files and directories. In a directory, files that end in SUFFIXES are read; hidden files and
    subdirectories are not (as `kubectl apply -f`). An unreadable file (malformed, emptied or missing) keeps its last
    objects, except for those in the documents before the error, which count as with kubectl; so does an object in it
    that cannot be decoded. Only a file removed from a directory loses its objects.
    """

    unreadable: tuple[str, ...] = ()  # a log line for each file that is now; it keeps its last good state, if any
    # A log line for each object now malformed, wholly (it keeps its last version, if any) or in an element of a list.
    skipped: tuple[str, ...] = ()
    reloads: int = 0  # how often a change was found since `load`
    problems: tuple[str, ...] = ()  # now: one log line each

    def __init__(
        self,
        paths: Sequence[str],
        emit: Callable[[Change], Iterable[object]],
        selector: Selector | None = None,
        pod_labels: Collection[str] = (),
    ) -> None:
        """`selector` and `pod_labels`: as of `read_contents`."""
        self.paths = paths
        self._emit = emit
        self._selector = selector
        self._pod_labels = pod_labels
        self._set = ManifestSet()
        self._listings: dict[str, tuple[str, ...]] = {}  # the files of each path when last listed
        self._files: dict[str, _File] = {}
        self._bad_since: float | None = None
        self._complete = False  # every file was read at least once
        self._outdated = True  # the files read differ from the objects emitted
        self._emitted: Mapping[Kind, tuple[ClusterObject, ...]] = {}

    def load(self) -> None:
        """Read all files and emit one Replaced for every kind, empty ones too, so that each becomes synced.

        Where a file cannot be read, its objects are unknown: the objects of the others are emitted as single Upserted,
        and the kinds become synced once that file has been read.
        """
        for _ in self._load():
            pass

    async def load_gently(self) -> None:
        """`load`, which lets other tasks run about every millisecond."""
        await in_slices(self._load())

    def _load(self) -> Iterator[object]:
        yield from self._refresh(frozenset())
        yield from self._emit_differences()

    async def run(self, changes: AsyncIterable[Collection[str]]) -> None:
        """For each element of `changes`, look for changed files and emit a Replaced of each kind that differs.

        An element has those of `paths` that may have changed; their files are read even if `stat` shows no change. It
        may be empty. Other tasks run about every millisecond while files are read.
        """
        async for named in changes:
            await in_slices(self._refresh(named))
            if self._outdated:
                self.reloads += 1
                await in_slices(self._emit_differences())
                bad = f"; files that cannot be read: {self.files_bad}" if self.files_bad else ""
                log.info("manifests: changed files were read%s", bad)

    def place(self, kind: str, key: ObjectKey) -> str:
        """FILE:LINE of the object of this kind and key, for commands; "" if no file has it."""
        return self._set.place(kind, key)

    @property
    def files_bad(self) -> int:
        return len(self.unreadable)

    @property
    def objects_skipped(self) -> int:
        return len(self.skipped)

    @property
    def age(self) -> float:
        """Seconds since some file became unreadable; 0.0 while all are readable."""
        return 0.0 if self._bad_since is None else time.monotonic() - self._bad_since

    def _emit_differences(self) -> Iterator[object]:
        merged = self._set.merged()
        before, self._emitted, self._outdated = self._emitted, merged.objects, False
        self._report(merged.problems)
        complete = self._complete or self._set.has_all(self._files)
        for kind, objects in merged.objects.items():
            if not complete:
                for value in objects:
                    yield from self._emit(Upserted(value))
            elif not self._complete or before.get(kind) != objects:
                yield from self._emit(Replaced(kind, objects))
        self._complete = complete

    def _report(self, of_all: tuple[str, ...]) -> None:
        """Update counters and `problems`, and log new problems. `of_all`: those of the files together."""
        broken = tuple(file.problem for _, file in sorted(self._files.items()) if file.problem)
        known, self.problems = (
            frozenset(self.problems),
            (*broken, *self._set.undecodable, *self._set.remarks, *of_all),
        )
        self.unreadable, self.skipped = broken, self._set.undecodable
        if not broken:
            self._bad_since = None
        elif self._bad_since is None:
            self._bad_since = time.monotonic()
        for problem in self.problems:
            if problem not in known:
                log.warning("manifests: %s", problem)

    def _refresh(self, named: Collection[str]) -> Iterator[None]:
        """Update the set: read files whose state changed and all files of the `named` paths; drop those not listed.

        Sets `_outdated` if the objects or problems differ from those emitted.
        """
        self._listings = {path: self._list(path) for path in self.paths}
        listed = {file: path for path, files in self._listings.items() for file in files}
        self._outdated |= listed.keys() != self._files.keys()
        self._files = {file: self._files.get(file) or _File() for file in listed}
        self._set.keep_only(listed)
        for file, path in sorted(listed.items()):
            yield from self._refresh_file(file, self._files[file], asked=path in named)

    def _list(self, path: str) -> tuple[str, ...]:
        """The files of a path, sorted; of an unreadable path the last known ones, whose reading reports the problem."""
        try:
            names = os.listdir(path)
        except NotADirectoryError:
            return (path,)
        except OSError:
            return self._listings.get(path, (path,))
        files = [os.path.join(path, name) for name in names if name.endswith(SUFFIXES) and not name.startswith(".")]
        return tuple(sorted(file for file in files if not os.path.isdir(file)))

    def _refresh_file(self, file: str, known: _File, asked: bool) -> Iterator[None]:
        before = known.problem
        try:
            yield from self._read_if_changed(file, known, asked)
        except OSError as error:
            known.state, known.digest = None, b""
            known.problem = f"{file}: cannot be read: {error.strerror or error}{self._what_stays(file)}"
        self._outdated |= known.problem != before

    def _what_stays(self, file: str) -> str:
        """The end of a message that the file is unreadable: what becomes of its objects."""
        return "; its last good state stays" if self._set.has_all((file,)) else ""

    def _read_if_changed(self, file: str, known: _File, asked: bool) -> Iterator[None]:
        state = file_state(file)
        if state == known.state and not asked:
            return
        data = _read(file)
        digest = blake2b(data).digest()
        is_empty = not data.strip()
        is_meant = is_empty and self._is_left_empty(file, state)
        known.state = None if is_empty and not is_meant else state
        if digest == known.digest and not (is_meant and known.problem):
            return
        known.digest = digest
        contents = Contents()
        if not is_meant:
            contents = yield from read_contents(file, data, self._selector, self._pod_labels)
        counts = "; the documents before it count" if contents.entries else ""
        known.problem = f"{contents.problem}{counts or self._what_stays(file)}" if contents.problem else ""
        self._set.put(file, contents)
        self._outdated = True

    def _is_left_empty(self, file: str, state: FileState) -> bool:
        """Whether an empty file is meant, which kubectl passes over: it had no objects, and is not being written."""
        return not self._set.has_objects(file) and time.time() - state.modified / 1e9 > _WRITTEN_WITHIN


def _read(file: str) -> bytes:
    """The bytes of a file, at most MAX_BYTES + 1, which suffice to reject a longer one."""
    return read_regular(file, MAX_BYTES + 1)
