"""The clients: one that sends queries at an even pace, and one that queries a changed name until the answer is new.

The kernel notes the time at which an answer arrives (`tests.support.arrival_times`). So a latency does not include the
time until the client, on a core that it shares, reads the answer.
"""

import select
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from math import ceil
from typing import Final, NamedTuple

from tests.support.arrival_times import receive_stamped, stamping

PACE: Final = 500  # queries a second
LOST_AFTER: Final = 1.0  # seconds

_PAUSE: Final = 0.0003  # seconds between two queries for a change
_SOON: Final = 0.05  # seconds after which a query for a change is repeated


class Latencies(NamedTuple):
    """Latencies in milliseconds, in any order, and the number of queries without an answer."""

    milliseconds: Sequence[float]
    lost: int = 0

    def __str__(self) -> str:
        """The quantiles as "p50 / p99 / worst", and the lost queries if there are any."""
        if not self.milliseconds:
            return "no answer"
        ordered = sorted(self.milliseconds)
        figures = (ordered[ceil(len(ordered) * part) - 1] for part in (0.5, 0.99, 1.0))
        text = " / ".join(f"{figure:.2f}" for figure in figures)
        return f"{text}, {self.lost} lost" if self.lost else text


def latencies_since(made: Sequence[int], seen: Sequence[int]) -> Latencies:
    """The latencies of changes, from the times `made` to the times `seen`, in nanoseconds of the wall clock."""
    return Latencies([(after - before) / 1e6 for before, after in zip(made, seen, strict=True)])


class PacedClient(threading.Thread):
    """A context in which a thread sends these queries in turn, PACE a second.

    Queries before the first answer, while the server has no sockets yet, do not count.
    """

    def __init__(self, port: int, messages: Sequence[bytes]) -> None:
        super().__init__(name="paced client", daemon=True)
        self._sock = _socket_to(port)
        self._messages = messages
        self._sent: dict[bytes, int] = {}  # by message id
        self._latencies: list[float] = []
        self._ended = threading.Event()

    def __enter__(self) -> "PacedClient":
        self.start()
        return self

    def __exit__(self, *_failure: object) -> None:
        self._ended.set()
        self.join()
        self._sock.close()

    @property
    def latencies(self) -> Latencies:
        """The latencies of all queries, after the end of the context."""
        return Latencies(self._latencies, len(self._sent))

    def run(self) -> None:
        number, due = 0, time.monotonic()
        while not self._ended.is_set():
            self._ask(number)
            number, due = number + 1, max(due + 1 / PACE, time.monotonic() - 1 / PACE)
            self._collect(due)
        self._collect(time.monotonic() + LOST_AFTER, until_complete=True)

    def _ask(self, number: int) -> None:
        key = (number & 0xFFFF).to_bytes(2, "big")
        message = key + self._messages[number % len(self._messages)][2:]
        if not self._latencies:
            self._sent.clear()  # the server had no socket yet
        with suppress(ConnectionRefusedError):
            self._sent[key] = time.time_ns()
            self._sock.send(message)

    def _collect(self, until: float, until_complete: bool = False) -> None:
        """Read answers until this time (monotonic), or with `until_complete` until no query waits for one."""
        while (left := until - time.monotonic()) > 0 and (self._sent or not until_complete):
            if not select.select((self._sock,), (), (), left)[0]:
                return
            with suppress(ConnectionRefusedError):
                data, arrived = receive_stamped(self._sock)
                sent = self._sent.pop(data[:2], None)
                if sent is not None:
                    self._latencies.append((arrived - sent) / 1e6)


class ChangeWatcher:
    """A context with a socket that queries changed names, one after the other, until their answers are new."""

    def __init__(self, port: int) -> None:
        self._sock = _socket_to(port)
        self._sock.settimeout(_SOON)

    def __enter__(self) -> "ChangeWatcher":
        return self

    def __exit__(self, *_failure: object) -> None:
        self._sock.close()

    def seen(self, message: bytes, address: bytes, deadline: float) -> int | None:
        """Send this query until the answer has this packed address. Returns the time of arrival of that answer.

        That is in nanoseconds of the wall clock; None: there was no such answer before the deadline (monotonic).
        """
        number = 0
        while time.monotonic() < deadline:
            number = number % 0xFFFF + 1
            key = number.to_bytes(2, "big")
            with suppress(TimeoutError, ConnectionRefusedError):  # its sockets are not open yet
                self._sock.send(key + message[2:])
                data, arrived = receive_stamped(self._sock)
                while data[:2] != key:  # a late answer to an earlier query
                    data, arrived = receive_stamped(self._sock)
                if address in data:
                    return arrived
            time.sleep(_PAUSE)
        return None


def _socket_to(port: int) -> socket.socket:
    sock = stamping(socket.socket(type=socket.SOCK_DGRAM))
    sock.connect(("127.0.0.1", port))
    return sock
