"""How long to wait before the next request after one that failed. Pure: time and chance are arguments."""

import math
from random import Random
from typing import Final

SHORTEST: Final = 0.8  # seconds; client-go's reflector begins with it and doubles
LONGEST: Final = 30.0  # seconds
FIRST: Final = 1.0  # seconds within which the first attempt comes
QUIET: Final = 120.0  # seconds without a failure after which the doubling begins anew

_MAX_DOUBLINGS: Final = math.ceil(math.log2(LONGEST / SHORTEST))


class Backoff:
    """The waits of one client: each chosen at random between the shortest and a ceiling that doubles.

    So that an end of the trouble is noticed soon after it, the ceiling also stays within a quarter of the time for
    which nothing has succeeded. Not so where each attempt is `costly`: there doubling alone counts.
    """

    def __init__(self, rng: Random, costly: bool = False) -> None:
        self._rng = rng
        self._costly = costly
        self._failures = 0
        self._last_failure = -math.inf
        self._failing_since: float | None = None

    def failed(self, now: float) -> float:
        """Seconds to wait after a failure at `now`: SHORTEST..LONGEST, the first time at most FIRST."""
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
        """Something has come of a request. Whether that ends a time of trouble."""
        ended = self._failing_since is not None
        self._failing_since = None
        return ended
