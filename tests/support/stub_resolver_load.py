"""Stub resolvers that ask at a steady pace, and the result of each question: right, wrong, late or lost.

As a libc does, each question has a socket of its own and so a source port of its own: none outlives a switch to
another server. None asks again: a question not answered in time is lost.
"""

import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count, cycle, pairwise
from typing import Final, NamedTuple

from tests.support.dns_messages import query
from tests.support.namespaced_node import Namespace

PATIENCE: Final = 2.0  # seconds in which a name of the cluster has to be answered (reliability.md section 6)

_TURN: Final = 2  # milliseconds without an event, then it is looked whether something is due
_SIZE: Final = 4096


class Question(NamedTuple):
    """The name of an A question, and the address that is the one right answer."""

    name: str
    right: str


def fresh_names() -> Iterator[Question]:
    """Names that were never asked for: each is that of a Pod address (`pods insecure`)."""
    for number in _names:
        address = f"10.{100 + (number >> 16) % 100}.{number >> 8 & 255}.{number & 255}"
        yield Question(f"{address.replace('.', '-')}.shop.pod.cluster.local", address)


_names = count()


@dataclass(slots=True)
class Asked:
    """One question. Times are those of time.monotonic()."""

    question: Question
    to: str
    tcp: bool
    sent: float
    answered: float | None = None
    right: bool = False
    got: str = ""  # what was wrong
    port: int = 0  # that it was asked from: how conntrack names it

    @property
    def seconds(self) -> float:
        return float("inf") if self.answered is None else self.answered - self.sent


@dataclass(slots=True)
class Outcome:
    """The results of all questions, in the order of asking."""

    asked: list[Asked] = field(default_factory=list)

    @property
    def lost(self) -> list[Asked]:
        """Never answered: silence for PATIENCE, a refusal of the network, a connection that broke."""
        return [each for each in self.asked if each.answered is None]

    @property
    def wrong(self) -> list[Asked]:
        """Answered with something else than the right address; an error, too."""
        return [each for each in self.asked if each.answered is not None and not each.right]

    def late(self, seconds: float) -> list[Asked]:
        """Answered, but later than this."""
        return [each for each in self.asked if each.answered is not None and each.seconds > seconds]

    @property
    def slowest(self) -> float:
        return max((each.seconds for each in self.asked if each.answered is not None), default=0.0)

    @property
    def longest_gap(self) -> float:
        """The longest time without a right answer, in seconds; from the first question to the last."""
        if not self.asked:
            return 0.0
        last = self.asked[-1].sent
        got = sorted(each.answered for each in self.asked if each.answered is not None and each.right)
        moments = [self.asked[0].sent, *got, last]
        return max(max(after - before for before, after in pairwise(moments)), 0.0)

    def of(self, address: str) -> "Outcome":
        """Of the questions asked there alone."""
        return Outcome([each for each in self.asked if each.to == address])

    def right_after(self, moment: float) -> bool:
        """Whether a question that was sent after this moment has had its right answer."""
        return any(each.right for each in self.asked if each.sent > moment)

    def first_right_after(self, moment: float) -> float:
        """Seconds from this moment until a question that was sent after it had its right answer."""
        return min(
            (each.answered - moment for each in self.asked if each.answered and each.right and each.sent > moment),
            default=float("inf"),
        )

    def __str__(self) -> str:
        """For a failed assertion, and to print: `4000 asked, 0 lost, ...`."""
        wrong = sorted({each.got for each in self.wrong})
        sent = [each.sent - self.asked[0].sent for each in self.lost]
        when = f" (sent {sent[0]:.2f} to {sent[-1]:.2f} s after the first)" if sent else ""
        return (
            f"{len(self.asked)} asked, {len(self.lost)} lost{when}, {len(self.wrong)} wrong {wrong[:5]}, "
            f"{len(self.late(1.0))} over 1 s, slowest {self.slowest:.3f} s, longest gap {self.longest_gap:.3f} s"
        )


