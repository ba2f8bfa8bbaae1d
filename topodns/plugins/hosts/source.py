"""The file of a `hosts` directive: read at start and after each change."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Final

from topodns.dependency import Fact
from topodns.files.regular import read_regular
from topodns.plugins.hosts.handler import hosts_fact
from topodns.plugins.hosts.settings import Hosts
from topodns.plugins.hosts.table import MAX_ENTRIES, BadHostsLine, HostTable, parse_hosts_line

log = logging.getLogger(__name__)


MAX_OCTETS: Final = 32 << 20  # of the file; the rest is not read

_LINES_AT_ONCE: Final = 50  # lines per step, about 0.3 ms; between steps the event loop serves queries
_MAX_TOLD: Final = 10  # bad lines that are logged per reading


@dataclass(frozen=True, slots=True)
class _Status:
    """The file's attributes that change with its content."""

    modified: int  # nanoseconds
    size: int
    inode: int


class HostsSource:
    """Holds the table of one directive's file. While the file cannot be read, the last table stays.

    `changed` is called with the dependency on the file after each new table but the first.
    """

    def __init__(self, settings: Hosts) -> None:
        self.changed: Callable[[frozenset[Fact]], object] = _tell_nobody
        self.modified = 0.0  # the mtime of the file read last, in Unix seconds; 0: none
        self.path = settings.file
        self._settings = settings
        self._seen: _Status | None = None
        self._table = self._empty()
        self._told: frozenset[str] = frozenset()
        self._missing = ""  # why the file cannot be read, as last logged

    def table(self) -> HostTable:
        return self._table

    def load(self) -> None:
        """Read the file; log a warning if it cannot be read."""
        reading = self._read()
        if reading is not None:
            for _ in reading:
                pass

    async def run(self) -> None:
        """Check the file every `reload` seconds, until cancelled."""
        while self._settings.reload > 0:
            await asyncio.sleep(self._settings.reload)
            reading = self._read()
            if reading is None:
                continue
            for _ in reading:
                await asyncio.sleep(0)
            self.changed(frozenset((hosts_fact(self.path),)))

    def _read(self) -> Iterator[None] | None:
        """An iterator that reads the file, some lines per step; None if it is unchanged or cannot be read."""
        try:
            status = _status(self.path)
            if status == self._seen:
                self._missing = ""
                return None
            content = read_regular(self.path, MAX_OCTETS + 1)
        except OSError as problem:
            self._warn_of_missing(problem)
            return None
        self._missing = ""
        return self._take(content, status)

    def _take(self, content: bytes, status: _Status) -> Iterator[None]:
        table, problems = self._empty(), list[str]()
        if len(content) > MAX_OCTETS:
            problems.append(f"{self.path}: longer than {MAX_OCTETS} octets; the rest is left out")
            content = content[:MAX_OCTETS].rpartition(b"\n")[0]
        for number, line in enumerate(BytesIO(content), 1):
            if number % _LINES_AT_ONCE == 0:
                yield
            if table.full:
                problems.append(f"{self.path}:{number}: more than {MAX_ENTRIES} entries; the rest is left out")
                break
            self._take_line(table, line, number, problems)
        self._warn_once(problems)
        self._table, self._seen, self.modified = table, status, status.modified / 1e9

    def _take_line(self, table: HostTable, line: bytes, number: int, problems: list[str]) -> None:
        try:
            entry = parse_hosts_line(line)
        except BadHostsLine as problem:
            problems.append(f"{self.path}:{number}: {problem}; the line is left out")
            return
        if entry is not None:
            table.add(entry)

    def _warn_once(self, problems: list[str]) -> None:
        """Log the problems of the file that the last reading did not have."""
        fresh = [problem for problem in problems if problem not in self._told]
        for problem in fresh[:_MAX_TOLD]:
            log.warning("plugin/hosts: %s", problem)
        if len(fresh) > _MAX_TOLD:
            log.warning("plugin/hosts: %s: %d more lines like these", self.path, len(fresh) - _MAX_TOLD)
        self._told = frozenset(problems)

    def _warn_of_missing(self, problem: OSError) -> None:
        text = problem.strerror or str(problem)
        if text != self._missing:
            stays = "; what was read before stays" if self._seen is not None else ""
            log.warning("plugin/hosts: cannot read %s: %s%s", self.path, text, stays)
        self._missing = text

    def _empty(self) -> HostTable:
        return HostTable(self._settings.origins, self._settings.reverse)


def _status(path: str) -> _Status:
    status = os.stat(path)
    return _Status(status.st_mtime_ns, status.st_size, status.st_ino)


def _tell_nobody(_: frozenset[Fact]) -> None:
    pass
