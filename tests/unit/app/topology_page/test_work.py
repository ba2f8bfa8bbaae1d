"""The jobs of the page."""

import asyncio
import logging

import pytest

from topodns.app.topology_page.work import MAX_WAITING, PageWork, Refused
from topodns.files.time_slices import Job


def job(steps: list[str], name: str, count: int = 3) -> Job[str]:
    for number in range(count):
        steps.append(f"{name}{number}")
        yield
    return name


def test_jobs_are_done_one_after_another() -> None:
    async def story() -> None:
        work, steps = PageWork(), list[str]()
        assert list(await asyncio.gather(work.do(job(steps, "a")), work.do(job(steps, "b")))) == ["a", "b"]
        assert steps == ["a0", "a1", "a2", "b0", "b1", "b2"]

    asyncio.run(story())


def test_a_long_job_lets_other_tasks_run() -> None:
    async def story() -> None:
        work = PageWork()
        long = asyncio.create_task(work.do(job([], "long", 200_000)))
        turns = 0
        while not long.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns > 10

    asyncio.run(story())


def test_so_many_may_wait() -> None:
    async def story() -> None:
        work = PageWork()
        waiting = [asyncio.create_task(work.do(job([], "x", 10_000))) for _ in range(MAX_WAITING)]
        assert not work.full
        await asyncio.sleep(0)
        assert work.full
        await asyncio.gather(*waiting)
        assert not work.full

    asyncio.run(story())


def failing(problem: Exception) -> Job[str]:
    yield
    raise problem


@pytest.mark.parametrize(("problem", "logged"), [(ZeroDivisionError(), 1), (Refused(400, "nonsense"), 0)])
def test_a_bug_is_logged_and_raised_and_the_next_job_is_done(
    problem: Exception, logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        work = PageWork()
        with pytest.raises(type(problem)):
            await work.do(failing(problem))
        assert await work.do(job([], "next")) == "next"

    with caplog.at_level(logging.ERROR):
        asyncio.run(story())
    assert len(caplog.records) == logged
