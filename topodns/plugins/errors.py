"""The `errors` directive: one log line for each query that failed, or, where consolidated, one for many."""

import logging
from collections.abc import Callable
from typing import Final

from topodns.dns.message import Query
from topodns.dns.names import name_text
from topodns.resolve.course import Timer, Timers
from topodns.resolve.query_log import type_text
from topodns.settings.errors import Consolidation, Errors
from topodns.settings.pattern import compile_pattern

log = logging.getLogger(__name__)

LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

Write = Callable[[int, str], None]
"""(level, line)"""


def _write(level: int, line: str) -> None:
    log.log(level, "plugin/errors: %s", line)


class ErrorLog:
    """The errors of one server block."""

    def __init__(self, settings: Errors, timers: Timers, write: Write = _write) -> None:
        self._write = write
        self._crowds = [_Crowd(each, timers, write) for each in settings.consolidations]

    def __call__(self, query: Query, problem: str) -> None:
        """A query ended in SERVFAIL because of this."""
        level = logging.ERROR
        for crowd in self._crowds:
            if crowd.matches(problem):
                if crowd.take():
                    return
                level = crowd.level
                break
        self._write(level, f"2 {name_text(query.qname)} {type_text(query.qtype)}: {problem}")

    def close(self) -> None:
        """Say what was not said yet."""
        for crowd in self._crowds:
            crowd.close()


class _Crowd:
    """The errors that one consolidation has taken in and not told of yet."""

    def __init__(self, settings: Consolidation, timers: Timers, write: Write) -> None:
        self.level = LEVELS[settings.level]
        self._settings = settings
        self._pattern = compile_pattern(settings.pattern)
        self._timers = timers
        self._write = write
        self._count = 0
        self._timer: Timer | None = None

    def matches(self, problem: str) -> bool:
        return self._pattern.search(problem) is not None

    def take(self) -> bool:
        """Whether the error needs no line of its own."""
        self._count += 1
        if self._count > 1:
            return True
        self._timer = self._timers.call_later(self._settings.period, self._tell)
        return not self._settings.show_first

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._tell()

    def _tell(self) -> None:
        count, self._count, self._timer = self._count, 0, None
        if count > self._settings.show_first:
            since = f"occurred in last {self._settings.period_text}"
            self._write(self.level, f"{count} errors like '{self._settings.pattern}' {since}")
