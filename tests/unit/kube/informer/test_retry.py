"""How long to wait after a failure."""

from random import Random

import pytest

from topodns.kube.informer.retry import LONGEST, SHORTEST, Backoff


class Dice(Random):
    """Always lands on its highest side."""

    def uniform(self, a: float, b: float) -> float:
        return b


def waits(backoff: Backoff, failures: int, now: float = 0.0) -> list[float]:
    """The wait after each of so many failures in a row."""
    found = []
    for _ in range(failures):
        found.append(round(backoff.failed(now), 3))
        now += found[-1]
    return found


def test_where_an_attempt_is_costly_the_ceiling_doubles_up_to_half_a_minute() -> None:
    assert waits(Backoff(Dice(), costly=True), 8) == [1.0, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_else_it_stays_within_a_quarter_of_the_time_of_trouble() -> None:
    backoff, now = Backoff(Dice()), 0.0
    for _ in range(100):
        wait = backoff.failed(now)
        assert wait <= max(1.0, now / 4, SHORTEST)
        now += wait
    assert backoff.failed(now) == LONGEST


@pytest.mark.parametrize("seed", range(5))
def test_every_wait_is_spread_over_all_that_the_ceiling_allows(seed: int) -> None:
    backoff, now = Backoff(Random(seed), costly=True), 0.0
    found = []
    for _ in range(300):
        found.append(backoff.failed(now))
        now += found[-1]
    assert found[0] <= 1.0
    assert SHORTEST <= min(found) < 2.0
    assert 28.0 < max(found) <= LONGEST


def test_success_ends_the_time_of_trouble_but_not_the_doubling() -> None:
    backoff = Backoff(Dice())
    assert not backoff.succeeded()
    assert max(waits(backoff, 40)) == LONGEST
    assert backoff.succeeded()
    assert not backoff.succeeded()
    trouble = 1000.0
    assert backoff.failed(trouble) == 1.0
    backoff.failed(trouble + 60)
    assert backoff.failed(trouble + 110) == 3.2  # the third in two minutes, though a quarter of the time is far more


@pytest.mark.parametrize(("quiet", "wait"), [(119.0, LONGEST), (121.0, 1.0)])
def test_two_quiet_minutes_end_the_doubling(quiet: float, wait: float) -> None:
    backoff = Backoff(Dice(), costly=True)
    for _ in range(8):
        backoff.failed(0.0)
    assert backoff.failed(quiet) == wait
