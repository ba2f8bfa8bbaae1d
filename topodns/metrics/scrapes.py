"""Makes at most one exposition per second, in slices between queries, however often it is scraped."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic, TypeVar

log = logging.getLogger(__name__)


EVERY: Final = 1.0  # seconds for which an exposition is reused
SLICE: Final = 0.0005  # seconds of work in one turn of the event loop

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
        loop = asyncio.get_running_loop()
        made = self._last = loop.create_future()
        loop.call_soon(self._go_on, iter(self._lines()), [], made)
        return made

    def _go_on(self, lines: Iterator[str], so_far: list[str], made: asyncio.Future[T]) -> None:
        until = self._clock() + SLICE
        try:
            for line in lines:
                so_far.append(line)
                if self._clock() >= until:
                    asyncio.get_running_loop().call_soon(self._go_on, lines, so_far, made)
                    return
            made.set_result(self._wrap("".join(so_far).encode()))
        except Exception as problem:
            log.exception("bug: the metrics cannot be told")
            made.set_exception(problem)
        self._made_at = self._clock()
