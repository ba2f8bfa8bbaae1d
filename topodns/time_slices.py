"""Long work in slices of time, such as reading a large file, between which queries are answered."""

import asyncio
import time
from collections.abc import Callable, Generator, Iterable
from typing import Final, TypeVar

SLICE: Final = 0.0005  # seconds of work in one turn of the event loop

T = TypeVar("T")
Job = Generator[None, None, T]  # steps that take less than a SLICE each, then a result


async def in_slices(steps: Iterable[object], clock: Callable[[], float] = time.perf_counter) -> None:
    """Exhaust `steps`, and let other tasks run after every SLICE; a step should take less. `clock` gives seconds."""
    await do_in_slices(_job(steps), clock=clock)


async def do_in_slices(job: Job[T], pause: float = 0.0, clock: Callable[[], float] = time.perf_counter) -> T:
    """The result of the job. After every SLICE other tasks run, for `pause` seconds at least."""
    until = clock() + SLICE
    while True:
        try:
            next(job)
        except StopIteration as done:
            result: T = done.value
            return result
        if clock() >= until:
            await asyncio.sleep(pause)
            until = clock() + SLICE


def do_at_once(job: Job[T]) -> T:
    """The result of the job, where no queries wait: for commands."""
    while True:
        try:
            next(job)
        except StopIteration as done:
            result: T = done.value
            return result


def _job(steps: Iterable[object]) -> Job[None]:
    for _ in steps:
        yield
