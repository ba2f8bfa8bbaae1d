"""When the next session with an upstream begins, and with which one of several."""

from random import Random

import pytest

from topodns.net.upstream.dso_session import MAX_RETRY_DELAY, RETRY_LOST, RETRY_REFUSED, SessionBackoff


class Chance(Random):
    def __init__(self, drawn: float) -> None:
        super().__init__()
        self._drawn = drawn

    def random(self) -> float:
        return self._drawn


def backoff(upstreams: int = 1, chance: float = 0.0) -> SessionBackoff:
    return SessionBackoff(upstreams, Chance(chance))


def test_a_first_session_may_begin_at_once_with_the_first_upstream() -> None:
    assert (backoff(3).due, backoff(3).choose(5.0)) == (0.0, 0)


@pytest.mark.parametrize(("chance", "most"), [(0.0, 1.0), (1.0, 2.0)])
def test_pauses_after_losses_are_doubled_up_to_a_minute(chance: float, most: float) -> None:
    one = backoff(chance=chance)
    pauses = []
    for _ in range(8):
        one.choose(one.due)
        before = one.due
        one.lost(before)
        pauses.append(one.due - before)
    assert pauses == pytest.approx([most * each for each in (1, 2, 4, 8, 16, 32, 60, 60)])
    one.established()
    one.lost(1000.0)
    assert one.due == 1000.0 + RETRY_LOST * most


@pytest.mark.parametrize(
    ("wanted", "waits"), [(0.0, RETRY_REFUSED), (90.0, 90.0), (1e6, MAX_RETRY_DELAY)], ids=["", "90 s", "days"]
)
def test_an_upstream_that_has_refused_waits_a_minute_or_for_as_long_as_it_wants(wanted: float, waits: float) -> None:
    one = backoff()
    one.refused(10.0, wanted)
    assert one.due == 10.0 + waits


@pytest.mark.parametrize(("wanted", "waits"), [(0.5, 1.0), (90.0, 90.0), (1e6, MAX_RETRY_DELAY)])
def test_a_wish_at_the_end_of_a_session_is_respected(wanted: float, waits: float) -> None:
    one = backoff()
    one.lost(10.0, wanted)
    assert one.due == 10.0 + waits


def test_the_wish_of_one_upstream_delays_no_other() -> None:
    two = backoff(2)
    assert two.choose(10.0) == 0
    two.lost(10.0, 300.0)
    assert (two.due, two.choose(11.0)) == (11.0, 1)
    two.refused(11.0, 0.0)
    assert (two.due, two.choose(71.0)) == (71.0, 1)
    two.lost(71.0)
    assert two.choose(two.due) == 1
    assert two.choose(310.0) == 1  # chosen already; the first one is due as well by now


def test_without_wishes_upstreams_take_turns() -> None:
    three = backoff(3)
    chosen = []
    for now in range(0, 1000, 100):
        chosen.append(three.choose(now))
        three.lost(now)
    assert chosen == [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]
