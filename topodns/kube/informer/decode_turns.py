"""The lock under which reflectors decode, in slices of time between which queries are answered."""

import asyncio
import gc
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final

from topodns.time_slices import SLICE

PIECE: Final = SLICE / 5  # seconds; decoding an EndpointSlice takes as long, and applying it about twice as long
MUCH: Final = 200  # full slices before gc.freeze: fewer than the 77,000 new objects that trigger a full collection
AT_ONCE: Final = 2.0  # seconds within which MUCH slices must fall; slow, steady change never freezes


class DecodeTurns:
    """A lock for decoding: one reflector at a time, in order of request, each for a SLICE; then queries are answered.

    Also limits the garbage collector: objects of a list or a burst of events are long-lived, and a full collection each
    time that their number has grown by a quarter takes 100 ms and more. `clock` gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._lock = asyncio.Lock()
        self._since = clock()
        self._long_turns = 0  # full slices since `_since`

    def turn(self) -> "Turn":
        """A context that holds the lock, each time that it is entered.

        The work in it calls `pause_if_due` between small pieces.
        """
        return Turn(self._lock, self._clock, self._spent)

    def _spent(self, now: float) -> None:
        """Count a full slice; after MUCH of them within AT_ONCE, exempt all present objects from collection."""
        if now - self._since > AT_ONCE:
            self._since, self._long_turns = now, 0
        self._long_turns += 1
        if self._long_turns >= MUCH:
            self._since, self._long_turns = now, 0
            gc.freeze()


class Turn:
    """One reflector's hold of the lock, in slices; it may be entered again after it was left."""

    def __init__(self, lock: asyncio.Lock, clock: Callable[[], float], spent: Callable[[float], None]) -> None:
        self._lock = lock
        self._clock = clock
        self._spent = spent
        self._began = 0.0
        self._since = 0.0  # the last pause
        self._holding = False

    async def __aenter__(self) -> "Turn":
        await self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    async def pause_if_long(self) -> None:
        """If the work since the last pause took PIECE or more, let other tasks run but keep the lock; their time does
        not count for the slice.
        """
        paused = self._clock()
        if paused - self._since >= PIECE:
            await asyncio.sleep(0)
            self._since = self._clock()
            self._began += self._since - paused

    async def pause_if_due(self) -> None:
        """If the slice is used up, release the lock, let other tasks run and take the lock again."""
        now = self._clock()
        if now - self._began >= SLICE:
            self._end()
            self._spent(now)
            await asyncio.sleep(0)
            await self._begin()

    async def _begin(self) -> None:
        await self._lock.acquire()
        self._holding = True
        self._began = self._since = self._clock()

    def _end(self) -> None:
        if self._holding:  # False where the wait for the next slice was cancelled
            self._holding = False
            self._lock.release()
