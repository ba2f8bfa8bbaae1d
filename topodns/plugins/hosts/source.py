"""The file of a `hosts` directive: read at start and after each change."""

import errno
import logging
from collections.abc import Callable, Generator, Iterator
from typing import Final

from topodns.dependency import Fact
from topodns.files.poller import FilePoller
from topodns.files.regular import read_regular
from topodns.files.text import MAX_LINE, numbered_lines, without_mark
from topodns.plugins.hosts.handler import hosts_fact
from topodns.plugins.hosts.settings import Hosts
from topodns.plugins.hosts.table import (
    MAX_ENTRIES,
    NAMES_AT_ONCE,
    BadHostsLine,
    BadHostsName,
    HostEntry,
    HostTable,
    parse_long_line,
)

log = logging.getLogger(__name__)


MAX_OCTETS: Final = 32 << 20  # of the file; the rest is not read

_LINES_AT_ONCE: Final = 10  # lines per step, about 0.06 ms
_MAX_LOGGED: Final = 10  # bad lines that are logged per reading
_MAX_COUNTED: Final = 10_000  # bad lines per reading whose text is held, to log each of them once


class HostsSource:
    """Holds the table of one directive's file. While the file cannot be read, the last table stays.

    `changed` is called with the dependency on the file after each new table but that of `load`.
    """

    def __init__(self, settings: Hosts) -> None:
        self.changed: Callable[[frozenset[Fact]], object] = bool
        self.poller = FilePoller(
            path=settings.file,
            interval=settings.reload,
            read=self._read,
            changed=self._changed,
            failed=self._warn_of_missing,
        )
        self._settings = settings
        self._table = self._empty()
        self._problems: frozenset[str] = frozenset()

    def table(self) -> HostTable:
        return self._table

    def load(self) -> None:
        """Read the file; log a warning if it cannot be read."""
        try:
            self.poller.load()
        except OSError as problem:
            self._warn_of_missing(problem)

    def _changed(self) -> None:
        self.changed(frozenset((hosts_fact(self.poller.path),)))

    def _read(self) -> Iterator[None]:
        """Read the file, some lines per step; the new table applies at the end. Raises OSError, also for UTF-16."""
        path = self.poller.path
        try:
            content = without_mark(read_regular(path, MAX_OCTETS + 1))
        except ValueError as problem:
            raise OSError(errno.EINVAL, str(problem), path) from None
        table, problems = self._empty(), list[str]()
        if len(content) > MAX_OCTETS:
            problems.append(f"{path}: longer than {MAX_OCTETS} octets; the rest is left out")
            content = content[:MAX_OCTETS].rpartition(b"\n")[0]
        for number, line in numbered_lines(content):
            if number % _LINES_AT_ONCE == 0:
                yield
            try:
                whole = yield from _add_line(table, line)
            except BadHostsLine as problem:
                if len(problems) < _MAX_COUNTED:
                    what = "name" if isinstance(problem, BadHostsName) else "line"
                    problems.append(f"{path}:{number}: {problem}; the {what} is left out")
                continue
            if not whole:
                problems.append(f"{path}:{number}: more than {MAX_ENTRIES} entries; the rest is left out")
                break
        self._warn_once(problems)
        self._table = table

    def _warn_once(self, problems: list[str]) -> None:
        """Log the problems that the previous reading did not have: at most _MAX_LOGGED, and the number of others."""
        fresh = [problem for problem in problems if problem not in self._problems]
        for problem in fresh[:_MAX_LOGGED]:
            log.warning("plugin/hosts: %s", problem)
        if len(fresh) > _MAX_LOGGED:
            least = "at least " if len(problems) >= _MAX_COUNTED else ""
            log.warning(
                "plugin/hosts: %s: %s%d more lines like these", self.poller.path, least, len(fresh) - _MAX_LOGGED
            )
        self._problems = frozenset(problems)

    def _warn_of_missing(self, problem: Exception) -> None:
        reason = problem.strerror if isinstance(problem, OSError) else None
        stays = "; what was read before stays" if self.poller.modified else ""
        log.warning("plugin/hosts: cannot read %s: %s%s", self.poller.path, reason or problem, stays)

    def _empty(self) -> HostTable:
        return HostTable(self._settings.origins, self._settings.reverse)


def _add_line(table: HostTable, line: bytes | None) -> Generator[None, None, bool]:
    """Add a line in steps of NAMES_AT_ONCE names, and return whether the table had room for all of them.

    Raises BadHostsLine, and adds nothing then; or BadHostsName, with all other names added.
    """
    if line is None:
        raise BadHostsLine(f"more than {MAX_LINE} octets")
    entries: list[HostEntry] = []
    bad: BadHostsName | None = None
    try:
        for entry in parse_long_line(line):
            entries.append(entry)
            if len(entry.names) == NAMES_AT_ONCE:
                yield
    except BadHostsName as problem:
        bad = problem
    for entry in entries:
        if not table.add(entry):
            return False
        if len(entry.names) == NAMES_AT_ONCE:
            yield
    if bad is not None:
        raise bad
    return True
