"""Makes at most one exposition per second, in slices between queries, however often it is scraped."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from topodns.files.time_slices import in_slices

log = logging.getLogger(__name__)


EVERY: Final = 1.0  # seconds for which an exposition is reused

T = TypeVar("T")


class Scrapes(Generic[T]):
    """Makes expositions from `lines`; `wrap` converts their octets to the result. `clock`: monotonic, in seconds."""

    def __init__(
        self,
        lines: Callable[[], Iterable[str]],
        wrap: Callable[[bytes], T],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lines = lines
        self._wrap = wrap
        self._clock = clock
        self._last: asyncio.Future[T] | None = None
        self._made_at = 0.0

    def latest(self) -> asyncio.Future[T]:
        """The exposition in progress, the last one if it is younger than EVERY, or a new one.

        Callers share the future, so it must not be cancelled. It raises any exception of `lines`.
        """
        last = self._last
        if last is not None and (not last.done() or self._clock() - self._made_at < EVERY):
            return last
        self._last = asyncio.create_task(self._make(), name="exposition")
        return self._last

    async def _make(self) -> T:
        text: list[str] = []
        try:
            await in_slices(map(text.append, self._lines()), self._clock)
            return self._wrap("".join(text).encode())
        except Exception:
            log.exception("bug: the metrics cannot be made")
            raise
        finally:
            self._made_at = self._clock()
