"""Logging in CoreDNS's format (`[INFO] text` on stdout, no timestamp), rate-limited so that a flood costs little.

Query log lines bypass `logging`: `LineWriter` buffers them and writes them together.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from topodns.memory.bounded import LRUCache, TTLCache

LONGEST: Final = 500  # characters

_LOOKED_AT: Final = 4 * LONGEST  # characters of a text that are processed; more than LONGEST, as white space collapses


def printable(text: str) -> str:
    """`text` with every unprintable character escaped as in Python (`\\x1b`), so that it cannot control a terminal.

    Line feeds are escaped, too, so that no text can forge a log line.
    """
    return text if text.isprintable() else "".join(map(_escaped, text))


def one_line(text: str) -> str:
    """`text` as at most LONGEST printable characters, with runs of white space collapsed to one blank."""
    line = printable(" ".join(text[:_LOOKED_AT].split()))
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def _escaped(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


MAX_PER_SECOND: Final = 10  # records of one kind: logged by the same line of code
MAX_KINDS: Final = 1024  # that are counted; a further one replaces the one logged least recently
FLUSH_AFTER: Final = 0.05  # seconds

_NAMES: Final = {logging.WARNING: "WARNING", logging.CRITICAL: "FATAL"}


def start_logging(clock: Callable[[], float], level: int = logging.INFO) -> None:
    """Write the records of all loggers, from `level` up, and Python's warnings to stdout, with a `RateLimit`.

    Earlier handlers are removed. `clock` is monotonic, in seconds.
    """
    handler = _StandardOutput()
    handler.setFormatter(_Formatter())
    handler.addFilter(RateLimit(clock))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.captureWarnings(True)


@contextmanager
def warnings_to(stream: TextIO) -> Iterator[None]:
    """Within the context, also write warnings and errors to this stream, without a rate limit."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Formatter())
    handler.setLevel(logging.WARNING)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


class _StandardOutput(logging.StreamHandler[TextIO]):
    """Writes to `sys.stdout` as it is at that time: `app.standard_streams` replaces it while a server runs."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stdout
        super().emit(record)


class _Formatter(logging.Formatter):
    """Formats a message as one line, with unprintable characters escaped; only a traceback has several lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return printable(super().formatMessage(record).rstrip())

    def format(self, record: logging.LogRecord) -> str:
        name = _NAMES.get(record.levelno, record.levelname)
        return "\n".join(f"[{name}] {printable(line)}" for line in super().format(record).splitlines())


class RateLimit:
    """A logging filter that passes MAX_PER_SECOND records of a kind (one line of code) within a second of the first.

    The next record of that kind that passes states the number suppressed.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        # By (file, line): the number of records, in a list of one.
        self._recent: TTLCache[tuple[str, int], list[int]] = TTLCache(MAX_KINDS, 1.0, clock)
        self._kept_back: LRUCache[tuple[str, int], int] = LRUCache(MAX_KINDS)

    def filter(self, record: logging.LogRecord) -> bool:
        kind = record.pathname, record.lineno
        seen = self._recent.get(kind)
        if seen is None:
            seen = self._recent[kind] = [0]
        seen[0] += 1  # in place: to set it again would begin another second
        if seen[0] > MAX_PER_SECOND:
            self._kept_back[kind] = self._kept_back.get(kind, 0) + 1
            return False
        missed = self._kept_back.pop(kind, 0)
        if missed:
            record.msg = f"{record.getMessage()} ({missed} lines like it left out)"
            record.args = ()
        return True


class LineWriter:
    """Buffers query log lines for FLUSH_AFTER seconds and prints them together, to save a system call per line."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._scheduled: asyncio.TimerHandle | None = None

    def __call__(self, line: str) -> None:
        self._lines.append(f"[INFO] {line}\n")
        if self._scheduled is None:
            self._scheduled = asyncio.get_running_loop().call_later(FLUSH_AFTER, self.flush)

    def flush(self) -> None:
        """Print the buffered lines."""
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        lines, self._lines = self._lines, []
        print("".join(lines), end="", flush=True)
