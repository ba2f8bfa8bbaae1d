"""Deferred answers: the coroutine that a plugin returns while its answer must come from elsewhere, such as an upstream.

A `Deferred` is a coroutine that awaits only `Outcome`s. It is no asyncio task: `pursue` runs it up to its first pending
outcome, and `Outcome.settle` resumes it in the same turn of the loop. That costs a tenth of a task and a future, and
needs no loop in tests. Time comes from a `Timers`: the event loop, or a test's fake.
"""

import logging
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

log = logging.getLogger(__name__)


T = TypeVar("T")

Deferred = Coroutine["Outcome[Any]", None, T]


class Timer(Protocol):
    def cancel(self) -> None: ...


class Timers(Protocol):
    """The part of an event loop that plugins may use."""

    def time(self) -> float:
        """Monotonic seconds, by which answers expire: those of the process count the time in suspend as well."""

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Timer: ...


class DeferredReply(Protocol):
    """A reply to a client that is not there yet."""

    def deliver_to(self, take: Callable[[Any, bytes | None], object], place: object) -> None:
        """Have `take(place, reply)` called with the reply, None for no reply: now if it is there, else later.

        Called once at most. `take` must not raise.
        """


class Outcome(Generic[T]):
    """A value that may be pending, settled once (a future without a loop). Any number of coroutines may await it."""

    __slots__ = ("_settled", "_value", "_waiting")

    _value: T  # only once settled

    def __init__(self, waiting: Callable[[T], object] | None = None) -> None:
        """`waiting`: the first callback, as if passed to `then`."""
        self._settled = False
        # Mostly there is one callback, and a forwarded query makes two outcomes: no list for a single callback.
        self._waiting: Callable[[T], object] | list[Callable[[T], object]] | None = waiting

    @property
    def settled(self) -> bool:
        return self._settled

    def settle(self, value: T) -> None:
        """Set the value and call all callbacks before returning. Without effect if a value is set already."""
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
        """Call `go_on` with the value: now if it is set, otherwise when `settle` sets it. `go_on` must not raise."""
        if self._settled:
            go_on(self._value)
        elif self._waiting is None:
            self._waiting = go_on
        elif isinstance(self._waiting, list):
            self._waiting.append(go_on)
        else:
            self._waiting = [self._waiting, go_on]

    def deliver_to(self, take: Callable[[Any, T], object], place: object) -> None:
        """Implements `DeferredReply`, if the value is a reply."""
        self.then(partial(take, place))

    def __await__(self) -> Generator["Outcome[T]", None, T]:
        if not self._settled:
            yield self
        return self._value


def pursue(deferred: Deferred[T], then: Callable[[T], object]) -> None:
    """Run a deferred answer up to its first pending outcome, and on as outcomes settle; `then` gets its return value.

    `then` may be called before this returns. An exception of the coroutine is a bug: it is logged, and `then` is never
    called, so the outermost coroutine has to catch all exceptions.
    """
    _Pursuit(deferred, then)(None)


class _Pursuit(Generic[T]):
    """A deferred answer that runs: a callback of outcomes. No closure, which would refer to itself: what is left of a
    query must not wait for a garbage collection.
    """

    __slots__ = ("_deferred", "_then")

    def __init__(self, deferred: Deferred[T], then: Callable[[T], object]) -> None:
        self._deferred, self._then = deferred, then

    def __call__(self, _: object) -> None:
        try:
            waits_for = self._deferred.send(None)
        except StopIteration as end:
            self._then(end.value)
        except Exception:
            log.exception("bug: a deferred answer raised")
        else:
            waits_for.then(self)


def outcome_of(deferred: Deferred[T]) -> Outcome[T]:
    """The outcome of a deferred answer, which runs from now on, as by `pursue`."""
    outcome: Outcome[T] = Outcome()
    pursue(deferred, outcome.settle)
    return outcome


async def at_most(outcome: Outcome[T], seconds: float, timers: Timers) -> T | None:
    """The value of `outcome`, or None if it is not settled after so many seconds; it may still be settled later."""
    first: Outcome[T | None] = Outcome()
    timer = timers.call_later(seconds, lambda: first.settle(None))
    outcome.then(first.settle)
    value = await first
    timer.cancel()
    return value
