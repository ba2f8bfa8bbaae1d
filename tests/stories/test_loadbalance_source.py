"""The file of `loadbalance weighted`, edited while it is looked at."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.event_loops import either_loop, eventually, run
from tests.support.model_builders import packed
from topodns.dns.name import name_wire, parse_name
from topodns.plugins.loadbalance.source import WeightSource
from topodns.plugins.loadbalance.weights import BadWeights

OWNER = name_wire(parse_name("www.example."))
SOON = 0.01  # seconds between looks


def weigh(path: Path, weight: int) -> None:
    path.write_text(f"www.example.\n10.0.0.1 {weight}\n")


def weight_in(source: WeightSource) -> int:
    return source.weights()[OWNER][packed("10.0.0.1")]


@contextlib.asynccontextmanager
async def looking(source: WeightSource) -> AsyncIterator[None]:
    task = asyncio.create_task(source.poller.run())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()


def test_it_is_read_at_start(tmp_path: Path) -> None:
    weigh(tmp_path / "weights", 3)
    source = WeightSource(str(tmp_path / "weights"), 0)
    assert source.weights() == {}
    source.poller.load()
    assert weight_in(source) == 3


def test_a_start_without_it_or_with_a_broken_one_fails(tmp_path: Path) -> None:
    source = WeightSource(str(tmp_path / "weights"), 0)
    with pytest.raises(FileNotFoundError):
        source.poller.load()
    (tmp_path / "weights").write_text("www.example.\n10.0.0.1 many\n")
    with pytest.raises(BadWeights):
        source.poller.load()


@either_loop
async def test_an_edit_counts_at_the_next_look(loop_name: str, tmp_path: Path) -> None:
    weigh(tmp_path / "weights", 3)
    source = WeightSource(str(tmp_path / "weights"), SOON)
    source.poller.load()
    async with looking(source):
        weigh(tmp_path / "weights", 44)
        await eventually(lambda: weight_in(source) == 44)


@either_loop
@pytest.mark.parametrize("harm", ["gone", "broken"])
def test_the_last_good_weights_stay_and_the_log_says_why(
    loop_name: str, harm: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        path = tmp_path / "weights"
        weigh(path, 3)
        source = WeightSource(str(path), SOON)
        source.poller.load()
        async with looking(source):
            if harm == "gone":
                path.unlink()
            else:
                path.write_text("www.example.\n10.0.0.1 many\n")
            await eventually(lambda: len(caplog.records) > 0)
            assert weight_in(source) == 3
            weigh(path, 44)
            await eventually(lambda: weight_in(source) == 44)

    with caplog.at_level(logging.WARNING):
        run(loop_name, story())
    assert caplog.records[0].getMessage().startswith(f"plugin/loadbalance: {tmp_path}/weights: ")
    assert caplog.records[0].getMessage().endswith("; the weights read before stay")


@either_loop
async def test_with_an_interval_of_0_the_file_is_not_read_again(loop_name: str, tmp_path: Path) -> None:
    weigh(tmp_path / "weights", 3)
    source = WeightSource(str(tmp_path / "weights"), 0)
    source.poller.load()
    weigh(tmp_path / "weights", 44)
    await source.poller.run()
    assert weight_in(source) == 3
