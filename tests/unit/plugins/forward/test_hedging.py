"""One timer for many waits."""

from weakref import ref

from tests.support.virtual_timers import VirtualTimers
from topodns.plugins.forward.hedging import AT_ONCE, SLACK, HedgeTimer


class Wait:
    """Notes when it is hedged; wants it `times` times."""

    def __init__(self, timers: VirtualTimers, times: int = 1) -> None:
        self._timers = timers
        self._times = times
        self.over = False
        self.hedged: list[float] = []

    def hedge(self) -> bool:
        self.hedged.append(self._timers.time() - 1000.0)
        return len(self.hedged) < self._times


def test_a_waiting_query_is_hedged_when_its_time_is_up() -> None:
    timers = VirtualTimers()
    hedge_timer, wait = HedgeTimer(0.5, timers), Wait(timers)
    hedge_timer.watch(wait, timers.time())
    timers.advance(0.49)
    assert wait.hedged == []
    timers.advance(5.0)
    assert wait.hedged == [0.5]
    assert timers.pending == 0


def test_and_again_as_long_as_it_wants() -> None:
    timers = VirtualTimers()
    hedge_timer, wait = HedgeTimer(0.5, timers), Wait(timers, times=3)
    hedge_timer.watch(wait, timers.time())
    timers.advance(5.0)
    assert wait.hedged == [0.5, 1.0, 1.5]


def test_a_finished_query_is_not_hedged() -> None:
    timers = VirtualTimers()
    hedge_timer, wait = HedgeTimer(0.5, timers), Wait(timers)
    hedge_timer.watch(wait, timers.time())
    wait.over = True
    timers.advance(5.0)
    assert (wait.hedged, timers.pending) == ([], 0)


def test_many_waits_share_a_timer_and_are_hedged_little_late() -> None:
    timers = VirtualTimers()
    hedge_timer = HedgeTimer(0.5, timers)
    waits = []
    for _ in range(100):
        waits.append(Wait(timers))
        hedge_timer.watch(waits[-1], timers.time())
        assert timers.pending == 1
        timers.advance(0.001)
    timers.advance(5.0)
    late = [wait.hedged[0] - 0.5 - number * 0.001 for number, wait in enumerate(waits)]
    assert all(-1e-9 < seconds < SLACK + 1e-9 for seconds in late)


def test_waits_that_are_over_are_forgotten_as_others_come() -> None:
    timers = VirtualTimers()
    hedge_timer = HedgeTimer(0.5, timers)
    kept = []
    for _ in range(1000):
        wait = Wait(timers)
        hedge_timer.watch(wait, timers.time())
        wait.over = True
        kept.append(ref(wait))
    assert sum(each() is not None for each in kept) == 1


def test_of_many_whose_time_is_up_some_are_hedged_in_each_turn_of_the_loop() -> None:
    timers = VirtualTimers()
    hedge_timer, waits = HedgeTimer(0.5, timers), [Wait(timers) for _ in range(2 * AT_ONCE)]
    for wait in waits:
        hedge_timer.watch(wait, timers.time())
    turns: list[int] = []
    timers.call_later(0.5, lambda: turns.append(sum(bool(wait.hedged) for wait in waits)))
    timers.advance(0.5)
    assert turns == [AT_ONCE]
    assert all(wait.hedged == [0.5] for wait in waits)
