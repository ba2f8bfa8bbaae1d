"""Builds the derived indexes of cluster states between queries, before the first query would have to."""

import asyncio
import time
from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from topodns.cluster.state import ClusterState


PAUSE: Final = 0.1  # seconds between two rounds: an index that changes often in a rollout is built only a few times
SLICE: Final = 0.0005  # seconds of work in one turn of the event loop: no query waits for longer


class Warmer:
    """Builds missing indexes soon after each `rouse`, while `run` runs. `clock` is monotonic, in seconds."""

    def __init__(self, states: "Iterable[ClusterState]", clock: Callable[[], float] = time.perf_counter) -> None:
        self._states = tuple(states)
        self._clock = clock
        self._due = asyncio.Event()
        self._due.set()

    def rouse(self) -> None:
        """Schedule a round, as a state has changed."""
        self._due.set()

    async def run(self) -> None:
        """Build all missing indexes, then wait for changes; never ends."""
        while True:
            await self._due.wait()
            self._due.clear()
            for state in self._states:
                await self._warm(state)
            await asyncio.sleep(PAUSE)

    async def _warm(self, state: "ClusterState") -> None:
        began = self._clock()
        for _ in chain(state.warm(), state.contradictions.check()):
            if self._clock() - began >= SLICE:
                await asyncio.sleep(0)
                began = self._clock()
