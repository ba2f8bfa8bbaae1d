"""Deadlines of an upstream's queries, on one timer: one for each would cost more than the query.

Nothing is noted here of a query: the sweep looks at all that are in flight, which their transports keep anyway.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from topodns.query.deferred import Timer, Timers
from topodns.query.upstream import UpstreamQuery

AT_ONCE: Final = 32  # `on_due` calls in one turn of the loop; each takes about 50 us


class Deadlines:
    """Calls `on_due` for queries in flight that are due, up to `period` seconds late; no timer runs while none is.

    `armed`: the timer runs. Who sends a query calls `arm` unless it does. `time`: the clock of all deadlines.
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
