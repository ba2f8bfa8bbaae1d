"""A cluster's state fed by an ApiSource from the fake API server, without sockets and in virtual time."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from ipaddress import ip_address
from random import Random
from typing import Final

from tests.support.api_objects import Object, endpoint_slice, namespace, service
from tests.support.fake_api.in_memory import MemoryClient, MemoryFront
from tests.support.fake_api.listener import Answer
from tests.support.fake_api.server import FakeApi
from tests.support.virtual_event_loop import run_virtually
from topodns.cluster.model import ObjectKey
from topodns.cluster.publishing_state import PublishingState
from topodns.cluster.slices import SliceOwner
from topodns.cluster.state import ClusterState
from topodns.dependency import Fact
from topodns.dns.name import parse_name
from topodns.kube.informer.informer import ApiSource
from topodns.kube.informer.progress import Progress
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.watched_kinds import needed_kinds, resources
from topodns.plugins.topology.settings import TopologySettings

Prepare = Callable[[FakeApi], None]
"""What is wrong with the server before its first request."""

HOUR: Final = 3600.0  # seconds
SETTINGS: Final = KubernetesSettings((parse_name("cluster.local."),))

WEB: Final = (namespace("default"), service("web"), endpoint_slice("web", {"10.0.0.1": "n1"}))
FRONT, MOVED = service("front", cluster_ip="10.96.0.1"), service("front", cluster_ip="10.96.0.2")
MANY: Final = tuple(service(f"s{number}", cluster_ip=f"10.96.1.{number}") for number in range(150))


class Setup:
    """`published` are the facts that changes touched, one set for each publication."""

    def __init__(self, objects: Iterable[Object], settings: KubernetesSettings = SETTINGS, seed: int = 1) -> None:
        fronts: list[MemoryFront] = []

        def front(answer: Answer) -> MemoryFront:
            fronts.append(MemoryFront(answer))
            return fronts[0]

        async def connect() -> MemoryClient:
            return MemoryClient(fronts[0])

        self.api = FakeApi(objects, front)
        self.state = ClusterState(needed_kinds(settings, TopologySettings()))
        self.published: list[frozenset[Fact]] = []
        wanted = resources(settings, TopologySettings())
        self.writes = PublishingState(self.state, time.time, [self.published.append])
        self.budget = self.writes.budget
        self.source = ApiSource(wanted, self.writes, connect, Random(seed))
        self._front = fronts[0]

    @property
    def attempts(self) -> list[float]:
        """When something was asked, by the loop's clock; also while the server was down."""
        return self._front.attempts

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    @property
    def lists(self) -> int:
        """How many lists of any kind were taken in."""
        return sum(one.lists for one in self.source.progress)

    @property
    def touched(self) -> set[Fact]:
        return {fact for facts in self.published for fact in facts}

    def progress(self, kind: str) -> Progress:
        return next(one for one in self.source.progress if one.resource.kind == kind)

    def addresses(self, service: str) -> set[str]:
        """Of the Service in namespace default: all endpoints of all of its slices."""
        slices = self.state.slice_table.owned.counted(SliceOwner(ObjectKey("default", service), False))
        return {str(ip_address(endpoint.address)) for one in slices for endpoint in one.endpoints}

    def cluster_ip(self, service: str) -> str:
        """Also of namespace default; "" where there is no such Service."""
        held = self.state.service(ObjectKey("default", service))
        return str(ip_address(held.cluster_ips[0])) if held is not None else ""

    async def synced(self, seconds: float = 5.0) -> float:
        """The time that it took, at most `seconds`."""
        return await until(lambda: self.state.synced, seconds)


def giving_lists(streaming: bool) -> Prepare:
    """A server that streams lists, or one that gives them in pages."""
    return _nothing if streaming else FakeApi.refuse_watch_list


def _nothing(_: FakeApi) -> None: ...


async def knows(setup: Setup, cluster_ip: str, seconds: float) -> None:
    """That the Service `front` has this address, soon."""
    await until(lambda: setup.cluster_ip("front") == cluster_ip, seconds)


async def until(condition: Callable[[], object], seconds: float) -> float:
    """The time that it took for the condition to hold; fails when that is more than `seconds`."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while not condition():
        assert loop.time() - began <= seconds, f"not within {seconds:g} s"
        await asyncio.sleep(max(0.01, seconds / 5000))
    return loop.time() - began


def play(
    story: Callable[[Setup], Awaitable[None]],
    *objects: Object,
    settings: KubernetesSettings = SETTINGS,
    up: bool = True,
    prepare: Prepare = _nothing,
) -> None:
    """Run a story over a source that has just been started. `prepare` comes before the first request."""

    async def whole() -> None:
        setup = Setup(objects, settings)
        async with setup.api:
            prepare(setup.api)
            if not up:
                await setup.api.close()
            await setup.source.connect()
            running = asyncio.create_task(setup.source.run(), name="source")
            try:
                await story(setup)
                assert not running.done(), running
            finally:
                running.cancel()
                with suppress(asyncio.CancelledError):
                    await running

    run_virtually(whole())
