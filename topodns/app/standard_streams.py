"""Standard output and standard error of a serving process, which wait for no reader.

A reader that stalls (a log collector, journald, a stopped terminal) would otherwise stop DNS, /health and /ready once
the pipe to it is full, which takes 64 KiB of lines.
"""

import asyncio
import io
import os
import select
import socket
import stat
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TextIO

from topodns.metrics.registry import Reading

CAPACITY: Final = 1 << 20  # octets that wait for a reader; beyond, lines are dropped
ATOMIC: Final = 4096  # octets of a write that a pipe takes whole or not at all (PIPE_BUF, pipe(7))
AT_EXIT: Final = 1.0  # seconds that the end of a process waits for a reader
FIRST_PAUSE: Final = 0.01  # seconds until the next attempt; each failed one doubles it
LONGEST_PAUSE: Final = 1.0

Write = Callable[[bytes], int]
"""Writes a part of these octets at once, and returns how many. Raises OSError: BlockingIOError if it would wait."""


@contextmanager
def unblocked_output() -> Iterator[None]:
    """Within the context, sys.stdout and sys.stderr are `BoundedStream`s.

    At the end each is written out for AT_EXIT seconds at most. One whose reader has not read all by then stays in its
    place, so that no later message waits for that reader either; the other becomes as it was before.
    """
    streams: dict[str, TextIO] = {"stdout": sys.stdout, "stderr": sys.stderr}
    bounded: dict[str, BoundedStream] = {}
    for name, plain in streams.items():
        with suppress(AttributeError, OSError):  # closed at the start of the process (None), or no file (in a test)
            plain.flush()
            same = [each for each in bounded.values() if os.path.sameopenfile(each.fileno(), plain.fileno())]
            bounded[name] = same[0] if same else BoundedStream(plain.fileno(), plain.encoding)
            setattr(sys, name, bounded[name])
    try:
        yield
    finally:
        for name, stream in bounded.items():
            if stream.finish(AT_EXIT):
                setattr(sys, name, streams[name])


def dropped_reading() -> Reading:
    """The metric of the lines that this process has dropped."""
    return Reading(
        "topodns_log_lines_dropped",
        "Lines of the log that were dropped, as their reader did not take them.",
        "counter",
        (),
        lambda: [((), sum(each.dropped for each in {sys.stdout, sys.stderr} if isinstance(each, BoundedStream)))],
    )


class BoundedStream(io.TextIOBase):
    """A text stream to a file descriptor of this process. No write waits or raises an error.

    Lines are written at once where that is possible, in order. Where it is not (a full pipe, no reader, a full disk)
    CAPACITY octets wait, and are tried again by a timer of the running event loop, from 10 ms on less and less often up
    to once a second. Further lines are dropped and counted until all that waits is written; a line then says how many.

    A pipe or terminal is opened anew, for O_NONBLOCK belongs to an open file description, which other processes share
    (open(2)). A regular file is written directly: it has no way to write without waiting for its disk.
    """

    def __init__(self, descriptor: int, encoding: str, write: Write | None = None) -> None:
        self.dropped = 0
        self._descriptor = descriptor
        self._encoding = encoding
        self._write = write or _writer(descriptor)
        self._unfinished = ""  # the line that has no end yet
        self._pieces: deque[bytes] = deque()
        self._waiting = 0  # octets in `_pieces`
        self._missed = 0  # lines dropped since the last that was kept
        self._pause = FIRST_PAUSE
        self._timer: asyncio.TimerHandle | None = None

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        """Write all lines that end in `text`; the rest is kept until its line ends."""
        whole, end, rest = text.rpartition("\n")
        if end:
            lines = f"{self._unfinished}{whole}\n"
            self._unfinished = ""
            for piece in _pieces(lines.encode(self._encoding, "backslashreplace")):
                self._add(piece)
        self._unfinished += rest
        if self._timer is None:
            self._send()
        return len(text)

    def finish(self, seconds: float) -> bool:
        """Write what waits, within so many seconds, after the end of the event loop. Returns whether all is written."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = time.monotonic() + seconds
        self._send()
        while self._pieces and time.monotonic() < deadline:
            time.sleep(FIRST_PAUSE)
            self._send()
        return not self._pieces

    def _add(self, piece: bytes) -> None:
        if self._missed or self._waiting + len(piece) > CAPACITY:
            lines = piece.count(b"\n")
            self._missed += lines
            self.dropped += lines
        else:
            self._pieces.append(piece)
            self._waiting += len(piece)

    def _send(self) -> None:
        while self._pieces:
            piece = self._pieces[0]
            try:
                size = self._write(piece)
            except OSError:  # also EPIPE, EIO and ENOSPC: the reader may come back, the disk have room again
                self._try_later()
                return
            self._pause = FIRST_PAUSE
            self._waiting -= size
            self._pieces[0] = piece[size:]
            if not self._pieces[0]:
                del self._pieces[0]
            if self._missed and not self._pieces:
                missed, self._missed = self._missed, 0
                self._add(b"[WARNING] %d lines of the log were left out here: its reader did not take them\n" % missed)

    def _try_later(self) -> None:
        with suppress(RuntimeError):  # no running event loop: the next write or `finish` tries again
            self._timer = asyncio.get_running_loop().call_later(self._pause, self._try_again)
            self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _try_again(self) -> None:
        self._timer = None
        self._send()


def _pieces(lines: bytes) -> Iterator[bytes]:
    """Whole lines in pieces of at most ATOMIC octets, which a pipe does not mix with lines of other processes.

    A longer line is a piece of its own.
    """
    start = 0
    while start < len(lines):
        end = lines.rfind(b"\n", start, start + ATOMIC) + 1 or lines.find(b"\n", start) + 1
        yield lines[start:end]
        start = end


def _writer(descriptor: int) -> Write:
    """The function that writes to this open file without waiting."""
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISSOCK(mode):  # journald
        sock = socket.socket(fileno=os.dup(descriptor))
        return lambda octets: sock.send(octets, socket.MSG_DONTWAIT)
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        with suppress(OSError):  # of another user, or no /proc
            flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY
            own = os.open(f"/proc/self/fd/{descriptor}", flags)
            return lambda octets: os.write(own, octets)
    return _writer_if_ready(descriptor)


def _writer_if_ready(descriptor: int) -> Write:
    """Writes only while poll(2) reports room: a pipe then takes ATOMIC octets, if no other process writes."""
    readiness = select.poll()
    readiness.register(descriptor, select.POLLOUT)

    def write(octets: bytes) -> int:
        if not readiness.poll(0):
            raise BlockingIOError
        return os.write(descriptor, octets[:ATOMIC])

    return write
