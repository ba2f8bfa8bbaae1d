"""One timer for many waits of the same length: what is not there when its time is up, is hurried."""

from collections import deque
from typing import Final, Protocol

from topodns.resolve.course import Timers

# Seconds that waits may be longer than said. A timer for each of 20,000 questions a second costs more than they do.
SLACK: Final = 0.05


class Hurried(Protocol):
    @property
    def over(self) -> bool:
        """Whether it waits no more."""

    def hurry(self) -> bool:
        """Its time is up, and it still waits; whether it is to be hurried again after as long."""


class Impatience:
    """Hurries each of those that wait after so many seconds, or a little later."""

    def __init__(self, seconds: float, timers: Timers) -> None:
        self._seconds = seconds
        self._timers = timers
        self._waiting: deque[tuple[float, Hurried]] = deque()  # by when their time is up
        self._armed = False

    def watch(self, waiting: Hurried, now: float) -> None:
        queue = self._waiting
        while queue and queue[0][1].over:  # most are, so that few are kept
            queue.popleft()
        queue.append((now + self._seconds, waiting))
        if not self._armed:
            self._armed = True
            self._timers.call_later(self._seconds, self._ring)

    def _ring(self) -> None:
        now = self._timers.time()
        while self._waiting and self._waiting[0][0] <= now:
            _, waiting = self._waiting.popleft()
            if not waiting.over and waiting.hurry():
                self._waiting.append((now + self._seconds, waiting))
        self._armed = bool(self._waiting)
        if self._armed:
            self._timers.call_later(max(self._waiting[0][0] - now, SLACK), self._ring)
