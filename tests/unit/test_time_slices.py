"""Long work in slices of time."""

import asyncio
from collections.abc import Iterator
from itertools import count

from tests.support.virtual_event_loop import run_virtually
from topodns.time_slices import SLICE, Job, do_at_once, do_in_slices, in_slices


def ticking(step: float) -> Iterator[float]:
    """A clock that moves on by so much at each reading."""
    return (number * step for number in count())


def test_steps_are_done_in_slices_between_which_others_have_a_turn() -> None:
    async def story() -> list[str]:
        done: list[str] = []

        async def others() -> None:
            for _ in range(3):
                done.append("-")
                await asyncio.sleep(0)

        await asyncio.gather(in_slices(map(done.append, "a" * 12), ticking(SLICE / 4).__next__), others())
        return done

    assert "".join(run_virtually(story())) == "aaaa-aaaa-aaaa-"


def three_steps() -> Job[str]:
    for _ in range(3):
        yield
    return "done"


def test_a_job_in_slices_returns_its_result_after_a_pause_for_each_slice() -> None:
    async def story() -> tuple[str, float]:
        began = asyncio.get_running_loop().time()
        result = await do_in_slices(three_steps(), 0.5, ticking(SLICE).__next__)
        return result, asyncio.get_running_loop().time() - began

    assert run_virtually(story()) == ("done", 1.5)


def test_a_job_of_a_command_is_done_at_once() -> None:
    assert do_at_once(three_steps()) == "done"
