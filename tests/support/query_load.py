"""A load of questions from a few clients, paced or as fast as it is answered, and the result of each."""

import select
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.support.dns_messages import query
from tests.support.server_process import Server, open_tcp, open_udp
from tests.support.stub_resolvers import STUB_TIMEOUT, stub_address
from topodns.dns.tcp_framing import MessageReader, frame

_CLIENTS: Final = 16
_DATAGRAM: Final = 0xFFFF
_TURN: Final = 2  # milliseconds without an answer, then it is looked whether something is due


@dataclass
class Answered:
    """Seconds that each answer took; the answers with a wrong end; the questions without one in a stub's time."""

    seconds: list[float] = field(default_factory=list)
    wrong: list[bytes] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def percentile(self, percent: float) -> float:
        return sorted(self.seconds)[round(percent / 100 * (len(self.seconds) - 1))]


class _Client:
    """One socket."""

    def __init__(self, server: Server, tcp: bool, source: str) -> None:
        at = (server.address, server.port)
        self.sock = (open_tcp if tcp else open_udp)(at, source or stub_address())
        self._reader = MessageReader() if tcp else None

    def send(self, message: bytes) -> None:
        self.sock.sendall(message if self._reader is None else frame(message))

    def receive(self) -> Sequence[bytes]:
        """The messages that are there; there is something."""
        data = self.sock.recv(_DATAGRAM)
        return [data] if self._reader is None else self._reader.receive_data(data)


class Load:
    """Questions that differ in client and id. A right answer ends with one of `right`.

    All clients are at `source`, or each at an address of its own.
    """

    def __init__(self, server: Server, tcp: bool, right: Iterable[bytes], source: str = "") -> None:
        self._clients = [_Client(server, tcp, source) for _ in range(_CLIENTS)]
        self._by_descriptor = {client.sock.fileno(): client for client in self._clients}
        self._poll = select.poll()
        for descriptor in self._by_descriptor:
            self._poll.register(descriptor, select.POLLIN)
        self._right = tuple(right)
        self._in_flight: dict[tuple[_Client, bytes], tuple[float, str]] = {}  # in the order in which they were sent
        self._sent = 0
        self._answered = Answered()

    def run(self, questions: Iterable[str], window: int, per_second: float = float("inf")) -> Answered:
        """Ask them all, so many at a time and a second at most, and wait for the answers."""
        left, began = iter(questions), time.monotonic()
        more = True
        while more or self._in_flight:
            now = time.monotonic()
            due = (now - began) * per_second
            while more and self._sent < due and len(self._in_flight) < window:
                more = self._ask_next(left)
            self._give_up(now)
            for descriptor, _ in self._poll.poll(_TURN):
                self._take(self._by_descriptor[descriptor])
        return self._answered

    def close(self) -> None:
        for client in self._clients:
            client.sock.close()

    def _ask_next(self, left: Iterator[str]) -> bool:
        """Whether there was one."""
        question = next(left, None)
        if question is None:
            return False
        client, message = self._clients[self._sent % _CLIENTS], query(question, ident=self._sent & 0xFFFF)
        self._in_flight[client, message[:2]] = time.monotonic(), question
        self._sent += 1
        client.send(message)
        return True

    def _take(self, client: _Client) -> None:
        for message in client.receive():
            sent, _ = self._in_flight.pop((client, message[:2]), (0.0, ""))
            self._answered.seconds.append(time.monotonic() - sent)
            if not message.endswith(self._right):
                self._answered.wrong.append(message)

    def _give_up(self, now: float) -> None:
        while self._in_flight:
            key, (sent, question) = next(iter(self._in_flight.items()))
            if now - sent < STUB_TIMEOUT:
                break
            del self._in_flight[key]
            self._answered.lost.append(question)
