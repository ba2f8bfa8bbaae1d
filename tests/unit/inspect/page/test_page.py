"""The page over the life of the process."""

import asyncio
from functools import partial

import pytest

from tests.support.page_cluster import demo_page
from topodns.inspect.page import page as module
from topodns.plugins.topology.settings import PageSettings


def test_the_streams_of_a_generation_end_with_it() -> None:
    async def story() -> None:
        with demo_page() as page:
            closed: list[int] = []
            for number in range(3):
                page.stream().close = partial(closed.append, number)
            page.page.begin()
            assert closed == [0, 1, 2]

    asyncio.run(story())


def test_misses_are_sampled_and_outlive_a_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 0.01)

    async def story() -> None:
        with demo_page() as page:
            page.demo.ask("db-near.data.svc.cluster.local A", "127.10.7.100")
            page.page.begin()
            routes = page.page.routes(page.demo.generation.clusters, PageSettings())
            page.routes = routes
            assert (await page.json("/topology/state"))["summary"]["misses"] == {"data/db-near": 1}

    asyncio.run(story())


def test_misses_of_earlier_minutes_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 0.001)

    async def story() -> None:
        with demo_page() as page:
            page.demo.ask("db-near.data.svc.cluster.local A", "127.10.7.100")
            await asyncio.sleep(0.2)
            assert (await page.json("/topology/state"))["summary"]["misses"] == {}

    asyncio.run(story())
