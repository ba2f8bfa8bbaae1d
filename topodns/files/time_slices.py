"""Long work in slices of time, such as reading a large file, between which queries are answered."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final

SLICE: Final = 0.0005  # seconds of work in one turn of the event loop


async def in_slices(steps: Iterable[object], clock: Callable[[], float] = time.perf_counter) -> None:
    """Exhaust `steps`, and let other tasks run after every SLICE; a step should take less. `clock` gives seconds."""
    until = clock() + SLICE
    for _ in steps:
        if clock() >= until:
            await asyncio.sleep(0)
            until = clock() + SLICE
