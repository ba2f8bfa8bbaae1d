"""Decides when the next session of a `cache` with `push` begins, and with which upstream. Time is an argument."""

from random import Random
from typing import Final

RETRY_REFUSED: Final = 60.0  # seconds until an upstream that has refused is asked again, unless it wants another time
RETRY_LOST: Final = 1.0  # seconds after a lost session; doubled with each failure, up to RETRY_REFUSED
MAX_RETRY_DELAY: Final = 3600.0  # seconds: the longest wait that an upstream may ask for

_MOST_DOUBLED: Final = 8


class SessionBackoff:
    """The upstreams, by index, in turns: after the end of a session it is the turn of the next one.

    An upstream waits for as long as it wants to be left alone (RFC 8490 section 7.2.1), and so delays no other one; all
    wait while sessions are lost again and again. All times are of one clock, in seconds.
    """

    def __init__(self, upstreams: int, rng: Random) -> None:
        self._rng = rng
        self._turn = 0
        self._not_before = [0.0] * upstreams
        self._paused_until = 0.0
        self._failures = 0  # sessions that were lost since one was established

    @property
    def due(self) -> float:
        """The time from which on a session may begin."""
        return max(self._paused_until, min(self._not_before))

    def choose(self, now: float) -> int:
        """The upstream for a session that begins now, at `due` or later."""
        while self._not_before[self._turn] > now:
            self._next_turn()
        return self._turn

    def established(self) -> None:
        self._failures = 0

    def refused(self, now: float, wanted: float) -> None:
        """The upstream chosen last has refused; it wants its clients to wait for `wanted` seconds."""
        delay = max(RETRY_REFUSED, min(wanted, MAX_RETRY_DELAY))
        self._not_before[self._turn] = now + delay * (1 + self._rng.random() / 4)
        self._next_turn()

    def lost(self, now: float, wanted: float = 0.0) -> None:
        """The session with the upstream chosen last is lost, or could not begin."""
        own = min(RETRY_LOST * 2**self._failures, RETRY_REFUSED)
        self._failures = min(self._failures + 1, _MOST_DOUBLED)
        jitter = own * self._rng.random()
        self._paused_until = now + own + jitter
        self._not_before[self._turn] = now + min(wanted, MAX_RETRY_DELAY) + jitter
        self._next_turn()

    def _next_turn(self) -> None:
        self._turn = (self._turn + 1) % len(self._not_before)
