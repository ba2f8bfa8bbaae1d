"""Queries in flight to an upstream, over any transport: their ids, replies, retransmissions, deadlines. No sockets."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from math import inf
from struct import iter_unpack
from typing import Final

from topodns.dns.wire_format import HEADER_SIZE
from topodns.query.deferred import Timer, Timers
from topodns.query.upstream import Failure, UpstreamQuery

AT_ONCE: Final = 32  # `on_due` calls in one turn of the loop; each takes about 50 us

_TAIL: Final = 4  # type and class
_BARE_ERRORS: Final = frozenset({1, 4, 5})  # FORMERR, NOTIMP, REFUSED
_ONE: Final = b"\0\1"
_DRAWN: Final = 4096  # octets of randomness per system call, which costs more than everything else here


class RandomIds:
    """Unpredictable message ids, two octets each, from the kernel's random number generator."""

    __slots__ = ("draw",)

    def __init__(self, randomness: Callable[[int], bytes] = os.urandom) -> None:
        drawn = (iter_unpack("2s", randomness(_DRAWN)) for _ in repeat(None))
        self.draw: Callable[[], bytes] = chain.from_iterable(chain.from_iterable(drawn)).__next__
        """Returns a new id."""


def is_reply(message: bytes, question: bytes) -> bool:
    """Whether a message is the reply to a query with this question section (RFC 5452 section 9.1).

    That is a response with the same question, compared without case (RFC 4343), or a bare error. A name in the question
    has no compression pointers, since no name precedes it, so octets can be compared. The caller compares the id.
    """
    found = message[HEADER_SIZE : HEADER_SIZE + len(question)]
    if found != question:  # rare: most servers return the same octets
        if len(message) == HEADER_SIZE:
            return _is_bare_error(message)
        # Only the name may be lower-cased: in the type, octet 0x41 is another letter than 0x61.
        if found[-_TAIL:] != question[-_TAIL:] or found[:-_TAIL].lower() != question[:-_TAIL].lower():
            return False
    return message[2] & 0xF8 == 0x80 and message[4:6] == _ONE  # QR set, opcode QUERY


def _is_bare_error(header: bytes) -> bool:
    """Whether a header alone is the error of a server that could not parse the query (RFC 8906 section 3.1.3)."""
    return header[2] & 0xF8 == 0x80 and header[3] & 0x0F in _BARE_ERRORS and not any(header[4:])


class Retransmission(UpstreamQuery):
    """A query sent a second time because no reply to it has arrived (RFC 1035 section 4.2.1), with an id of its own.

    Over UDP it is sent to the same upstream from another port, over TCP (hedging) over another connection. Both stay in
    flight until the first reply to either, which is delivered as the reply to the original.

    Callers know the original only, which has the deadline. Of the two, each has the other as its `twin`.
    """

    __slots__ = ("original",)

    def __init__(self, original: UpstreamQuery) -> None:
        self.original = original
        self.message, self.question = original.message, original.question
        self.carrier = original.carrier
        self.deadline, self.due = original.deadline, inf
        self.sends = self.heard = 0
        self.twin = original
        original.twin = self

    def on_reply(self, result: bytes | Failure) -> None:
        self.original.on_reply(result)


def separate(query: UpstreamQuery) -> UpstreamQuery:
    """Make an original and its retransmission independent of each other, given either. Returns the other one."""
    twin = query.twin
    assert twin is not None
    query.twin = twin.twin = None
    return twin


class Deadlines:
    """Calls `on_due` for queries in flight that are due, up to `period` seconds late.

    All have one timer, since one for each would cost more than the query. Nothing is noted here of a query: the sweep
    looks at all that are in flight, which their transports keep anyway.

    `armed`: the timer, which runs only while queries are in flight; a transport that sends a query calls `arm` if it is
    None. `time`: the clock of all deadlines.
    """

    __slots__ = ("_due", "_in_flight", "_period", "_timers", "armed", "time")

    def __init__(self, timers: Timers, period: float) -> None:
        self._timers = timers
        self.time = timers.time
        self._period = period
        self._in_flight: list[Callable[[], Iterable[UpstreamQuery]]] = []
        self._due: deque[UpstreamQuery] = deque()  # due at the last sweep, not handled yet
        self.armed: Timer | None = None

    def add(self, in_flight: Callable[[], Iterable[UpstreamQuery]]) -> None:
        """Sweep the queries of one more transport: `in_flight` gives them."""
        self._in_flight.append(in_flight)

    def in_flight(self) -> Iterator[UpstreamQuery]:
        """The queries in flight of all transports; one that was sent twice is there twice."""
        for transport in self._in_flight:
            yield from transport()

    def arm(self) -> None:
        """Start the timer, unless it runs."""
        if self.armed is None:
            self.armed = self._timers.call_later(self._period, self._sweep)

    def _sweep(self) -> None:
        now = self.time()
        try:
            if not self._due:
                self._due.extend([query for query in self.in_flight() if query.due <= now])
            for _ in range(min(AT_ONCE, len(self._due))):
                query = self._due.popleft()
                if query.carrier is not None:  # handling another one may have settled it
                    query.carrier.on_due(query, now)
        finally:
            self.armed = None
            if self._due:
                self.armed = self._timers.call_later(0.0, self._sweep)
            elif any(True for _ in self.in_flight()):
                self.arm()
