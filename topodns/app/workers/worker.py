"""A worker of `multisocket`: serves the generations of the first process, with copies of its states.

It has no HTTP endpoints, reads no manifests and no API server, and ends when the first process does.
"""

import asyncio
import gc
import os
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Final

from topodns.app.cluster_lifecycle import GARBAGE
from topodns.app.event_loop import run_to_end
from topodns.app.generation import Generation
from topodns.app.hooks import Options
from topodns.app.load import settings_from_tokens
from topodns.app.serving import ServingProcess
from topodns.app.workers.copies import Copies
from topodns.app.workers.messages import GenerationOrder, MessageType, WorkerMessage, WorkerMessageReader, message
from topodns.app.workers.metric_sums import family_samples
from topodns.corefile.errors import ConfigError
from topodns.corefile.zones import ListenAt
from topodns.logs import start_logging
from topodns.net.reuseport import FIRST_PROCESS
from topodns.net.sockets import ListenError
from topodns.plugins.setup import FILE_ERRORS
from topodns.time_slices import SLICE, in_slices

HIGH_WATER: Final = 4 << 20  # octets of messages that wait to be handled, above which none are read
LOW_WATER: Final = 1 << 20


def main() -> None:
    """Run a worker on the socket whose descriptor is the only argument. Ends the process."""
    start_logging(time.monotonic)
    with socket.socket(fileno=int(sys.argv[1])) as sock:
        sys.exit(run_to_end(Worker(sock).run()))


class Worker(ServingProcess, asyncio.Protocol):
    """One run of a worker, on the socket to the first process."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._copies = Copies(Random())
        self._ports: dict[ListenAt, int] = {}
        super().__init__(Options(instance=FIRST_PROCESS, is_worker=True), self._copies.feed, self._ports)
        self._has_cluster_metrics = False
        self._built: dict[int, Generation] = {}  # by number: those that are not active yet
        self._switching = asyncio.Lock()
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
                    self._send(MessageType.ACKNOWLEDGED, handled)
                    await asyncio.sleep(0)
                    until = time.perf_counter() + SLICE
            self._send(MessageType.ACKNOWLEDGED, handled)
            if self._waiting < LOW_WATER and self._transport is not None:
                self._transport.resume_reading()

    def _handle(self, found: WorkerMessage) -> None:
        match found.kind:
            case MessageType.CHANGES:
                if self._copies.feeds:
                    self._copies.take(found.value)
            case MessageType.GENERATION:
                self._build(found.value)
            case MessageType.ACTIVATE:
                self._start(self._activate(found.value), "activate")
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
        self._copies.expect(order.feeds)
        self._built[order.number] = self._assemble(settings_from_tokens(order.corefile))
        self._ports.update(order.ports)
        if order.feeds and not self._has_cluster_metrics:
            # Imported here: without clusters, half of the program is not needed.
            from topodns.plugins.kubernetes.metrics import pod_wait_reading

            self._metrics.publish([pod_wait_reading(self._events.clusters)])
            self._count_distances()
            self._has_cluster_metrics = True

    async def _activate(self, number: int) -> None:
        """Open the sockets of a generation, and serve it."""
        async with self._switching:
            generation = self._built[number]
            for feed in generation.feeds:  # before the first query, as its other processes have done long ago
                await in_slices(feed.idle_work())
            prepared = self._listeners.prepare(generation)
            del self._built[number]
            await self._switch(prepared)
            self._copies.keep_only([feed for each in (generation, *self._built.values()) for feed in each.feeds])
            gc.enable()
            self._send(MessageType.SERVING, number)

    async def _report(self) -> None:
        """Send all metrics that add up, in slices."""
        await self._metrics.count()

        def families() -> Iterator[None]:
            for published in self._metrics.published():
                if (samples := family_samples(published)) is not None:
                    self._send(MessageType.FAMILY, samples)
                yield

        await in_slices(families())
        self._send(MessageType.FAMILIES_END)

    async def _stop(self) -> None:
        """Leave the ports to the first process, answer the queries that have come, report, and end."""
        async with self._switching:
            await self._end_tasks()
            await self._listeners.close()
            self._close_blocks()
            await self._report()
            self._lines.flush()
            self._end(0)

    def _send(self, kind: MessageType, value: object = None) -> None:
        if self._transport is not None:
            self._transport.write(message(kind, value))

    def _failed(self, name: str, problem: BaseException) -> None:
        if isinstance(problem, (ConfigError, ListenError, *FILE_ERRORS)):
            self._send(MessageType.FAILED, str(problem))
        else:
            super()._failed(name, problem)
        self._end(1)

    def _end(self, status: int) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(status)
        if self._transport is not None:
            self._transport.close()
            self._transport = None
