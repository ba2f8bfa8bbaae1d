"""Retries of the reflectors of one API server: backoff per client, and spacing between all of them."""

import asyncio
import math
from random import Random
from typing import Final

SHORTEST: Final = 0.8  # seconds; the initial backoff of client-go's reflector, which doubles it
LONGEST: Final = 30.0  # seconds
FIRST: Final = 1.0  # seconds: upper end of the first wait
QUIET: Final = 120.0  # seconds without a failure after which the doubling restarts

_MAX_DOUBLINGS: Final = math.ceil(math.log2(LONGEST / SHORTEST))


class Backoff:
    """Random exponential backoff: each wait is between SHORTEST and a ceiling that doubles, at most LONGEST.

    Unless each attempt is `costly` (a list), the ceiling is also at most a quarter of the time since the first failure
    in a row, so that a recovery is noticed soon. The ceiling is never below FIRST.
    """

    def __init__(self, rng: Random, costly: bool = False) -> None:
        self._rng = rng
        self._costly = costly
        self._failures = 0
        self._last_failure = -math.inf
        self._failing_since: float | None = None

    def failed(self, now: float) -> float:
        """Record a failure at `now` (loop seconds). Returns the wait in seconds, from SHORTEST to LONGEST."""
        if now - self._last_failure > QUIET:
            self._failures = 0
        if self._failing_since is None:
            self._failing_since = now
        ceiling = min(LONGEST, SHORTEST * 2**self._failures)
        if not self._costly:
            ceiling = min(ceiling, (now - self._failing_since) / 4)
        self._last_failure = now
        self._failures = min(self._failures + 1, _MAX_DOUBLINGS)
        return self._rng.uniform(SHORTEST, max(FIRST, ceiling))

    def succeeded(self) -> bool:
        """Record a success. Returns whether it ends a series of failures. The doubling restarts only after QUIET."""
        ended = self._failing_since is not None
        self._failing_since = None
        return ended


SPACING: Final = 0.8  # seconds between two retries of any kinds


class RetryGate:
    """Spaces the retries of all reflectors, and ends their waits (but patient ones) once one of them succeeds.

    `losses` counts the watches of any kind lost to an unavailable server; each makes all reflectors check for a
    rollback.
    """

    def __init__(self) -> None:
        self.losses = 0
        self._opened = asyncio.Event()
        self._last = -math.inf

    async def wait(self, seconds: float, patient: bool = False) -> None:
        """Wait this long and then for a slot SPACING apart from other retries; `open` ends both early.

        At least SPACING even then, since the success of another kind may not mean success for this one. `patient`:
        `open` does not shorten this wait, for example since the server asked for it (Retry-After).
        """
        opened = asyncio.Event() if patient else self._opened
        await asyncio.sleep(SPACING)
        if not await _set_within(seconds - SPACING, opened):
            await _set_within(self._claim_turn(), opened)

    def open(self) -> None:
        """The server answers again: end all waits that are not patient, and free their claimed slots."""
        self._opened.set()
        self._opened = asyncio.Event()
        self._last = min(self._last, asyncio.get_running_loop().time())

    def _claim_turn(self) -> float:
        """Claim the next slot, at least SPACING after the last claimed one. Returns the seconds until the new slot."""
        now = asyncio.get_running_loop().time()
        self._last = max(now, self._last + SPACING)
        return self._last - now


async def _set_within(seconds: float, event: asyncio.Event) -> bool:
    """Wait for the event, at most this long. Returns whether it was set."""
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            return await event.wait()
    except TimeoutError:
        return False
