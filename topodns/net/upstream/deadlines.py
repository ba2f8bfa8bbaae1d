"""Deadlines of an upstream's queries, on one timer: one for each would cost more than the query."""

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from topodns.query.deferred import Timer, Timers

AT_ONCE: Final = 32  # `on_due` calls in one turn of the loop; each takes about 50 us


class Expiring(Protocol):
    """A query without a reply yet."""

    due: float  # on the timers' clock

    def on_due(self, now: float) -> None:
        """The query is due: set a later `due`, or `discard` the query from the deadlines. Must not raise."""


class Deadlines:
    """Calls `on_due` of waiting queries that are due, up to `period` seconds late; no timer runs while none waits."""

    __slots__ = ("_due", "_period", "_timer", "_timers", "_waiting", "discard")

    def __init__(self, timers: Timers, period: float) -> None:
        self._timers = timers
        self._period = period
        self._waiting: set[Expiring] = set()
        self._due: deque[Expiring] = deque()  # due at the last check, not handled yet
        self._timer: Timer | None = None
        # The set's own method: a wrapper in Python would take four times as long.
        self.discard: Callable[[Expiring], None] = self._waiting.discard

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, waiting: Expiring) -> bool:
        return waiting in self._waiting

    def add(self, waiting: Expiring) -> None:
        self._waiting.add(waiting)
        if self._timer is None:
            self._timer = self._timers.call_later(self._period, self._sweep)

    def _sweep(self) -> None:
        now = self._timers.time()
        try:
            if not self._due:
                self._due.extend(each for each in self._waiting if each.due <= now)
            for _ in range(min(AT_ONCE, len(self._due))):
                each = self._due.popleft()
                if each in self._waiting:  # handling another one may have settled it
                    each.on_due(now)
        finally:
            if not self._waiting:
                self._due.clear()
            pause = 0.0 if self._due else self._period
            self._timer = self._timers.call_later(pause, self._sweep) if self._waiting else None
