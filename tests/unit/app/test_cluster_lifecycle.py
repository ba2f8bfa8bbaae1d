"""The work of feeds over reloads, without sockets and in virtual time: begun once, kept, ended without a trace."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Final

import pytest

from tests.support.api_objects import Object, namespace, service
from tests.support.fake_api.in_memory import MemoryClient, MemoryFront
from tests.support.fake_api.listener import Answer
from tests.support.fake_api.server import FakeApi
from tests.support.virtual_event_loop import run_virtually
from topodns.app.cluster_lifecycle import Feeding, NotKnown, await_sync
from topodns.dns.name import parse_name
from topodns.kube.client.contract import ApiError, ApiSettings
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.kubernetes.feed import Feed, feed_settings
from topodns.plugins.kubernetes.settings import KubernetesSettings

SETTINGS: Final = KubernetesSettings((parse_name("cluster.local."),), api=ApiSettings())
OBJECTS: Final[tuple[Object, ...]] = (namespace("default"), service("web", cluster_ip="10.96.0.1"))


class Client(MemoryClient):
    """A connection that knows whether it was closed."""

    closed = False

    async def close(self) -> None:
        self.closed = True


class Place:
    """An API server, the connections to it, and the work of those who follow it."""

    def __init__(self) -> None:
        fronts: list[MemoryFront] = []

        def front(answer: Answer) -> MemoryFront:
            fronts.append(MemoryFront(answer))
            return fronts[0]

        self.api = FakeApi(OBJECTS, front)
        self.clients: list[Client] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.feeding = Feeding(self._start)
        self._front = fronts[0]

    def cluster(self) -> Cluster:
        """One that is fed from here, and is not yet."""
        return Cluster(SETTINGS, None, Feed(feed_settings(SETTINGS, None), Random(1), self._connect), None)

    async def begun(self) -> Cluster:
        cluster = self.cluster()
        await self.feeding.begin([cluster.feed])
        await await_sync([cluster])
        assert cluster.state.synced
        return cluster

    async def _connect(self) -> Client:
        self.clients.append(Client(self._front))
        return self.clients[-1]

    def _start(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        self.tasks.append(asyncio.create_task(work, name=name))
        return self.tasks[-1]


def play(story: Callable[[Place], Awaitable[None]]) -> None:
    """Run a story; in the end nothing may be at work, and no connection open."""

    async def whole() -> None:
        place = Place()
        async with place.api:
            await story(place)
            await place.feeding.keep_only(())
            assert [task for task in place.tasks if not task.done()] == []
            assert [client for client in place.clients if not client.closed] == []

    run_virtually(whole())


def unreachable() -> Feed:
    async def connect() -> MemoryClient:
        raise ApiError(0, "no such kubeconfig")

    return Feed(feed_settings(SETTINGS, None), Random(1), connect)


def test_a_running_informer_is_not_started_again() -> None:
    async def story(place: Place) -> None:
        first = await place.begun()
        asked = place.api.requests.count()
        await place.feeding.begin([first.feed])
        await place.feeding.keep_only([first.feed])
        await asyncio.sleep(60)
        assert (len(place.clients), len(place.tasks), place.api.requests.count()) == (1, 1, asked)
        assert not place.tasks[0].done()

    play(story)


def test_a_feed_that_is_not_kept_ends_and_a_kept_one_goes_on() -> None:
    async def story(place: Place) -> None:
        first, second = await place.begun(), await place.begun()
        await place.feeding.keep_only([second.feed])
        assert [task.cancelled() for task in place.tasks] == [True, False]
        assert [client.closed for client in place.clients] == [True, False]
        got: list[object] = []
        second.feed.subscribe(got.append)
        place.api.put(service("web", cluster_ip="10.96.0.2"))
        await asyncio.sleep(1)
        assert got
        assert first.state.service_with_address(b"\x0a\x60\0\2") is None
        assert second.state.service_with_address(b"\x0a\x60\0\2") is not None

    play(story)


def test_where_one_cannot_be_reached_none_begins_and_those_at_work_go_on() -> None:
    async def story(place: Place) -> None:
        first, second = await place.begun(), place.cluster()
        asked = place.api.requests.count()
        with pytest.raises(NotKnown):
            await place.feeding.begin([first.feed, second.feed, unreachable()])
        await place.feeding.keep_only([first.feed])
        assert [client.closed for client in place.clients] == [False, True]
        assert (len(place.tasks), place.api.requests.count()) == (1, asked)

    play(story)


def test_a_feed_that_is_given_up_before_its_first_step_closes_its_connection() -> None:
    """`play` would see it."""

    async def story(place: Place) -> None:
        await place.feeding.begin([place.cluster().feed])
        await place.feeding.keep_only(())
        assert place.api.requests.count() == 0

    play(story)


def test_a_wait_that_is_cut_short_leaves_nothing_behind() -> None:
    async def story(place: Place) -> None:
        await place.api.close()
        cluster = place.cluster()
        await place.feeding.begin([cluster.feed])
        waiting = asyncio.create_task(await_sync([cluster]))
        await asyncio.sleep(1)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        await place.feeding.keep_only(())
        assert not cluster.state.synced

    play(story)


def test_the_wait_ends_after_startup_timeout() -> None:
    async def story(place: Place) -> None:
        await place.api.close()
        cluster = place.cluster()
        await place.feeding.begin([cluster.feed])
        began = asyncio.get_running_loop().time()
        await await_sync([cluster])
        assert asyncio.get_running_loop().time() - began == pytest.approx(SETTINGS.startup_timeout, abs=0.5)
        await await_sync([])

    play(story)
