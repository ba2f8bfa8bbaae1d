"""Waiting without a loop: what a step returns when its answer must come from elsewhere, and who goes on with it.

A course is a coroutine that waits for nothing but `Outcome`s. It is no asyncio task: `pursue` runs it, and whoever
settles the outcome it waits for runs it on, in the same turn. That costs a tenth of a task and a future, and needs no
loop in tests. Time is a `Timers`: the event loop's, or a test's.
"""

import logging
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, Protocol, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

Course = Coroutine["Outcome[Any]", None, T]


class Timer(Protocol):
    def cancel(self) -> None: ...


class Timers(Protocol):
    """An event loop, as far as steps may know it."""

    def time(self) -> float:
        """Monotonic seconds."""

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Timer: ...


class Outcome(Generic[T]):
    """A value that may not be there yet, settled once. Any number of courses may wait for it."""

    __slots__ = ("_settled", "_value", "_waiting")

    _value: T  # where it is settled

    def __init__(self, waiting: Callable[[T], object] | None = None) -> None:
        """`waiting` waits from the start."""
        self._settled = False
        # Mostly one waits, and two outcomes are made for each forwarded query: no list for one.
        self._waiting: Callable[[T], object] | list[Callable[[T], object]] | None = waiting

    @property
    def settled(self) -> bool:
        return self._settled

    def settle(self, value: T) -> None:
        """The value is here; those that wait go on before this returns. Later values are ignored."""
        if self._settled:
            return
        self._settled, self._value = True, value
        waiting, self._waiting = self._waiting, None
        if isinstance(waiting, list):
            for go_on in waiting:
                go_on(value)
        elif waiting is not None:
            waiting(value)

    def then(self, go_on: Callable[[T], object]) -> None:
        """Call `go_on` with the value: at once where it is there. It must not raise."""
        if self._settled:
            go_on(self._value)
        elif self._waiting is None:
            self._waiting = go_on
        elif isinstance(self._waiting, list):
            self._waiting.append(go_on)
        else:
            self._waiting = [self._waiting, go_on]

    def __await__(self) -> Generator["Outcome[T]", None, T]:
        if not self._settled:
            yield self
        return self._value


def pursue(course: Course[T], then: Callable[[T], object]) -> None:
    """Run a course to its end, now as far as it goes; `then` gets what it returns.

    A course that raises is a bug: logged, and `then` is never called; so the outermost one catches all.
    """

    def go_on(_: object = None) -> None:
        try:
            waits_for = course.send(None)
        except StopIteration as end:
            then(end.value)
        except Exception:
            log.exception("bug: a course raised")
        else:
            waits_for.then(go_on)

    go_on()


async def at_most(outcome: Outcome[T], seconds: float, timers: Timers) -> T | None:
    """The value of `outcome`, or None once so many seconds have passed without it; it may still be settled later."""
    first: Outcome[T | None] = Outcome()
    timer = timers.call_later(seconds, lambda: first.settle(None))
    outcome.then(first.settle)
    value = await first
    timer.cancel()
    return value
