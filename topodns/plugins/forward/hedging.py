"""Hedging: when a reply is late, one more upstream is asked. One timer serves all waits of the same length."""

from collections import deque
from typing import Final, Protocol

from topodns.plugins.forward.settings import Forward, UpstreamPolicy
from topodns.query.deferred import Timers

# Seconds without a reply after which a second upstream is asked as well: longer than nearly every reply takes, and
# short enough that a client notices nothing when an upstream stops responding.
HEDGE_AFTER: Final = 0.5
# Seconds by which a wait may be too long. A timer for each of 20,000 queries a second costs more than the queries.
SLACK: Final = 0.05
AT_ONCE: Final = 32  # late waits handled in one turn of the event loop; each takes about 50 us


def hedges(settings: Forward) -> bool:
    """Whether the directive asks a further upstream when a reply is late.

    Not with `sequential`, whose upstreams are asked in turn because they may give different answers, nor with a single
    upstream, nor if `read_timeout` is not longer than HEDGE_AFTER.
    """
    alike = settings.policy is not UpstreamPolicy.SEQUENTIAL and len(settings.upstreams) > 1
    return alike and settings.read_timeout > HEDGE_AFTER


class HedgedWait(Protocol):
    """A wait that may be hedged."""

    @property
    def over(self) -> bool:
        """Whether the wait has ended."""

    def hedge(self) -> bool:
        """Act on a late reply; whether to call this again after the same time."""


class HedgeTimer:
    """Calls `hedge` of each watched wait that is not over after `seconds`, or a little later.

    It is called again after each further `seconds` as long as it returns True.
    """

    def __init__(self, seconds: float, timers: Timers) -> None:
        self._seconds = seconds
        self._timers = timers
        self._waiting: deque[tuple[float, HedgedWait]] = deque()  # with their due times, monotonic
        self._armed = False

    def watch(self, waiting: HedgedWait, now: float) -> None:
        queue = self._waiting
        while queue and queue[0][1].over:  # as most are, which keeps the queue short
            queue.popleft()
        queue.append((now + self._seconds, waiting))
        if not self._armed:
            self._armed = True
            self._timers.call_later(self._seconds, self._expire)

    def _expire(self) -> None:
        now = self._timers.time()
        left = AT_ONCE
        while left and self._waiting and self._waiting[0][0] <= now:
            _, waiting = self._waiting.popleft()
            if waiting.over:
                continue
            left -= 1
            if waiting.hedge():
                self._waiting.append((now + self._seconds, waiting))
        self._armed = bool(self._waiting)
        if self._armed:
            self._timers.call_later(max(self._waiting[0][0] - now, SLACK) if left else 0.0, self._expire)
