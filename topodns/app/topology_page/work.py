"""The work of the page on the event loop: one job at a time, in slices of time, with pauses for queries between."""

import asyncio
import logging
from typing import Final, TypeVar

from topodns.files.time_slices import Job, do_in_slices

log = logging.getLogger(__name__)

MAX_WAITING: Final = 8  # jobs; further requests are refused
PAUSE: Final = (
    0.001  # seconds after each slice: the page takes at most a third of the time, however much there is to do
)

T = TypeVar("T")


class Refused(ValueError):
    """A request that gets no answer: the status, and a sentence for the client."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class PageWork:
    """Does the jobs of all pages one after another."""

    def __init__(self) -> None:
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
                return await do_in_slices(job, PAUSE)
        except Refused:
            raise
        except Exception:
            log.exception("bug: the topology page has no answer")
            raise
        finally:
            self._waiting -= 1
