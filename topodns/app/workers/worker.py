"""A worker of `multisocket`: serves the generations of the first process, with copies of its states.

It has no HTTP endpoints, reads no manifests and no API server, and ends when the first process does.
"""

import asyncio
import gc
import logging
import os
import random
import socket
import time
from collections import deque
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Final

from topodns.app.cluster_lifecycle import GARBAGE, Warmer, end_tasks, settle_memory
from topodns.app.generation import Assembly, Generation, Machine
from topodns.app.listeners import Listeners
from topodns.app.load import settings_from_tokens
from topodns.app.metrics import Metrics
from topodns.app.process_metrics import readings_of_each_process
from topodns.app.workers.messages import (
    GenerationOrder,
    MessageType,
    WorkerMessage,
    WorkerMessageReader,
    message,
    numbered_message,
    order_of,
)
from topodns.app.workers.metric_sums import family_octets
from topodns.corefile.errors import ConfigError
from topodns.dependency import EVERYTHING, Fact
from topodns.logs import LineWriter
from topodns.memory.budget import SERVER
from topodns.net.descriptors import raise_limit
from topodns.net.reuseport import FIRST_PROCESS
from topodns.net.sockets import ListenError
from topodns.netlink.route import own_addresses
from topodns.plugins.debug import PLUGIN as DEBUG
from topodns.plugins.forward.counts import ForwardShared
from topodns.plugins.setup import FILE_ERRORS, BlockSetup, MetricsSource
from topodns.time_slices import SLICE, in_slices

if TYPE_CHECKING:
    from topodns.app.workers.copies import Copies

log = logging.getLogger(__name__)


HIGH_WATER: Final = 4 << 20  # octets of messages that wait to be handled, above which none are read
LOW_WATER: Final = 1 << 20


