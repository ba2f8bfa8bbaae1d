"""File watcher: reports files that may have changed in place, by rename, or by a replaced directory link.

It watches directories rather than files, because an inotify watch on a file ends with the inode, which an atomic
replacement discards. A Kubernetes ConfigMap volume changes by renaming the link `..data`, through which the links of
its files lead, so every symbolic link on the path to a file is watched.
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Final

from asyncinotify import Event, Inotify, Mask

log = logging.getLogger(__name__)


STEP: Final = 0.05  # seconds without a further change that end a batch
DEBOUNCE: Final = 0.2  # maximum seconds of a batch
GLANCE: Final = 0.5  # seconds between polls without a notification

_CHANGES: Final = (
    Mask.MODIFY
    | Mask.ATTRIB
    | Mask.CLOSE_WRITE
    | Mask.MOVE
    | Mask.CREATE
    | Mask.DELETE
    | Mask.DELETE_SELF
    | Mask.MOVE_SELF
    | Mask.ONLYDIR
)
_MAX_LINKS: Final = 40  # as the kernel's own limit for one path (path_resolution(7))


async def watch_files(paths: Sequence[str]) -> AsyncGenerator[frozenset[str]]:
    """Yield those of `paths` (files, or directories without their subdirectories) that may have changed, as given.

    They need not exist. An empty set, after each GLANCE without a change, asks the caller to compare `stat` results,
    because notifications are incomplete (a change before the watch began, a network file system, no inotify watch
    left). Ends only when it is closed or cancelled.
    """
    logged = ""  # the error logged last; "" since inotify works
    while True:
        try:
            watched = _Watched(paths)
            async with aclosing(watch_directories(watched.directories)) as batches:
                async for changed in batches:
                    logged = ""
                    yield watched.concerned(changed)
                    if watched.is_outdated(changed):
                        break
        except OSError as error:  # inotify's limits, or a directory that is gone again
            if str(error) != logged:
                log.warning("cannot watch %s: %s; looking every %g s instead", ", ".join(paths), error, GLANCE)
            logged = str(error)
            await asyncio.sleep(GLANCE)
            yield frozenset()


async def watch_directories(directories: Collection[str]) -> AsyncGenerator[frozenset[str]]:
    """Yield, batch by batch, the paths that changed directly below these directories; an empty set after each GLANCE
    without a change.

    A directory that was itself moved or deleted, or whose attributes changed, is among them; after an overflow of the
    kernel's queue all directories are. An unreadable directory is skipped. Raises OSError if one is missing, or if a
    limit of inotify is reached.
    """
    with Inotify() as inotify:
        notified = _Notified(_add_watches(inotify, directories))
        reader = asyncio.create_task(notified.read(inotify), name="inotify")
        try:
            while not reader.done():
                yield await notified.batch()
            await reader  # raises what ended it, which is a bug
        finally:
            reader.cancel()
            await asyncio.wait([reader])  # so that the event loop no longer polls the descriptor when it is closed


def _add_watches(inotify: Inotify, directories: Collection[str]) -> Mapping[int, Sequence[str]]:
    """Watch the readable ones of these directories. Returns them by watch descriptor: the kernel has one descriptor for
    all paths of a directory that is mounted twice. Raises OSError, except for an unreadable directory.
    """
    watches: dict[int, list[str]] = {}
    for directory in directories:
        try:
            watch = inotify.add_watch(directory, _CHANGES)
        except PermissionError:
            continue
        except OSError as failed:
            raise OSError(failed.errno, failed.strerror, directory) from None
        watches.setdefault(watch.wd, []).append(directory)
    return watches


class _Notified:
    """Collects the paths of inotify events, which `read` reads until it is cancelled."""

    def __init__(self, watches: Mapping[int, Sequence[str]]) -> None:
        self._watches = watches
        self._changed: set[str] = set()
        self._news = asyncio.Event()

    async def read(self, inotify: Inotify) -> None:
        # Never cancelled before the end of the watch: `Inotify.get` loses the events that it reads while cancelled.
        async for event in inotify:
            self._changed.update(self._paths(event))
            self._news.set()

    async def batch(self) -> frozenset[str]:
        """The paths that have changed; empty after GLANCE seconds without a change.

        A change begins a batch, which ends after STEP seconds without another one, at the latest after DEBOUNCE.
        """
        if await self._is_news(GLANCE):
            loop = asyncio.get_running_loop()
            end = loop.time() + DEBOUNCE
            while loop.time() < end and await self._is_news(STEP):
                pass
        batch, self._changed = frozenset(self._changed), set()
        return batch

    async def _is_news(self, patience: float) -> bool:
        """Whether a notification has arrived since the last call, or does within `patience` seconds."""
        try:
            async with asyncio.timeout(patience):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True

    def _paths(self, event: Event) -> Iterator[str]:
        if Mask.Q_OVERFLOW in event:
            for directories in self._watches.values():
                yield from directories
        elif event.watch is not None:
            for directory in self._watches[event.watch.wd]:
                yield directory if event.name is None else os.path.join(directory, event.name)


class _Watched:
    """The names (symbolic links included) that each given path depends on, and the directories to watch for them."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        trails = {path: frozenset(_names_to(path)) for path in paths}
        directories = {path: frozenset(map(os.path.dirname, trail)) for path, trail in trails.items()}
        self._depended_on = {path: trail | directories[path] for path, trail in trails.items()}
        self._listed = {path: os.path.realpath(path) for path in paths if os.path.isdir(path)}
        self.directories = frozenset[str]().union(*directories.values(), self._listed.values())

    def concerned(self, changed: frozenset[str]) -> frozenset[str]:
        """The given paths that depend on a changed name, or on an entry of a changed directory; and the given
        directories that have a changed name as an entry.

        A directory is changed where all its entries may be: it was moved, or the kernel's queue overflowed.
        """
        above = frozenset(map(os.path.dirname, changed))
        led_to = {path for path, names in self._depended_on.items() if not names.isdisjoint(changed)}
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
