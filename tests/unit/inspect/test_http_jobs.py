"""Jobs of HTTP requests: one at a time, in slices."""

import asyncio
import gc
import logging

import pytest

from topodns.inspect.errors import Refused
from topodns.inspect.http import MAX_WAITING, JobQueue
from topodns.time_slices import Job


def job(steps: list[str], name: str, count: int = 3) -> Job[str]:
    for number in range(count):
        steps.append(f"{name}{number}")
        yield
    return name


def test_jobs_are_done_one_after_another() -> None:
    async def story() -> None:
        work, steps = JobQueue("the page"), list[str]()
        assert list(await asyncio.gather(work.do(job(steps, "a")), work.do(job(steps, "b")))) == ["a", "b"]
        assert steps == ["a0", "a1", "a2", "b0", "b1", "b2"]

    asyncio.run(story())


def test_a_long_job_lets_other_tasks_run() -> None:
    async def story() -> None:
        work = JobQueue("the page")
        long = asyncio.create_task(work.do(job([], "long", 200_000)))
        turns = 0
        while not long.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns > 10

    asyncio.run(story())


def test_so_many_may_wait() -> None:
    async def story() -> None:
        work = JobQueue("the page")
        waiting = [asyncio.create_task(work.do(job([], "x", 10_000))) for _ in range(MAX_WAITING)]
        assert not work.full
        await asyncio.sleep(0)
        assert work.full
        await asyncio.gather(*waiting)
        assert not work.full

    asyncio.run(story())


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_is_not_collected_during_a_job_however_it_ends(enabled: bool) -> None:
    def looking(seen: list[bool]) -> Job[None]:
        seen.append(gc.isenabled())
        yield
        raise Refused("nonsense")

    async def story() -> None:
        seen: list[bool] = []
        with pytest.raises(Refused):
            await JobQueue("the page").do(looking(seen))
        assert (seen, gc.isenabled()) == ([False], enabled)

    if not enabled:
        gc.disable()
    try:
        asyncio.run(story())
    finally:
        gc.enable()


def failing(problem: Exception) -> Job[str]:
    yield
    raise problem


@pytest.mark.parametrize(("problem", "logged"), [(ZeroDivisionError(), 1), (Refused("nonsense"), 0)])
def test_a_bug_is_logged_and_raised_and_the_next_job_is_done(
    problem: Exception, logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        work = JobQueue("the page")
        with pytest.raises(type(problem)):
            await work.do(failing(problem))
        assert await work.do(job([], "next")) == "next"

    with caplog.at_level(logging.ERROR):
        asyncio.run(story())
    assert len(caplog.records) == logged
