"""One exposition of each form a second, made in steps."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from topodns.metrics.scrapes import EVERY, Scrapes
from topodns.time_slices import SLICE


class Clock:
    """Goes on with each piece that is made, by `cost`, and when a test advances it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.cost = 0.0
        self.made = 0

    def __call__(self) -> float:
        return self.now

    def pieces(self, form: str) -> Iterator[bytes]:
        self.made += 1
        yield f"{form}{self.made}".encode()
        for _ in range(100):
            self.now += self.cost
            yield b"."


def first(form: str, number: int) -> bytes:
    """The exposition that was the `number`th."""
    return f"{form}{number}".encode() + 100 * b"."


def running(story: Callable[[Clock, Scrapes[str]], object]) -> None:
    async def run() -> None:
        clock = Clock()
        await story(clock, Scrapes(clock.pieces, clock))  # type: ignore[misc]

    asyncio.run(run())


def test_an_exposition_is_given_out_again_for_a_second_and_no_longer() -> None:
    async def story(clock: Clock, scrapes: Scrapes[str]) -> None:
        assert await scrapes.latest("text") == first("text", 1)
        clock.now += 0.99 * EVERY
        assert await scrapes.latest("text") == first("text", 1)
        clock.now += 0.01 * EVERY
        assert await scrapes.latest("text") == first("text", 2)
        assert clock.made == 2

    running(story)


def test_all_scrapes_during_one_exposition_get_the_same() -> None:
    async def story(clock: Clock, scrapes: Scrapes[str]) -> None:
        clock.cost = SLICE
        assert await asyncio.gather(*(scrapes.latest("text") for _ in range(50))) == [first("text", 1)] * 50
        assert clock.made == 1

    running(story)


def test_each_form_has_an_exposition_of_its_own() -> None:
    async def story(clock: Clock, scrapes: Scrapes[str]) -> None:
        forms = ["text", "open", "text", "open"]
        made = await asyncio.gather(*(scrapes.latest(form) for form in forms))
        assert made == [first("text", 1), first("open", 2)] * 2
        assert await scrapes.latest("text") == made[0]
        assert clock.made == 2

    running(story)


def test_a_costly_one_is_made_in_slices() -> None:
    async def story(clock: Clock, scrapes: Scrapes[str]) -> None:
        clock.cost = SLICE / 4
        made, turns = scrapes.latest("text"), 0
        while not made.done():
            before = clock.now
            await asyncio.sleep(0)
            assert clock.now - before <= SLICE + clock.cost
            turns += 1
        assert turns >= 100 / 4

    running(story)


def test_a_failed_exposition_is_an_error_for_all_waiting_scrapes_and_not_retried_for_a_second(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(clock: Clock, scrapes: Scrapes[str]) -> None:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await broken.latest("text")
        assert tries == [1000.0]

    tries: list[float] = []
    clock = Clock()

    def pieces(form: str) -> Iterator[bytes]:
        tries.append(clock.now)
        yield b"a\n"
        raise ZeroDivisionError("as bugs do")

    broken = Scrapes(pieces, clock)
    running(story)
    assert [record.getMessage() for record in caplog.records] == ["bug: the metrics cannot be made"]
