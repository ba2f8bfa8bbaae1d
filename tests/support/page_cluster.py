"""The topology page of config/demo in this process: its routes, asked without sockets, and changes of its cluster."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.support.demo import Demo
from topodns.cluster.model import Change
from topodns.inspect.http import JobQueue
from topodns.inspect.page.page import TopologyPage
from topodns.inspect.page.snapshot import ClusterNotes, SnapshotMaker
from topodns.net.http_server.messages import HttpReply, HttpRequest, HttpStream
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.topology.settings import PageSettings
from topodns.query.query_sample import QuerySample


class DemoPage:
    """To be made on a running event loop. `demo`: its counters are those of the page."""

    def __init__(self, settings: PageSettings | None = None) -> None:
        self.demo = Demo()
        self.page = TopologyPage(lambda: [self.demo.socket_counters])
        self.routes = self.page.routes(self.demo.generation.clusters, settings or PageSettings())

    @property
    def cluster(self) -> Cluster:
        return self.demo.generation.clusters[0]

    def apply(self, change: Change) -> None:
        self.cluster.state.apply(change, 0)

    def call(
        self, path: str, *arguments: tuple[str, str], peer: str = "127.0.0.1", headers: Mapping[str, str] | None = None
    ) -> HttpReply | HttpStream | asyncio.Future[HttpReply]:
        """What the route of a path returns."""
        repeated: dict[str, tuple[str, ...]] = {}
        for name, value in arguments:
            repeated[name] = (*repeated.get(name, ()), value)
        first = {name: values[0] for name, values in repeated.items()}
        return self.routes[path](HttpRequest(path, first, peer, headers or {}, repeated))

    async def reply(self, path: str, *arguments: tuple[str, str], **more: Any) -> HttpReply:
        made = self.call(path, *arguments, **more)
        assert not isinstance(made, HttpStream)
        return made if isinstance(made, HttpReply) else await made

    async def json(self, path: str, *arguments: tuple[str, str]) -> Any:
        reply = await self.reply(path, *arguments)
        assert (reply.status, reply.content_type) == (200, "application/json"), reply.body
        return json.loads(reply.body)

    async def refused(self, path: str, *arguments: tuple[str, str], **more: Any) -> tuple[int, str]:
        """Status and text of a refusal."""
        reply = await self.reply(path, *arguments, **more)
        assert 400 <= reply.status < 600
        return reply.status, reply.body.decode().rstrip("\n")

    def stream(self, *arguments: tuple[str, str], peer: str = "127.0.0.1") -> HttpStream:
        """An event stream, all of whose parts are read at once."""
        opened = self.call("/topology/events", *arguments, peer=peer)
        assert isinstance(opened, HttpStream)
        return opened


def maker_of(cluster: Cluster, sample: QuerySample | None = None) -> SnapshotMaker:
    return SnapshotMaker(cluster, lambda: ClusterNotes({}, {}, ()), JobQueue("the page"), sample=sample)


@contextmanager
def demo_page(settings: PageSettings | None = None) -> Iterator[DemoPage]:
    made = DemoPage(settings)
    try:
        yield made
    finally:
        made.page.close()
