"""The `errors` plugin: logs each SERVFAIL with its reason, or counts those of a pattern and logs one line a period."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from topodns.corefile.arguments import duration, flag, fold_options, no_body, wrong
from topodns.corefile.errors import listed, shown
from topodns.corefile.parser import Directive
from topodns.dns.message import Query
from topodns.dns.name import name_text
from topodns.dns.rrtype import type_text
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin
from topodns.plugins.setup import BlockSetup, Install, everywhere
from topodns.query.deferred import Timer, Timers
from topodns.query.plugin import ChainPart
from topodns.query.regex import BadPattern, compile_pattern

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Consolidation:
    """One `consolidate`: errors that match are counted for a period and logged as one line."""

    period: float  # seconds from the first error
    period_text: str  # as written
    pattern: str  # RE2 syntax, checked
    level: str = "error"  # of: debug, info, warning, error
    show_first: bool = False  # log the first error at once


@dataclass(frozen=True, slots=True)
class Errors:
    """The first consolidation that matches applies. Tracebacks are always logged, also without `stacktrace`."""

    consolidations: tuple[Consolidation, ...] = ()


_LEVELS: Final = ("debug", "info", "warning", "error")
_SHOW_FIRST: Final = "show_first"


def parse_errors(directive: Directive, _: Context) -> Errors:
    """`errors { stacktrace; consolidate DURATION REGEXP [LEVEL] [show_first] }`; `errors stdout` is an old spelling."""
    if directive.args not in ((), ("stdout",)):
        raise wrong(directive, "none")

    def stacktrace(option: Directive, errors: Errors) -> Errors:
        flag(option)
        return errors

    def consolidate(option: Directive, errors: Errors) -> Errors:
        return Errors((*errors.consolidations, _consolidation(option)))

    return fold_options(directive, Errors(), {"stacktrace": stacktrace, "consolidate": consolidate})


def _consolidation(option: Directive) -> Consolidation:
    no_body(option)
    if len(option.args) < 2:
        raise wrong(option, "a duration and a regular expression")
    period, text, *rest = option.args
    try:
        compile_pattern(text)
    except BadPattern as problem:
        raise option.error(f"'consolidate' has the regular expression {shown(text)}: {problem}") from None
    level = rest.pop(0) if rest and rest[0] in _LEVELS else "error"
    if rest not in ([], [_SHOW_FIRST]):
        raise option.error(f"'consolidate' has {shown(' '.join(rest))}, expected {listed(_LEVELS)}, then show_first")
    return Consolidation(
        period=duration(option, period), period_text=period, pattern=text, level=level, show_first=bool(rest)
    )


LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

Write = Callable[[int, str], None]
"""Logs a line: (level, line)."""


def _write(level: int, line: str) -> None:
    log.log(level, "plugin/errors: %s", line)


class ErrorLog:
    """The error log of one server block."""

    def __init__(self, settings: Errors, timers: Timers, write: Write = _write) -> None:
        self._write = write
        self._consolidated = [_ConsolidatedErrors(each, timers, write) for each in settings.consolidations]

    def __call__(self, query: Query, problem: str) -> None:
        """Log or count a query that ended in SERVFAIL because of `problem`."""
        level = logging.ERROR
        for consolidated in self._consolidated:
            if consolidated.matches(problem):
                if consolidated.take():
                    return
                level = consolidated.level
                break
        self._write(level, f"2 {name_text(query.qname)} {type_text(query.qtype)}: {problem}")

    def close(self) -> None:
        """End the periods under way, and log their counts."""
        for consolidated in self._consolidated:
            consolidated.close()


class _ConsolidatedErrors:
    """The errors of one consolidation that are counted but not logged yet."""

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
        """Count an error. The first begins a period, at whose end the number of its errors is logged in one line.

        False if the caller must log this error: the first of a period, with `show_first`. If no other follows in the
        period, there is no line at its end.
        """
        self._count += 1
        if self._count > 1:
            return True
        self._timer = self._timers.call_later(self._settings.period, self._end_period)
        return not self._settings.show_first

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._end_period()

    def _end_period(self) -> None:
        count, self._count, self._timer = self._count, 0, None
        if count > self._settings.show_first:
            since = f"occurred in last {self._settings.period_text}"
            self._write(self.level, f"{count} errors like '{self._settings.pattern}' {since}")


def _setup(settings: Errors, block: BlockSetup) -> Install:
    error_log = ErrorLog(settings, block.process.timers)
    block.on_close(error_log.close)
    return everywhere(ChainPart(reports=error_log))


PLUGIN: Final = Plugin(
    name="errors",
    coredns=differs(
        Effect.BOUNDS,
        "a line is logged for each SERVFAIL, at most 10 a second",
        stacktrace=differs(Effect.NOTHING, "tracebacks are logged with and without it"),
    ),
    parse=parse_errors,
    setup=_setup,
    fast_path=FastPath.ABSENT,
)