class Worker(asyncio.Protocol):
    """One run of a worker, on the socket to the first process."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._rng = random.Random()
        self._lines = LineWriter()
        machine = Machine(socket.gethostname(), os.environ.get("NODE_NAME", ""), own_addresses(), self._rng)
        self._machine = machine
        self._assembly = Assembly(machine, self._lines)
        descriptors = raise_limit()
        shared = self._assembly.process.shared
        shared.get(ForwardShared).bound_udp_sockets(descriptors.upstreams)
        self._ports: dict[tuple[str, int], int] = {}
        self._listeners = Listeners(
            rng=self._rng,
            instance=FIRST_PROCESS,
            memory=SERVER,
            descriptors=descriptors,
            shared=shared,
            ports=self._ports,
        )
        self._metrics = Metrics(self._listeners.all_counters, list(readings_of_each_process(self._listeners)))
        self._metrics_source = MetricsSource(shared, self._blocks, self._listeners.all_counters)
        self._published: set[str] = set()
        self._copies: Copies | None = None  # None until a Corefile has a cluster
        self._built: dict[int, Generation] = {}  # by number: those that are not active yet
        self._generation: Generation | None = None
        self._warmer = Warmer(())
        self._tasks: list[asyncio.Task[None]] = []  # of the active generation
        self._switching = asyncio.Lock()
        self._others: set[asyncio.Task[None]] = set()
        self._reader = WorkerMessageReader()
        self._messages: deque[WorkerMessage] = deque()
        self._waiting = 0  # octets in `_messages`
        self._arrived = asyncio.Event()
        self._transport: asyncio.Transport | None = None
        self._ended: asyncio.Future[int] | None = None
        self._closed: asyncio.Future[None] | None = None

    async def run(self) -> int:
        """Serve until the first process says so. Returns the exit status; ends the process if the first one ends."""
        gc.set_threshold(GARBAGE)
        gc.disable()  # until the first generation is active: its objects stay alive
        loop = asyncio.get_running_loop()
        self._ended, self._closed = loop.create_future(), loop.create_future()
        self._transport, _ = await loop.create_unix_connection(lambda: self, sock=self._sock)
        self._start(self._handle_all(), "messages")
        status = await self._ended
        await self._closed  # what was sent is written first
        return status

    def data_received(self, data: bytes) -> None:
        for found in self._reader.feed(data):
            self._messages.append(found)
            self._waiting += len(found.payload)
        self._arrived.set()
        if self._waiting > HIGH_WATER and self._transport is not None:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """The first process has ended without a word: so does this one, as its answers would become outdated."""
        if self._ended is None or not self._ended.done():
            os._exit(1)
        if self._closed is not None:
            self._closed.set_result(None)

    async def _handle_all(self) -> None:
        """Handle messages in slices of time, and acknowledge them."""
        handled = 0
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            until = time.perf_counter() + SLICE
            while self._messages:
                found = self._messages.popleft()
                self._waiting -= len(found.payload)
                self._handle(found)
                handled += 1
                if time.perf_counter() >= until:
                    self._send(numbered_message(MessageType.ACKNOWLEDGED, handled))
                    await asyncio.sleep(0)
                    until = time.perf_counter() + SLICE
            self._send(numbered_message(MessageType.ACKNOWLEDGED, handled))
            if self._waiting < LOW_WATER and self._transport is not None:
                self._transport.resume_reading()

    def _handle(self, found: WorkerMessage) -> None:
        match found.kind:
            case MessageType.CHANGES:
                if self._copies is not None:
                    self._copies.take(found.payload)
            case MessageType.GENERATION:
                self._build(order_of(found.payload))
            case MessageType.ACTIVATE:
                self._start(self._activate(found.number), "activate")
            case MessageType.METRICS:
                self._start(self._report(), "report")
            case MessageType.STOP:
                self._start(self._stop(), "stop")
            case MessageType.PING:
                pass
            case _:
                raise ValueError(f"the first process sent {found.kind.name}")

    def _build(self, order: GenerationOrder) -> None:
        """Build a generation; the states of its new clusters are empty until their snapshots have come."""
        settings = settings_from_tokens(order.corefile)
        if order.feeds:
            self._copies = self._copies or self._make_copies()
            self._copies.expect(order.feeds)
        generation = self._assembly.build(settings)
        for plugin in self._assembly.plugins.values():
            if plugin.metrics is not None and plugin.name not in self._published:
                self._published.add(plugin.name)
                self._metrics.publish(plugin.metrics(self._metrics_source))
        self._ports.update(order.ports)
        self._built[order.number] = generation

    def _make_copies(self) -> "Copies":
        # Imported here: without clusters, half of the program is not needed.
        from topodns.app.workers.copies import Copies
        from topodns.plugins.kubernetes.metrics import pod_wait_reading

        copies = Copies(self._machine, self._rng)
        self._assembly.cluster_maker = copies.maker
        self._metrics.publish([pod_wait_reading(lambda: self._generation.clusters if self._generation else ())])
        return copies

    async def _activate(self, number: int) -> None:
        """Open the sockets of a generation, and serve it; as `app.server.Server` does, without what the first process
        does for all.
        """
        async with self._switching:
            generation = self._built[number]
            for feed in generation.feeds:  # before the first query, as its other processes have done long ago
                await in_slices(feed.idle_work())
            prepared = self._listeners.prepare(generation)
            del self._built[number]
            await end_tasks(self._tasks)
            for feed in generation.feeds:
                feed.subscribe(self._listeners.forget, self._changed)
            await self._listeners.commit(prepared)
            for block in self._blocks():
                block.close()
            self._generation = generation
            self._warmer = Warmer(feed.idle_work for feed in generation.feeds)
            self._tasks = [self._start(self._warmer.run(), "warm")]
            for block in generation.blocks:
                block.start(self._listeners.forget)
                self._tasks += [self._start(source.run(), "files") for source in block.sources]
            if self._copies is not None:
                waiting = (feed for each in self._built.values() for feed in each.feeds)
                self._copies.keep_only([*generation.feeds, *waiting])
            debug = [DEBUG.settings_of(block) for block in generation.settings.blocks]
            logging.getLogger("topodns").setLevel(logging.DEBUG if any(debug) else logging.INFO)
            gc.enable()
            settle_memory()
            self._send(numbered_message(MessageType.SERVING, number))

    def _changed(self, facts: frozenset[Fact]) -> None:
        self._warmer.rouse()
        if EVERYTHING in facts:
            gc.freeze()  # objects of a list stay alive; collecting them again and again would delay queries

    def _blocks(self) -> list[BlockSetup]:
        return self._generation.blocks if self._generation is not None else []

    async def _report(self) -> None:
        """Send all metrics that add up, in slices."""

        def families() -> Iterator[None]:
            for published in self._metrics.published():
                if (octets := family_octets(published)) is not None:
                    self._send(message(MessageType.FAMILY, octets))
                yield

        await in_slices(families())
        self._send(message(MessageType.FAMILIES_END))

    async def _stop(self) -> None:
        """Leave the ports to the first process, answer the queries that have come, report, and end."""
        async with self._switching:
            await end_tasks(self._tasks)
            await self._listeners.close()
            for block in self._blocks():
                block.close()
            await self._report()
            self._lines.flush()
            self._end(0)

    def _send(self, octets: bytes) -> None:
        if self._transport is not None:
            self._transport.write(octets)

    def _start(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._others.add(task)
        task.add_done_callback(self._task_ended)
        return task

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._others.discard(task)
        if task.cancelled() or (problem := task.exception()) is None:
            return
        if isinstance(problem, (ConfigError, ListenError, *FILE_ERRORS)):
            self._send(message(MessageType.FAILED, str(problem).encode()))
        else:
            log.critical("bug: task %s died", task.get_name(), exc_info=problem)
        self._end(1)

    def _end(self, status: int) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(status)
        if self._transport is not None:
            self._transport.close()
            self._transport = None
