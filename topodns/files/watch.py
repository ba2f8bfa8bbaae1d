"""File watcher: reports files that may have changed in place, by rename, or by a replaced directory link.

It watches directories rather than files, because an inotify watch on a file ends with the inode, which an atomic
replacement discards. A Kubernetes ConfigMap volume changes by renaming the link `..data`, through which the links of
its files lead, so every symbolic link on the path to a file is watched.
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Final, Self

from topodns.files.inotify import Inotify

log = logging.getLogger(__name__)


STEP: Final = 0.05  # seconds without a further change that end a batch
DEBOUNCE: Final = 0.2  # maximum seconds of a batch
GLANCE: Final = 0.5  # seconds between polls without a notification

_MAX_LINKS: Final = 40  # as the kernel's own limit for one path (path_resolution(7))


async def watch_files(paths: Sequence[str]) -> AsyncGenerator[frozenset[str]]:
    """Yield those of `paths` (files, or directories without their subdirectories) that may have changed, as given.

    They need not exist. An empty set once per GLANCE asks the caller to compare `stat` results, because notifications
    are incomplete (a change before the watch began, a network file system, no inotify watch left). Ends only when it is
    closed or cancelled.
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
    """The results of `_Notified.batch` for these directories, one after the other, without end."""
    with _Notified(directories) as notified:
        while True:
            yield await notified.batch()


class _Notified:
    """Collects the inotify notifications of these directories while its context is active."""

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
        """The paths that have changed; empty after GLANCE seconds without a change.

        A change begins a batch, which ends after STEP seconds without another one, at the latest after DEBOUNCE.
        """
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
        """Whether a notification has arrived since the last call, or does within `patience` seconds."""
        try:
            async with asyncio.timeout(patience):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True


class _Watched:
    """The names (symbolic links included) that each given path depends on, and the directories to watch for them."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._trails = {path: frozenset(_names_to(path)) for path in paths}
        self._listed = {path: os.path.realpath(path) for path in paths if os.path.isdir(path)}
        names = frozenset[str]().union(*self._trails.values())
        self.directories = frozenset(map(os.path.dirname, names)).union(self._listed.values())

    def concerned(self, changed: frozenset[str]) -> frozenset[str]:
        """The given paths that depend on a changed name, and the given directories that have one as an entry."""
        above = frozenset(map(os.path.dirname, changed))
        led_to = {path for path, trail in self._trails.items() if not trail.isdisjoint(changed)}
        return frozenset(led_to.union(path for path, directory in self._listed.items() if directory in above))

    def is_outdated(self, changed: frozenset[str]) -> bool:
        """Whether a watched directory itself has changed, or other directories are now to be watched."""
        return not self.directories.isdisjoint(changed) or _Watched(self._paths).directories != self.directories


def _names_to(path: str) -> Iterator[str]:
    """The names on which `path` depends and, if it is a directory, those on which the links in it depend."""
    yield from _trail(path)
    if os.path.isdir(path):
        with os.scandir(path) as entries:
            links = [entry.path for entry in entries if entry.is_symlink()]
        for link in links:
            yield from _trail(link)


def _trail(path: str) -> Iterator[str]:
    """Every symbolic link in the resolution of `path`, then the resolved path, or the first name that is missing.

    The directory part of each name exists and contains no links.
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
    """The components of a path in reverse order."""
    return [part for part in reversed(path.split("/")) if part]
