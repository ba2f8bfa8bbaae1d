"""Log lines as CoreDNS prints them (`[INFO] text` on stdout, no time), and never so many that they become the trouble.

Query log lines go their own way: gathered, and written once a turn of the loop.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from topodns.edge.foreign_text import printable

MAX_PER_SECOND: Final = 10  # of one kind: the same text before its arguments are put in
FLUSH_AFTER: Final = 0.05  # seconds

_NAMES: Final = {logging.WARNING: "WARNING", logging.CRITICAL: "FATAL"}


def start_logging(stream: TextIO, clock: Callable[[], float], level: int = logging.INFO) -> None:
    """Send every logger of the process to this stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Formatter())
    handler.addFilter(RateLimit(clock))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.captureWarnings(True)


@contextmanager
def warnings_to(stream: TextIO) -> Iterator[None]:
    """Show warnings and errors on this stream meanwhile, each of them."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Formatter())
    handler.setLevel(logging.WARNING)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


class _Formatter(logging.Formatter):
    """A message is one line, whatever is in the names that it tells of; only a traceback has several."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return printable(super().formatMessage(record).rstrip())

    def format(self, record: logging.LogRecord) -> str:
        name = _NAMES.get(record.levelno, record.levelname)
        return "\n".join(f"[{name}] {printable(line)}" for line in super().format(record).splitlines())


class RateLimit:
    """A filter that lets MAX_PER_SECOND records of a kind through, and says with the next one how many it kept back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._second = 0
        self._seen: dict[str, int] = {}
        self._kept_back: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind = str(record.msg)
        self._turn_second()
        self._seen[kind] = self._seen.get(kind, 0) + 1
        if self._seen[kind] > MAX_PER_SECOND:
            self._kept_back[kind] = self._kept_back.get(kind, 0) + 1
            return False
        missed = self._kept_back.pop(kind, 0)
        if missed:
            record.msg = f"{record.getMessage()} ({missed} lines like it left out)"
            record.args = ()
        return True

    def _turn_second(self) -> None:
        second = int(self._clock())
        if second != self._second:
            self._second, self._seen = second, {}


class LineWriter:
    """Takes query log lines and writes them together, so that a line costs no system call of its own."""

    def __init__(self, stream: TextIO = sys.stdout) -> None:
        self._stream = stream
        self._lines: list[str] = []
        self._scheduled: asyncio.TimerHandle | None = None

    def __call__(self, line: str) -> None:
        self._lines.append(f"[INFO] {line}\n")
        if self._scheduled is None:
            self._scheduled = asyncio.get_running_loop().call_later(FLUSH_AFTER, self.flush)

    def flush(self) -> None:
        """Write what has been gathered."""
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        lines, self._lines = self._lines, []
        self._stream.write("".join(lines))
        self._stream.flush()
