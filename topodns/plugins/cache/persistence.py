"""The option `persist` of `cache`: answers survive the process, for the case that upstreams do not answer then.

The file is read before a generation answers its first query, and written each interval and at its end, but only after
changes. Both happen in slices of the event loop. A file that cannot be used, read or written is logged once and
counted, and queries are answered as without the option.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from topodns.corefile.errors import shown
from topodns.corefile.files import reason
from topodns.files.framed_file import UnusableFile, replacing
from topodns.files.regular import open_regular
from topodns.plugins.cache.answer_file import KIND, FileHead, restore_answers, write_answers
from topodns.plugins.cache.counts import PersistCounts
from topodns.plugins.cache.settings import Persist
from topodns.plugins.cache.store import Memory
from topodns.query.deferred import Timers
from topodns.time_slices import Job, do_in_slices

log = logging.getLogger(__name__)

_COMPARED: Final = 256  # entries of a step: 0.2 ms


class Persistence:
    """Reads and writes the file of one cache, which `owner` names; the same words name it after a restart."""

    def __init__(
        self,
        settings: Persist,
        owner: tuple[str, ...],
        memory: Memory,
        timers: Timers,
        counts: PersistCounts,
        writes: bool,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`writes`: False for a process that only reads the file, which another one writes. `wall`: Unix seconds."""
        self._settings = settings
        self.owner = owner
        self._memory = memory
        self._timers = timers
        self._counts = counts
        self._writes = writes
        self._wall = wall
        self._on_disk = 0  # `_fingerprint` of the entries in the file
        self._failure = ""  # of the last writing; "": none

    async def run(self) -> None:
        """Write the file each interval until cancelled, and once more then. `read` must have ended."""
        if not self._writes:
            return
        try:
            while True:
                await asyncio.sleep(self._settings.interval)
                await self._write_changes()
        finally:
            await self._write_changes()

    async def read(self) -> None:
        """Restore the answers of the file, if there is one."""
        path = shown(self._settings.path)
        try:
            with open_regular(self._settings.path) as file:
                head, now = self._head(), self._timers.time()
                found = await do_in_slices(restore_answers(file, self._memory, head, now))
        except FileNotFoundError:
            pass
        except OSError as problem:
            self._refused(f"cannot be read: {reason(problem)}")
        except UnusableFile as problem:
            self._refused(str(problem))
        else:
            self._counts.restored += found.answers
            log.info("plugin/cache: %d answers of %s, written %d s ago", found.answers, path, found.away)
        self._on_disk = await do_in_slices(_fingerprint(self._memory))

    async def _write_changes(self) -> None:
        """Write the file if the entries have changed since it was written. Another writer is left to its work."""
        entries = await do_in_slices(_fingerprint(self._memory))
        if entries == self._on_disk:
            return
        try:
            async with replacing(self._settings.path, KIND) as file:
                head, now = self._head(), self._timers.time()
                number = await do_in_slices(write_answers(file, self._memory, head, now))
        except BlockingIOError:
            pass
        except OSError as problem:
            self._failed(reason(problem))
        else:
            if self._failure:
                log.info("plugin/cache: %s is written again", shown(self._settings.path))
            self._on_disk, self._failure = entries, ""
            self._counts.answers = number
            self._counts.written += 1

    def _refused(self, problem: str) -> None:
        self._counts.refused += 1
        log.warning("plugin/cache: %s %s; it is not used, and stays", shown(self._settings.path), problem)

    def _failed(self, problem: str) -> None:
        self._counts.failed += 1
        if problem != self._failure:
            log.warning("plugin/cache: cannot write %s: %s", shown(self._settings.path), problem)
        self._failure = problem

    def _head(self) -> FileHead:
        return FileHead(self._wall(), self.owner)


def _fingerprint(memory: Memory) -> Job[int]:
    """A number that differs when an entry comes, goes, or is fetched again; the same in any order of use."""
    found = 0
    for number, (key, entry, _) in enumerate(memory.by_use(), 1):
        found ^= hash((key, entry.born, entry.ttl))
        if not number % _COMPARED:
            yield
    return found
