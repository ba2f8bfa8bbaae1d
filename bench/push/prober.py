"""Makes changes at an even pace, and queries both caches until each has the right answer."""

import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from bench.push.scene import Program, query

_LOOK_EVERY: Final = 0.001  # seconds between two queries for one change
_NAMES_EACH: Final = 20  # queries a millisecond to one cache, at most
_STEADY: Final = 0.005  # seconds between two queries for names that do not change, as of Pods
_CONSTANT: Final = b"\x0a\xff"  # addresses of the other endpoints begin like this


class Change(NamedTuple):
    """A change of a Service. `version`: its number, from which `address_of` makes the new address."""

    version: int
    made: float  # monotonic seconds


def address_of(version: int) -> str:
    return f"10.{100 + (version >> 16)}.{version >> 8 & 255}.{version & 255}"


@dataclass
class Shown:
    """One cache, and the changes that its answers do not have yet (`pending`, by the number of the Service)."""

    program: Program
    seconds: list[float] = field(default_factory=list)  # from each change to the right answer
    went_back: int = 0  # answers older than one before
    pending: dict[int, deque[Change]] = field(default_factory=dict)
    sock: socket.socket = field(init=False)
    newest: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sock = socket.socket(type=socket.SOCK_DGRAM)
        self.sock.connect((self.program.address, self.program.port))
        self.sock.setblocking(False)

    def ask(self, number: int) -> None:
        self.sock.send(query(number))

    def take(self) -> None:
        """Read all answers that have arrived, and note the changes that they have."""
        while True:
            try:
                data = self.sock.recv(4096)
            except BlockingIOError:
                return
            now, number = time.monotonic(), int.from_bytes(data[:2], "big")
            version = _version(data)
            if version is not None:
                self._note(number, version, now)

    def _note(self, number: int, version: int, now: float) -> None:
        self.went_back += version < self.newest.get(number, 0)
        self.newest[number] = max(version, self.newest.get(number, 0))
        changes = self.pending.get(number)
        while changes and changes[0].version <= version:
            self.seconds.append(now - changes.popleft().made)
        if not changes:
            self.pending.pop(number, None)


def _version(answer: bytes) -> int | None:
    """The version in the address that changes: A records end the answer, with their RDATA behind a length of 4."""
    at = answer.find(b"\0\1\0\1", 12) + 4  # behind the question
    for _ in range(int.from_bytes(answer[6:8], "big")):
        rdata = answer[at + 12 : at + 16]
        at += 16
        if rdata[:2] != _CONSTANT:
            return (rdata[1] - 100) << 16 | rdata[2] << 8 | rdata[3] if rdata[1] >= 100 else 0
    return None


class Prober:
    """Makes changes, and queries. `apply` gives the stand-in for an API server a Service (number) with an address."""

    def __init__(self, services: int, shown: Sequence[Shown], apply: Callable[[int, str], object]) -> None:
        self._services = services
        self._shown = shown
        self._apply = apply
        self._made = 0
        self._steady = 0
        self._turn = 0

    def run(self, seconds: float, changes_a_second: float) -> None:
        """Make changes for so long, one Service after the other, and query meanwhile."""
        began = time.monotonic()
        while (now := time.monotonic()) < began + seconds:
            if now >= began + self._made / changes_a_second:
                self._change()
            self._look()

    def drain(self, seconds: float) -> None:
        """Query until the answers of both caches have all changes, for at most so many seconds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and any(each.pending for each in self._shown):
            self._look()

    @property
    def made(self) -> int:
        return self._made

    def _change(self) -> None:
        self._made += 1
        number = self._made * 7919 % self._services
        change = Change(self._made, time.monotonic())
        for each in self._shown:
            each.pending.setdefault(number, deque()).append(change)
        self._apply(number, address_of(self._made))

    def _look(self) -> None:
        began = time.monotonic()
        for each in self._shown:
            numbers = list(each.pending)
            at = self._turn * _NAMES_EACH % len(numbers) if len(numbers) > _NAMES_EACH else 0
            for number in numbers[at : at + _NAMES_EACH]:
                each.ask(number)
        self._turn += 1
        if self._turn % round(_STEADY / _LOOK_EVERY) == 0:
            self._steady = (self._steady + 1) % self._services
            for each in self._shown:
                each.ask(self._steady)
        time.sleep(max(0.0, began + _LOOK_EVERY - time.monotonic()))
        for each in self._shown:
            each.take()
