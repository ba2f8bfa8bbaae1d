"""An event loop in virtual time: where no task is ready, the clock moves to the next timer at once."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import pytest

virtual_time = pytest.mark.virtual_time
"""Of an async test: it runs in virtual time."""

T = TypeVar("T")

_TOO_LATE: Final = 1e7  # seconds: what waits for longer waits for ever


class _NoWait(selectors.SelectSelector):
    """Instead of waiting, moves the loop's clock on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or self.now > _TOO_LATE:
            raise RuntimeError("nothing will ever happen in this test any more")
        self.now += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _NoWait()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def run_virtually(story: Coroutine[Any, Any, T]) -> T:
    """Run a story in virtual time; its loop's clock starts at 0."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(story)
