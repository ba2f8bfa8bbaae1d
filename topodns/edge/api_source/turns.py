"""Decoding in small pieces, so that no question waits for a list: half a millisecond a turn for all reflectors."""

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final

SLICE: Final = 0.0005  # seconds of work in one turn of the event loop


class Turns:
    """Work that is handed around: one worker at a time, in the order of asking. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._lock = asyncio.Lock()

    def take(self) -> "Turn":
        """A context in which to work; the work calls `breathe` between small pieces."""
        return Turn(self._lock, self._clock)


class Turn:
    """One worker's turn."""

    def __init__(self, lock: asyncio.Lock, clock: Callable[[], float]) -> None:
        self._lock = lock
        self._clock = clock
        self._began = 0.0
        self._holding = False

    async def __aenter__(self) -> "Turn":
        await self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    async def breathe(self) -> None:
        """Let everybody else have a turn if this one has been long enough."""
        if self._clock() - self._began >= SLICE:
            self._end()
            await asyncio.sleep(0)
            await self._begin()

    async def _begin(self) -> None:
        await self._lock.acquire()
        self._holding = True
        self._began = self._clock()

    def _end(self) -> None:
        if self._holding:  # not so where waiting for the next turn was cancelled
            self._holding = False
            self._lock.release()
