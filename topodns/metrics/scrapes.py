"""Makes at most one exposition of each form per second, in slices between queries, however often it is scraped."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from topodns.time_slices import in_slices

log = logging.getLogger(__name__)


EVERY: Final = 1.0  # seconds for which an exposition is reused

T = TypeVar("T", bound=Hashable)


@dataclass(slots=True)
class _Made:
    exposition: asyncio.Task[bytes]
    at: float = 0.0  # when it was done


class Scrapes(Generic[T]):
    """Makes expositions of the pieces that `pieces` gives for a form. `clock`: monotonic, in seconds.

    The last exposition of each form is kept, so forms should be few. `before` is awaited before each is made.
    """

    def __init__(
        self,
        pieces: Callable[[T], Iterable[bytes]],
        clock: Callable[[], float] = time.monotonic,
        before: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self._pieces = pieces
        self._before = before
        self._clock = clock
        self._last: dict[T, _Made] = {}

    def latest(self, form: T) -> asyncio.Future[bytes]:
        """The exposition of this form in progress, the last one if it is younger than EVERY, or a new one.

        Callers share the future, so it must not be cancelled. It raises any exception of `pieces`.
        """
        last = self._last.get(form)
        if last is None or (last.exposition.done() and self._clock() - last.at >= EVERY):
            last = self._last[form] = _Made(asyncio.create_task(self._make(form), name="exposition"))
        return last.exposition

    async def _make(self, form: T) -> bytes:
        text: list[bytes] = []
        try:
            if self._before is not None:
                await self._before()
            await in_slices(map(text.append, self._pieces(form)), self._clock)
            return b"".join(text)
        except Exception:
            log.exception("bug: the metrics cannot be made")
            raise
        finally:
            self._last[form].at = self._clock()
