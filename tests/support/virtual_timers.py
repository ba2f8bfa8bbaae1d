"""A clock and timers that a test advances."""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count


@dataclass(eq=False)
class VirtualTimer:
    """One callback to come."""

    callback: Callable[[], object]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


class VirtualTimers:
    """`Timers` of `query.deferred`: starts at 1,000 seconds, since a monotonic clock starts anywhere."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._order = count()
        self._queue: list[tuple[float, int, VirtualTimer]] = []

    def time(self) -> float:
        return self._now

    def call_later(self, delay: float, callback: Callable[[], object], /) -> VirtualTimer:
        timer = VirtualTimer(callback)
        heappush(self._queue, (self._now + delay, next(self._order), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Let so much time pass; due timers are called at their own time, in order."""
        end = self._now + seconds
        while self._queue and self._queue[0][0] <= end + 1e-9:
            due, _, timer = heappop(self._queue)
            self._now = max(self._now, due)
            if not timer.cancelled:
                timer.callback()
        self._now = max(self._now, end)

    def pass_by(self, seconds: float) -> None:
        """Let so much time pass in which nothing else happens, as during long work; to be called by a callback, too."""
        self._now += seconds

    @property
    def pending(self) -> int:
        """Timers that are neither done nor cancelled."""
        return sum(not timer.cancelled for _, _, timer in self._queue)
