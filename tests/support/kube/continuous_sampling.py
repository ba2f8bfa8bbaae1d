"""Samples taken all the while, in a thread, so that a state of a moment is not missed."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class Course(Generic[T]):
    """Each thing seen that was another than the one before, with the time of its begin (monotonic seconds)."""

    moments: list[tuple[float, T]] = field(default_factory=list)
    looks: int = 0

    def note(self, seen: T) -> None:
        self.looks += 1
        if not self.moments or self.moments[-1][1] != seen:
            self.moments.append((time.monotonic(), seen))

    @property
    def seen(self) -> list[T]:
        return [seen for _, seen in self.moments]

    @property
    def latest(self) -> T | None:
        """None: nothing yet."""
        return self.moments[-1][1] if self.moments else None


@contextmanager
def followed(observed: Callable[[], T]) -> Iterator[Course[T]]:
    """Without a pause while the block runs; the sampled client must not be used elsewhere meanwhile."""
    course, ended = Course[T](), Event()

    def follow() -> None:
        while not ended.is_set():
            course.note(observed())

    with ThreadPoolExecutor(1, "followed") as pool:
        following = pool.submit(follow)
        try:
            yield course
        finally:
            ended.set()
            following.result()
