"""Long work in slices of time."""

import asyncio
from collections.abc import Iterator
from itertools import count

from tests.support.virtual_event_loop import run_virtually
from topodns.files.time_slices import SLICE, in_slices


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
