"""Builds ahead of the question what a cluster's state would build at the first one, between queries."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from topodns.cluster.state import ClusterState

PAUSE: Final = 0.1  # seconds between two rounds: what changes several times in a rollout is built a few times
SLICE: Final = 0.0005  # seconds of work in one turn of the event loop, so that no query waits for longer


class Warmer:
    """For as long as `run` runs, what `rouse` was called about is built soon. `clock` is monotonic, in seconds."""

    def __init__(self, states: "Iterable[ClusterState]", clock: Callable[[], float] = time.perf_counter) -> None:
        self._states = tuple(states)
        self._clock = clock
        self._due = asyncio.Event()
        self._due.set()

    def rouse(self) -> None:
        """Something has changed."""
        self._due.set()

    async def run(self) -> None:
        """Build what there is to build, then wait for changes; never ends."""
        while True:
            await self._due.wait()
            self._due.clear()
            for state in self._states:
                await self._warm(state)
            await asyncio.sleep(PAUSE)

    async def _warm(self, state: "ClusterState") -> None:
        began = self._clock()
        for _ in state.warm():
            if self._clock() - began >= SLICE:
                await asyncio.sleep(0)
                began = self._clock()