class StubLoad:
    """Asks from where its thread is; `run` returns when `stop` was called and every answer is there or given up."""

    def __init__(
        self,
        servers: Sequence[str],
        questions: Iterator[Question],
        per_second: float,
        tcp_every: int = 0,
        patience: float = PATIENCE,
    ) -> None:
        """The servers are asked in turn; each `tcp_every`-th question goes over TCP (0: none)."""
        self._servers, self._questions = cycle(servers), questions
        self._per_second, self._tcp_every, self._patience = per_second, tcp_every, patience
        self._poll = select.epoll()
        self._open: dict[int, tuple[socket.socket, Asked, bytes]] = {}  # in the order in which they were sent
        self._parts: dict[int, bytes] = {}
        self._stop = threading.Event()
        self.outcome = Outcome()

    def run(self) -> None:
        began, asked = time.monotonic(), 0
        while not self._stop.is_set() or self._open:
            now = time.monotonic()
            while not self._stop.is_set() and asked < (now - began) * self._per_second:
                asked += 1
                self._ask(next(self._questions), self._tcp_every > 0 and asked % self._tcp_every == 0)
            self._give_up(now)
            for descriptor, events in self._poll.poll(_TURN / 1000):
                self._heed(descriptor, events)
        self._poll.close()

    def stop(self) -> None:
        self._stop.set()

    def _ask(self, question: Question, tcp: bool) -> None:
        to = next(self._servers)
        message = query(f"{question.name} A")
        asked = Asked(question, to, tcp, time.monotonic())
        self.outcome.asked.append(asked)
        sock = socket.socket(
            socket.AF_INET6 if ":" in to else socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM
        )
        sock.setblocking(False)
        with suppress(BlockingIOError, OSError):  # a refusal shows at the reading
            sock.connect((to, 53))
            if not tcp:
                sock.send(message)
        asked.port = sock.getsockname()[1]
        self._open[sock.fileno()] = sock, asked, message
        self._poll.register(sock, select.EPOLLOUT if tcp else select.EPOLLIN)

    def _heed(self, descriptor: int, events: int) -> None:
        sock, asked, message = self._open[descriptor]
        try:
            if events == select.EPOLLOUT:
                sock.send(struct.pack("!H", len(message)) + message)
                self._poll.modify(descriptor, select.EPOLLIN)
                return
            data = sock.recv(_SIZE)
        except OSError as refusal:
            asked.got = str(refusal)
            self._close(descriptor)
            return
        if asked.tcp:
            if data:
                data = self._parts[descriptor] = self._parts.get(descriptor, b"") + data
                if len(data) < 2 or len(data) < 2 + int.from_bytes(data[:2], "big"):
                    return
                data = data[2:]
            else:
                self._close(descriptor)
                return
        if data[:2] == message[:2]:  # else a late reply to an earlier owner of this port; a stub waits on
            _judge(asked, message, data)
            self._close(descriptor)

    def _give_up(self, now: float) -> None:
        while self._open:
            descriptor, (_, asked, _) = next(iter(self._open.items()))
            if now - asked.sent < self._patience:
                break
            self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        self._parts.pop(descriptor, None)
        self._open.pop(descriptor)[0].close()


def _judge(asked: Asked, message: bytes, reply: bytes) -> None:
    asked.answered = time.monotonic()
    rcode = reply[3] & 15
    ours = reply[12 : len(message)].lower() == message[12:].lower()
    asked.right = ours and rcode == 0 and reply.endswith(socket.inet_aton(asked.question.right))
    asked.got = "" if asked.right else f"rcode {rcode}" if ours else "another question"


@contextmanager
def asking(
    where: Namespace,
    servers: Sequence[str],
    per_second: float,
    questions: Callable[[], Iterator[Question]] = fresh_names,
    tcp_every: int = 0,
) -> Iterator[Outcome]:
    """Ask from a namespace meanwhile; at the end of the block the last answers are waited for, then all is counted."""
    load = StubLoad(servers, questions(), per_second, tcp_every)

    def run() -> None:
        with where.entered():
            load.run()

    thread = threading.Thread(target=run, name="stub load")
    thread.start()
    try:
        yield load.outcome
    finally:
        load.stop()
        thread.join()
