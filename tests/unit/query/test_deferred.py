"""Coroutines of steps that wait for a result from elsewhere, without an event loop."""

import gc
import logging
import weakref

import pytest

from tests.support.virtual_timers import VirtualTimers
from topodns.query.deferred import Outcome, at_most, pursue


async def _sum_of(*outcomes: Outcome[int]) -> int:
    return sum([await outcome for outcome in outcomes])


def test_a_course_goes_on_in_the_turn_in_which_its_outcome_is_settled() -> None:
    first, second, results = Outcome[int](), Outcome[int](), list[int]()
    pursue(_sum_of(first, second), results.append)
    second.settle(2)
    assert results == []
    first.settle(1)
    assert results == [3]


def test_what_a_course_leaves_is_freed_without_a_garbage_collection() -> None:
    outcome, results = Outcome[int](), list[int]()
    gc.disable()
    try:
        course = _sum_of(outcome)
        ended = weakref.ref(course)
        pursue(course, results.append)
        del course
        outcome.settle(1)
        assert results == [1]
        assert ended() is None
    finally:
        gc.enable()


def test_a_course_that_waits_for_nothing_ends_at_once() -> None:
    there, results = Outcome[int](), list[int]()
    there.settle(5)
    pursue(_sum_of(there), results.append)
    assert results == [5]


def test_many_courses_wait_for_one_outcome_and_go_on_in_their_order() -> None:
    outcome, order = Outcome[int](), list[str]()
    for name in ("one", "two", "three"):
        pursue(_sum_of(outcome), lambda _, name=name: order.append(name))  # type: ignore[misc]  # mypy on defaults
    outcome.settle(0)
    assert order == ["one", "two", "three"]


def test_an_outcome_is_settled_once() -> None:
    outcome, seen = Outcome[int](), list[int]()
    outcome.settle(1)
    outcome.settle(2)
    outcome.then(seen.append)
    assert seen == [1]
    assert outcome.settled


def test_a_coroutine_that_raises_is_logged_and_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(outcome: Outcome[int]) -> int:
        await outcome
        raise ZeroDivisionError

    outcome, results = Outcome[int](), list[int]()
    pursue(broken(outcome), results.append)
    pursue(_sum_of(outcome), results.append)
    with caplog.at_level(logging.ERROR):
        outcome.settle(7)
    assert results == [7]
    assert "ZeroDivisionError" in caplog.text


async def _waiting_for(outcome: Outcome[int], timers: VirtualTimers) -> str:
    value = await at_most(outcome, 1.8, timers)
    return "nothing" if value is None else str(value)


def test_a_wait_with_a_limit_gets_nothing_after_it() -> None:
    timers, outcome, results = VirtualTimers(), Outcome[int](), list[str]()
    pursue(_waiting_for(outcome, timers), results.append)
    timers.advance(1.7)
    assert results == []
    timers.advance(0.1)
    outcome.settle(1)
    assert results == ["nothing"]


def test_a_wait_with_a_limit_gets_a_result_before_it() -> None:
    timers, outcome, results = VirtualTimers(), Outcome[int](), list[str]()
    pursue(_waiting_for(outcome, timers), results.append)
    outcome.settle(1)
    timers.advance(2.0)
    assert results == ["1"]
    assert timers.pending == 0
