"""Tells when files may have changed, however they are replaced: in place, by rename, by a flipped directory link.

Watches directories rather than files, since an inotify watch on a file dies with the inode
that an atomic replacement leaves behind. A Kubernetes ConfigMap volume changes by renaming the link `..data` beside the
links that lead through it, so every symbolic link on the way to a file counts as part of its name.
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Final, Self

from topodns.edge.inotify import Inotify

STEP: Final = 0.05  # seconds without a further change that end one batch of changes
DEBOUNCE: Final = 0.2  # seconds a batch may take at most
GLANCE: Final = 0.5  # seconds between two unasked looks

_MAX_LINKS: Final = 40  # as the kernel's own limit for one path (path_resolution(7))

log = logging.getLogger(__name__)


async def watch_files(paths: Sequence[str]) -> AsyncGenerator[frozenset[str]]:
    """Yield those of `paths` (files or directories, not their subdirectories) that may have changed, as given.

    They need not exist, now or ever. Also yields an empty set once per GLANCE: time to compare what `stat` says, since
    no notification is complete (a change before the watch stood, a network file system, no inotify watch left). Ends
    only when it is closed or cancelled.
    """
    while True:
        try:
            watched = _Watched(paths)
            async with aclosing(_batches(watched.directories)) as batches:
                async for changed in batches:
                    yield watched.concerned(changed)
                    if watched.is_outdated(changed):
                        break
        except OSError as error:  # inotify's limits, or a directory that is gone again
            log.warning("cannot watch %s: %s; looking every %g s instead", ", ".join(paths), error, GLANCE)
            await asyncio.sleep(GLANCE)
            yield frozenset()


async def _batches(directories: Iterable[str]) -> AsyncGenerator[frozenset[str]]:
    """The names that changed directly below these directories, batch by batch."""
    with _Notified(directories) as notified:
        while True:
            yield await notified.batch()


class _Notified:
    """Gathers notifications while it is entered."""

    def __init__(self, directories: Iterable[str]) -> None:
        self._inotify = Inotify(directories)
        self._loop = asyncio.get_running_loop()
        self._changed: set[str] = set()
        self._news = asyncio.Event()

    def __enter__(self) -> Self:
        self._loop.add_reader(self._inotify.fileno(), self._take)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.remove_reader(self._inotify.fileno())
        self._inotify.close()

    async def batch(self) -> frozenset[str]:
        """What changes together; nothing after a GLANCE without a change."""
        if await self._is_news(GLANCE):
            end = self._loop.time() + DEBOUNCE
            while self._loop.time() < end and await self._is_news(STEP):
                pass
        batch, self._changed = frozenset(self._changed), set()
        return batch

    def _take(self) -> None:
        self._changed |= self._inotify.read()
        self._news.set()

    async def _is_news(self, patience: float) -> bool:
        """Whether there is more within so many seconds."""
        try:
            async with asyncio.timeout(patience):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True


class _Watched:
    """Which names lead to which of the given paths, and the directories where those names are."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._trails = {path: frozenset(_names_to(path)) for path in paths}
        self._listed = {path: os.path.realpath(path) for path in paths if os.path.isdir(path)}
        names = frozenset[str]().union(*self._trails.values())
        self.directories = frozenset(map(os.path.dirname, names)).union(self._listed.values())

    def concerned(self, changed: frozenset[str]) -> frozenset[str]:
        """The given paths that a changed name leads to, or is a direct entry of."""
        above = frozenset(map(os.path.dirname, changed))
        led_to = {path for path, trail in self._trails.items() if not trail.isdisjoint(changed)}
        return frozenset(led_to.union(path for path, directory in self._listed.items() if directory in above))

    def is_outdated(self, changed: frozenset[str]) -> bool:
        """Whether other directories must be watched now, or one of them is not the one any more that was watched."""
        return not self.directories.isdisjoint(changed) or _Watched(self._paths).directories != self.directories


def _names_to(path: str) -> Iterator[str]:
    """The names whose change can change what `path` is or, of a directory, what its entries lead to."""
    yield from _trail(path)
    if os.path.isdir(path):
        with os.scandir(path) as entries:
            links = [entry.path for entry in entries if entry.is_symlink()]
        for link in links:
            yield from _trail(link)


def _trail(path: str) -> Iterator[str]:
    """Every symbolic link on the way to `path`, then where the way ends, or the first name on it that is missing.

    The directory of each name exists and is free of links.
    """
    reached, ahead = "/", _components(os.path.abspath(path))
    for _ in range(_MAX_LINKS):
        while ahead and not os.path.islink(name := os.path.normpath(os.path.join(reached, ahead[-1]))):
            if not os.path.lexists(name):
                yield name
                return
            reached = name
            ahead.pop()
        if not ahead:
            yield reached
            return
        yield name
        ahead.pop()
        target = os.readlink(name)
        reached = "/" if os.path.isabs(target) else reached
        ahead.extend(_components(target))


def _components(path: str) -> list[str]:
    """What a path is made of, the first part last."""
    return [part for part in reversed(path.split("/")) if part]
