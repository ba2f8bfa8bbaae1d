"""Long work for HTTP requests, on the event loop: one job at a time, in slices of time between queries.

A node-cache loads this module: it may import nothing of clusters.
"""

import asyncio
import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from topodns.time_slices import Job, do_in_slices

log = logging.getLogger(__name__)

MAX_WAITING: Final = 8  # jobs of a queue, the one that is done included; further requests are refused

T = TypeVar("T")


class Refused(ValueError):
    """A request that gets no answer: the status, and a sentence for the client."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class JobQueue:
    """Does jobs one after another.

    `name`: for the log. `pause`: seconds after each slice, in which other tasks run.
    """

    def __init__(self, name: str, pause: float = 0.0) -> None:
        self._name = name
        self._pause = pause
        self._turn = asyncio.Lock()
        self._waiting = 0

    @property
    def full(self) -> bool:
        return self._waiting >= MAX_WAITING

    async def do(self, job: Job[T]) -> T:
        """The result of the job. Any exception of it but Refused is a bug, which is logged. Raises both."""
        self._waiting += 1
        try:
            async with self._turn:
                with _no_collection():
                    return await do_in_slices(job, self._pause)
        except Refused:
            raise
        except Exception:
            log.exception("bug: %s has no answer", self._name)
            raise
        finally:
            self._waiting -= 1


@contextmanager
def _no_collection() -> Iterator[None]:
    """Within the context, cyclic garbage is not collected.

    A job over a large cluster has 50,000 live objects, in none of which garbage hides; to go through them again and
    again would delay queries by 10 ms and more each time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
