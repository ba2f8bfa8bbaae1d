"""Decoding in small pieces, so that no question waits for a list: half a millisecond a turn for all reflectors.

Nor for the garbage collector: what a list or a burst of events brings is there to stay, and going through all of it
each time that it has grown by a quarter takes 100 ms and more.
"""

import asyncio
import gc
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final

SLICE: Final = 0.0005  # seconds of work in one turn of the event loop
MUCH: Final = 200  # turns of that length; they make less than the 77,000 objects after which a full collection is due
AT_ONCE: Final = 2.0  # seconds; a cluster that changes a little all the time leaves the collector to its own devices


class Turns:
    """Work that is handed around: one worker at a time, in the order of asking. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._lock = asyncio.Lock()
        self._since = clock()
        self._long_turns = 0  # since then

    def take(self) -> "Turn":
        """A context in which to work; the work calls `breathe` between small pieces."""
        return Turn(self._lock, self._clock, self._spent)

    def _spent(self, now: float) -> None:
        """A whole turn was used. After many of them, keep what there is from the collector."""
        if now - self._since > AT_ONCE:
            self._since, self._long_turns = now, 0
        self._long_turns += 1
        if self._long_turns >= MUCH:
            self._since, self._long_turns = now, 0
            gc.freeze()


class Turn:
    """One worker's turn."""

    def __init__(self, lock: asyncio.Lock, clock: Callable[[], float], spent: Callable[[float], None]) -> None:
        self._lock = lock
        self._clock = clock
        self._spent = spent
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
        now = self._clock()
        if now - self._began >= SLICE:
            self._end()
            self._spent(now)
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
