"""A process that serves one generation after another: the server, and each worker of `multisocket`."""

import asyncio
import logging
import os
import random
import socket
from collections.abc import Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING

from topodns.app.cluster_lifecycle import ClusterCare, end_tasks, settle_memory
from topodns.app.generation import Assembly, Generation, Machine
from topodns.app.hooks import Options
from topodns.app.listeners import Listeners, Prepared
from topodns.app.metrics import Metrics
from topodns.app.process_metrics import Events, readings_of_each_process
from topodns.corefile.zones import ListenAt
from topodns.logs import LineWriter
from topodns.net.descriptors import raise_limit
from topodns.netlink.route import own_addresses
from topodns.plugins.block import Settings
from topodns.plugins.debug import PLUGIN as DEBUG
from topodns.plugins.forward.single_flight import ForwardShared
from topodns.plugins.plugin import AnyPlugin
from topodns.plugins.setup import MetricsSource

if TYPE_CHECKING:
    from topodns.plugins.kubernetes.clusters import ChooseFeed
    from topodns.plugins.kubernetes.feed import Feed

log = logging.getLogger(__name__)


class ServingProcess:
    """The active generation with its sockets, tasks and metrics."""

    def __init__(
        self,
        options: Options,
        choose_feed: "ChooseFeed | None" = None,
        ports: Mapping[ListenAt, int] | None = None,
    ) -> None:
        """`choose_feed` as of `Assembly`, `ports` as of `Listeners`."""
        self._rng = random.Random()
        self._lines = LineWriter()
        machine = Machine(socket.gethostname(), os.environ.get("NODE_NAME", ""), own_addresses(), self._rng)
        self._assembly = Assembly(
            machine, self._lines, options.identity, options.memory, choose_feed, options.is_worker
        )
        self._descriptors = raise_limit()
        shared = self._assembly.process.shared
        shared.get(ForwardShared).bound_udp_sockets(self._descriptors.upstreams)
        self._listeners = Listeners(
            rng=self._rng,
            instance=options.instance,
            memory=options.memory,
            descriptors=self._descriptors,
            shared=shared,
            ports=ports,
        )
        self._events = Events()
        self._metrics = Metrics(self._listeners.all_counters, list(readings_of_each_process(self._listeners)))
        self._metrics_source = MetricsSource(shared, self._events.blocks, self._listeners.all_counters)
        self._published: set[str] = set()  # names of the plugins whose metrics are published
        self._clusters = ClusterCare(self._start, self._listeners.forget)
        self._running: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()  # only those of the active generation

    def _assemble(self, settings: Settings, feeds: "Iterable[Feed]" = ()) -> Generation:
        """Build a generation as `Assembly.build`, and publish the metrics of its plugins."""
        generation = self._assembly.build(settings, feeds)
        self._publish(self._assembly.plugins.values())
        return generation

    def _publish(self, plugins: Iterable[AnyPlugin]) -> None:
        """Add the metrics of these plugins, once each."""
        for plugin in plugins:
            if plugin.metrics is not None and plugin.name not in self._published:
                self._published.add(plugin.name)
                self._metrics.publish(plugin.metrics(self._metrics_source))

    def _count_distances(self) -> None:
        """Add the metric of how far answered endpoints are from the clients: from the first cluster on."""
        # Imported here: a node cache has no cluster.
        from topodns.plugins.kubernetes.distance import EndpointDistances

        distances = EndpointDistances(self._events.clusters, self._listeners.sample)
        self._metrics.publish([distances.reading()])
        self._metrics.count_first(distances.count_steps)

    async def _switch(self, prepared: Prepared) -> None:
        """Serve the prepared generation instead of the active one."""
        generation = prepared.generation
        await self._end_tasks()
        for block in generation.blocks:
            await block.prepare()
        self._clusters.activate(generation)
        await self._listeners.commit(prepared)
        self._close_blocks()
        self._events.generation = generation
        self._start_for_generation(self._clusters.warm(), "warm")
        for block in generation.blocks:
            block.start(self._clusters.changed)
            for work in block.work:
                self._start_for_generation(work.run(), "files")
        debug = any(DEBUG.settings_of(block) is not None for block in generation.settings.blocks)
        logging.getLogger("topodns").setLevel(logging.DEBUG if debug else logging.INFO)
        await self._clusters.settle()
        settle_memory()

    def _close_blocks(self) -> None:
        for block in self._events.blocks():
            block.close()

    def _start_for_generation(self, work: Coroutine[None, None, None], name: str) -> None:
        """Run a background task of the active generation."""
        self._tasks.add(self._start(work, name))

    async def _end_tasks(self) -> None:
        await end_tasks(list(self._tasks))

    def _start(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        """Run a background task. An exception in it is a bug, and ends the process."""
        task = asyncio.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._task_ended)
        return task

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._failed(task.get_name(), problem)

    def _failed(self, name: str, problem: BaseException) -> None:
        """End the process, as its task of this name has raised `problem`."""
        log.critical("bug: task %s died", name, exc_info=problem)
