"""Reads manifest files, again when they change, and tells what differs."""

import asyncio
import logging
import os
import stat
import time
from collections.abc import AsyncIterable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple

from topodns.cluster.model import Change, ClusterObject, Kind, Replaced, Upserted
from topodns.cluster.selector import Selector
from topodns.edge.documents import MAX_BYTES, BadManifest
from topodns.edge.manifests.contents import ManifestSet, read_contents

SUFFIXES: Final = (".yaml", ".yml", ".json")  # of the files of a directory, as for kubectl -f

SLICE: Final = 0.0005  # seconds of work in one turn of the event loop

log = logging.getLogger(__name__)


class _Signature(NamedTuple):
    """What `stat` says of a file. Any change shows in it, but for one within a tick of the file system's clock."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int


@dataclass(slots=True)
class _File:
    """What is known of a file: how it looked when it was read last, and what was wrong with it, "" if nothing."""

    signature: _Signature | None = None
    digest: bytes = b""
    problem: str = ""


class ManifestSource:
    """Tells `emit` what the files say: `load` or `load_gently` once, then `run`.

    What `emit` gives is iterated over, for it takes a large list in step by step.

    `paths` are files and directories. Of a directory the files that end in SUFFIXES count, hidden ones and those of
    subdirectories do not (as for `kubectl apply -f`). What can no longer be read, be it broken, empty or gone, keeps
    the state it had; only a file that leaves a directory takes its objects along.
    """

    files_bad: int = 0  # at present: cannot be read, and so keep their last good state, if there ever was one
    objects_skipped: int = 0  # at present: malformed
    reloads: int = 0  # how often anything had changed since `load`
    problems: tuple[str, ...] = ()  # at present: everything worth a line in the log

    def __init__(
        self, paths: Sequence[str], emit: Callable[[Change], Iterable[object]], selector: Selector | None = None
    ) -> None:
        self.paths = paths
        self._emit = emit
        self._selector = selector
        self._set = ManifestSet()
        self._listings: dict[str, tuple[str, ...]] = {}  # of each path: its files when it was seen last
        self._files: dict[str, _File] = {}
        self._bad_since: float | None = None
        self._complete = False  # every file was read at least once
        self._outdated = True  # what was emitted, compared with what was read
        self._emitted: Mapping[Kind, tuple[ClusterObject, ...]] = {}

    def load(self) -> None:
        """Read everything and emit one Replaced for every kind, empty ones too, so that each becomes synced.

        Where a file cannot be read, nobody knows what it holds: what the others do is emitted object by object, and
        the kinds become synced when it was read.
        """
        for _ in self._load():
            pass

    async def load_gently(self) -> None:
        """The same; other tasks get their turn every millisecond or so."""
        await _gently(self._load())

    def _load(self) -> Iterator[object]:
        yield from self._refresh(frozenset())
        yield from self._emit_differences()

    async def run(self, changes: AsyncIterable[Collection[str]]) -> None:
        """Emit a Replaced of each kind that differs whenever files changed, for as long as `changes` goes on.

        Each element has those of `paths` that may have changed; with none it is just an occasion to look. Other tasks
        get their turn every millisecond or so while files are read.
        """
        async for named in changes:
            await _gently(self._refresh(named))
            if self._outdated:
                self.reloads += 1
                await _gently(self._emit_differences())
                log.info("manifests: read again; files that cannot be read: %d", self.files_bad)

    @property
    def age(self) -> float:
        """Seconds for which some file has not been readable, so that what it says now is not known."""
        return 0.0 if self._bad_since is None else time.monotonic() - self._bad_since

    def _emit_differences(self) -> Iterator[object]:
        merged = self._set.merged()
        before, self._emitted, self._outdated = self._emitted, merged.objects, False
        self._report(merged.conflicts)
        complete = self._complete or self._set.has_all(self._files)
        for kind, objects in merged.objects.items():
            if not complete:
                for value in objects:
                    yield from self._emit(Upserted(value))
            elif not self._complete or before.get(kind) != objects:
                yield from self._emit(Replaced(kind, objects))
        self._complete = complete

    def _report(self, conflicts: tuple[str, ...]) -> None:
        """Log what is wrong now and was not before."""
        broken = tuple(file.problem for _, file in sorted(self._files.items()) if file.problem)
        known, self.problems = frozenset(self.problems), (*broken, *self._set.skipped, *conflicts)
        self.files_bad, self.objects_skipped = len(broken), len(self._set.skipped)
        if not broken:
            self._bad_since = None
        elif self._bad_since is None:
            self._bad_since = time.monotonic()
        for problem in self.problems:
            if problem not in known:
                log.warning("manifests: %s", problem)

    def _refresh(self, named: Collection[str]) -> Iterator[None]:
        """Bring the set up to date, reading the files that look different and those below the `named` paths."""
        self._listings = {path: self._list(path) for path in self.paths}
        listed = {file: path for path, files in self._listings.items() for file in files}
        self._outdated |= listed.keys() != self._files.keys()
        self._files = {file: self._files.get(file) or _File() for file in listed}
        self._set.keep_only(listed)
        for file, path in sorted(listed.items()):
            yield from self._refresh_file(file, self._files[file], asked=path in named)

    def _list(self, path: str) -> tuple[str, ...]:
        """The files of a path. One that is gone has those it had: reading them will say what is wrong."""
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
        except BadManifest as error:
            known.problem = str(error)
        except OSError as error:
            known.signature, known.digest = None, b""
            known.problem = f"{file}: cannot be read: {error.strerror or error}"
        self._outdated |= known.problem != before

    def _read_if_changed(self, file: str, known: _File, asked: bool) -> Iterator[None]:
        signature = _signature(file)
        if signature == known.signature and not asked:
            return
        data = _read(file)
        digest = blake2b(data).digest()
        known.signature = signature
        if digest == known.digest:
            return
        known.digest = digest
        contents = yield from read_contents(file, data, self._selector)
        self._set.put(file, contents)
        self._outdated = True
        known.problem = ""


def _signature(file: str) -> _Signature:
    found = os.stat(file)
    if not stat.S_ISREG(found.st_mode):
        raise OSError("not a regular file")  # reading a pipe or a device might never end
    return _Signature(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _read(file: str) -> bytes:
    """The bytes of a file, of one that is too long only as many as show that."""
    with open(file, "rb") as stream:
        return stream.read(MAX_BYTES + 1)


async def _gently(steps: Iterable[object]) -> None:
    """Take these steps with a turn of the loop for everybody else after each half millisecond."""
    began = time.perf_counter()
    for _ in steps:
        if time.perf_counter() - began >= SLICE:
            await asyncio.sleep(0)
            began = time.perf_counter()
