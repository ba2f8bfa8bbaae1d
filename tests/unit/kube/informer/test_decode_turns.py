"""Work in small pieces, and retries kept apart."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import suppress
from itertools import count

import pytest

from tests.support.virtual_event_loop import run_virtually
from topodns.kube.informer.decode_turns import AT_ONCE, MUCH, PIECE, DecodeTurns
from topodns.kube.informer.retry import RetryGate
from topodns.time_slices import SLICE


def ticking(step: float) -> Iterator[float]:
    """A clock that moves on by so much whenever it is read."""
    return (number * step for number in count())


async def work(turns: DecodeTurns, name: str, amount: int, done: list[str]) -> None:
    async with turns.turn() as turn:
        for _ in range(amount):
            done.append(name)
            await turn.pause_if_due()


class TestTurns:
    def test_two_workers_take_turns_of_half_a_millisecond(self) -> None:
        async def story() -> list[str]:
            done: list[str] = []
            turns = DecodeTurns(ticking(SLICE / 4).__next__)
            await asyncio.gather(work(turns, "a", 12, done), work(turns, "b", 12, done))
            return done

        assert "".join(run_virtually(story())) == "aaaabbbbaaaabbbbaaaabbbb"

    def test_everybody_else_has_a_turn_in_between(self) -> None:
        async def story() -> list[str]:
            done: list[str] = []

            async def others() -> None:
                for _ in range(3):
                    done.append("-")
                    await asyncio.sleep(0)

            turns = DecodeTurns(ticking(SLICE).__next__)
            await asyncio.gather(work(turns, "a", 3, done), others())
            return done

        assert "".join(run_virtually(story())) == "a-a-a-"

    @pytest.mark.parametrize(("step", "expected"), [(PIECE, "a-a-a-b"), (PIECE / 2, "aa-a-b-")])
    def test_after_a_long_piece_everybody_runs_but_other_workers_and_takes_nothing_of_the_slice(
        self, step: float, expected: str
    ) -> None:
        async def story() -> list[str]:
            done: list[str] = []
            clock = 0.0

            async def pausing() -> None:
                nonlocal clock
                async with turns.turn() as turn:
                    for _ in range(3):
                        clock += step
                        done.append("a")
                        await turn.pause_if_long()
                        await turn.pause_if_due()

            async def others() -> None:
                nonlocal clock
                for _ in range(3):
                    clock += SLICE
                    done.append("-")
                    await asyncio.sleep(0)

            turns = DecodeTurns(lambda: clock)
            await asyncio.gather(pausing(), others(), work(turns, "b", 1, done))
            return done

        assert "".join(run_virtually(story())) == expected

    @pytest.mark.parametrize(
        ("step", "kept"), [(SLICE * 2, True), (AT_ONCE / MUCH * 2, False)], ids=["a long list", "now and then a change"]
    )
    def test_objects_made_by_a_long_step_are_frozen_for_the_collector(self, step: float, kept: bool) -> None:
        gc.unfreeze()
        run_virtually(work(DecodeTurns(ticking(step).__next__), "a", MUCH, []))
        try:
            assert (gc.get_freeze_count() > 0) == kept
        finally:
            gc.unfreeze()

    @pytest.mark.parametrize("waiting", [True, False], ids=["while it waits", "while it works"])
    def test_a_worker_that_is_stopped_leaves_the_turn_to_the_others(self, waiting: bool) -> None:
        async def story() -> list[str]:
            done: list[str] = []
            turns = DecodeTurns(ticking(SLICE).__next__)
            workers = [asyncio.create_task(work(turns, name, 5, done)) for name in "ab"]
            for _ in range(2):
                await asyncio.sleep(0)
            workers[waiting].cancel()
            with suppress(asyncio.CancelledError):
                await workers[waiting]
            await workers[not waiting]
            await work(turns, "c", 1, done)
            return done

        done = run_virtually(story())
        assert done[-1] == "c"
        assert done.count("a" if waiting else "b") == 5


class TestRetryGate:
    def test_retries_of_several_kinds_are_kept_apart(self) -> None:
        async def story() -> list[float]:
            gate, loop, times = RetryGate(), asyncio.get_running_loop(), []

            async def retry(seconds: float) -> None:
                await gate.wait(seconds)
                times.append(loop.time())

            await asyncio.gather(*(retry(seconds) for seconds in (0.8, 0.9, 1.0, 5.0)))
            return times

        assert run_virtually(story()) == pytest.approx([0.8, 1.6, 2.4, 5.0])

    def test_when_one_succeeds_all_go_but_those_that_were_asked_to_wait(self) -> None:
        async def story() -> list[float]:
            gate, loop, times = RetryGate(), asyncio.get_running_loop(), []

            async def retry(seconds: float, patient: bool) -> None:
                await gate.wait(seconds, patient)
                times.append(loop.time())

            loop.call_later(3.0, gate.open)
            await asyncio.gather(retry(30.0, False), retry(20.0, False), retry(10.0, True))
            return times

        assert run_virtually(story()) == [3.0, 3.0, 10.0]
