"""One timer for all queries of an upstream: one for each would cost more than the query. Time is a `Timers`."""

from collections.abc import Callable
from typing import Protocol

from topodns.resolve.course import Timer, Timers


class Expiring(Protocol):
    """A query that is waited for."""

    @property
    def deadline(self) -> float:
        """On the timers' clock."""

    def expire(self) -> None:
        """Its time is over. It is no longer among the deadlines; must not raise."""


class Deadlines:
    """Looks at all that is waited for every `period` seconds, and at nothing while there is nothing."""

    __slots__ = ("_period", "_timer", "_timers", "_waiting", "discard")

    def __init__(self, timers: Timers, period: float) -> None:
        self._timers = timers
        self._period = period
        self._waiting: set[Expiring] = set()
        self._timer: Timer | None = None
        # Nothing to do but this, and a method of ours around it would take four times as long.
        self.discard: Callable[[Expiring], None] = self._waiting.discard

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, waiting: Expiring) -> None:
        self._waiting.add(waiting)
        if self._timer is None:
            self._timer = self._timers.call_later(self._period, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        now = self._timers.time()
        for each in [each for each in self._waiting if each.deadline <= now]:
            if each in self._waiting:  # what one expiry sets off may have settled another
                self._waiting.remove(each)
                each.expire()
        if self._waiting and self._timer is None:
            self._timer = self._timers.call_later(self._period, self._sweep)
