"""One timer for all that is waited for."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.virtual_timers import VirtualTimers
from topodns.net.upstream.deadlines import AT_ONCE, Deadlines


@dataclass(eq=False)
class Wait:
    due: float
    expired: list[float]
    clock: Callable[[], float]
    deadlines: Deadlines
    then: Callable[[], None] = field(default=lambda: None)
    put_off: float = 0.0  # seconds

    def on_due(self, now: float) -> None:
        assert now == self.clock()
        self.expired.append(now)
        if self.put_off:
            self.due, self.put_off = now + self.put_off, 0.0
        else:
            self.deadlines.discard(self)
        self.then()


def waiting(timers: VirtualTimers, deadlines: Deadlines, seconds: float, expired: list[float]) -> Wait:
    return Wait(timers.time() + seconds, expired, timers.time, deadlines)


def test_a_due_entry_expires_within_a_period_and_once() -> None:
    timers, expired = VirtualTimers(), list[float]()
    deadlines = Deadlines(timers, 0.25)
    for seconds in (0.6, 1.0, 3.0):
        deadlines.add(waiting(timers, deadlines, seconds, expired))
    timers.advance(2)
    assert expired == [1000.75, 1001.0]
    assert len(deadlines) == 1
    timers.advance(2)
    assert expired == [1000.75, 1001.0, 1003.0]


def test_a_discarded_entry_does_not_expire() -> None:
    timers, expired = VirtualTimers(), list[float]()
    deadlines = Deadlines(timers, 0.25)
    wait = waiting(timers, deadlines, 1, expired)
    deadlines.add(wait)
    deadlines.discard(wait)
    timers.advance(2)
    assert expired == []


def test_there_is_one_timer_while_there_is_something_and_none_otherwise() -> None:
    timers = VirtualTimers()
    deadlines = Deadlines(timers, 0.25)
    for _ in range(100):
        deadlines.add(waiting(timers, deadlines, 1, []))
    assert timers.pending == 1
    timers.advance(0.9)
    assert timers.pending == 1
    timers.advance(1)
    assert timers.pending == 0


def test_an_expiry_may_settle_others_that_are_due() -> None:
    timers, expired = VirtualTimers(), list[float]()
    deadlines = Deadlines(timers, 0.25)
    pair = [waiting(timers, deadlines, 1, expired), waiting(timers, deadlines, 1, expired)]
    pair[0].then = lambda: deadlines.discard(pair[1])
    pair[1].then = lambda: deadlines.discard(pair[0])
    for wait in pair:
        deadlines.add(wait)
    timers.advance(2)
    assert len(expired) == 1


def test_an_expiry_may_wait_anew() -> None:
    timers, expired = VirtualTimers(), list[float]()
    deadlines = Deadlines(timers, 0.25)
    wait = waiting(timers, deadlines, 1, expired)
    wait.then = lambda: deadlines.add(waiting(timers, deadlines, 1, expired))
    deadlines.add(wait)
    timers.advance(3)
    assert expired == [1001.0, 1002.0]
    assert timers.pending == 0


def test_an_entry_that_postpones_itself_is_due_again_later() -> None:
    timers, expired = VirtualTimers(), list[float]()
    deadlines = Deadlines(timers, 0.25)
    wait = waiting(timers, deadlines, 0.5, expired)
    wait.put_off = 1.5
    deadlines.add(wait)
    timers.advance(1)
    assert wait in deadlines
    timers.advance(3)
    assert expired == [1000.5, 1002.0]
    assert wait not in deadlines


def test_of_many_that_are_due_together_some_expire_in_each_turn_of_the_loop() -> None:
    timers, expired = VirtualTimers(), list[float]()
    deadlines = Deadlines(timers, 0.25)
    turns: list[int] = []

    def look() -> None:
        turns.append(len(expired))
        if len(expired) < 3 * AT_ONCE:
            timers.call_later(0.0, look)

    for _ in range(3 * AT_ONCE):
        wait = waiting(timers, deadlines, 1, expired)
        wait.then = lambda: deadlines.add(waiting(timers, deadlines, 9, []))
        deadlines.add(wait)
    timers.call_later(0.99, lambda: timers.call_later(0.01, look))
    timers.advance(1.2)
    assert turns == [AT_ONCE, 2 * AT_ONCE, 3 * AT_ONCE]
    assert len(deadlines) == 3 * AT_ONCE
    timers.advance(9)
    assert (len(deadlines), timers.pending) == (0, 0)
