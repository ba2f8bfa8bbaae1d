"""One timer for all that is waited for."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.virtual_timers import VirtualTimers
from topodns.edge.upstream.deadlines import Deadlines


@dataclass(eq=False)
class Wait:
    deadline: float
    expired: list[float]
    clock: Callable[[], float]
    then: Callable[[], None] = field(default=lambda: None)

    def expire(self) -> None:
        self.expired.append(self.clock())
        self.then()


def waiting(timers: VirtualTimers, seconds: float, expired: list[float]) -> Wait:
    return Wait(timers.time() + seconds, expired, timers.time)


def test_what_is_due_expires_within_a_period_and_once() -> None:
    timers, expired = VirtualTimers(), list[float]()
    deadlines = Deadlines(timers, 0.25)
    for seconds in (0.6, 1.0, 3.0):
        deadlines.add(waiting(timers, seconds, expired))
    timers.advance(2)
    assert expired == [1000.75, 1001.0]
    assert len(deadlines) == 1
    timers.advance(2)
    assert expired == [1000.75, 1001.0, 1003.0]


def test_what_is_discarded_does_not_expire() -> None:
    timers, expired = VirtualTimers(), list[float]()
    deadlines, wait = Deadlines(timers, 0.25), waiting(timers, 1, expired)
    deadlines.add(wait)
    deadlines.discard(wait)
    timers.advance(2)
    assert expired == []


def test_there_is_one_timer_while_there_is_something_and_none_otherwise() -> None:
    timers = VirtualTimers()
    deadlines = Deadlines(timers, 0.25)
    for _ in range(100):
        deadlines.add(waiting(timers, 1, []))
    assert timers.pending == 1
    timers.advance(0.9)
    assert timers.pending == 1
    timers.advance(1)
    assert timers.pending == 0


def test_an_expiry_may_settle_others_that_are_due() -> None:
    timers, expired = VirtualTimers(), list[float]()
    deadlines = Deadlines(timers, 0.25)
    pair = [waiting(timers, 1, expired), waiting(timers, 1, expired)]
    pair[0].then = lambda: deadlines.discard(pair[1])
    pair[1].then = lambda: deadlines.discard(pair[0])
    for wait in pair:
        deadlines.add(wait)
    timers.advance(2)
    assert len(expired) == 1


def test_an_expiry_may_wait_anew() -> None:
    timers, expired = VirtualTimers(), list[float]()
    deadlines, wait = Deadlines(timers, 0.25), waiting(timers, 1, expired)
    wait.then = lambda: deadlines.add(waiting(timers, 1, expired))
    deadlines.add(wait)
    timers.advance(3)
    assert expired == [1001.0, 1002.0]
    assert timers.pending == 0
