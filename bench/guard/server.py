"""A server as the program builds it from a Corefile, with memory in place of its sockets, and queries through it."""

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random
from unittest.mock import patch

from bench.guard.counting import Calls
from bench.guard.sockets import NOW, SLOTS, MemoryBatch, MemoryTransport, StandingLoop, Upstream
from topodns.app.generation import Assembly, Machine
from topodns.cluster.decode.stream import Event, read_watch_line
from topodns.cluster.model import Kind
from topodns.dns.tcp_framing import PREFIX, frame
from topodns.dnsserver.handler import Handler
from topodns.dnsserver.packet_cache.lookup import answer_batch
from topodns.dnsserver.packet_cache.table import PacketCache
from topodns.kube.informer.state_writer import StateWriter
from topodns.net.tcp import TcpListener
from topodns.net.tcp_connection import TcpConnection
from topodns.net.tcp_limits import TcpSchedule
from topodns.net.udp import UdpListener
from topodns.plugins.block import Settings
from topodns.plugins.kubernetes.clusters import load_manifests
from topodns.query.counters import QueryCounters
from topodns.query.query_sample import QuerySample

Asked = tuple[bytes, bytes]
"""The packed IPv4 address of a client, and its message."""


def _now() -> float:
    return NOW


class MemoryServer:
    """The first listener of these settings, over UDP and TCP. `upstream` answers the queries that it forwards.

    Each has the same seed and a clock that stands still, so that the same queries make the same calls.
    """

    def __init__(self, settings: Settings, upstream: Upstream | None = None) -> None:
        self.loop = StandingLoop()  # type: ignore[abstract]  # the others are never called
        self._upstream = upstream
        assembly = Assembly(Machine("", "", frozenset(), Random(0)), str)
        assembly.process = replace(assembly.process, timers=self.loop)
        with patch("time.time", _now):  # which each feed keeps: the second of a change is its SOA serial
            self.generation = assembly.build(settings)
        load_manifests(self.generation.clusters)
        for feed in self.generation.feeds:
            for _ in feed.idle_work():
                pass
        ((_, self._blocks), *_) = self.generation.tables.items()
        udp = self._handler("udp")
        self._batch = MemoryBatch()
        lookup = partial(answer_batch, udp.table)
        listener = UdpListener(
            self._batch, lookup, udp.answer, udp.socket_counters.batch_done, _now, QuerySample(Random(0))
        )
        listener.start(self.loop)
        self._serve_batch = self.loop.readers[self._batch.fileno()]
        tcp = self._handler("tcp")
        self._sock = socket.socket()  # never listens
        self._tcp_listener = TcpListener(
            self._sock, tcp.answer, schedule=TcpSchedule(_now), sample=QuerySample(Random(0))
        )

    def ask(self, tape: Sequence[Asked], calls: Calls | None = None) -> list[bytes]:
        """Send the messages over UDP, as many at once as a batch has slots. Returns the replies.

        `calls` counts the calls of the server for them.
        """
        counted, self._batch.replies = calls or Calls(), []
        asyncio._set_running_loop(self.loop)  # as if it ran: an upstream opens at its first query, in the running loop
        try:
            self._ask(tape, counted)
        finally:
            asyncio._set_running_loop(None)
        return self._batch.replies

    def watch(self, kind: Kind, lines: Sequence[bytes], calls: Calls) -> None:
        """Apply these lines of a watch of a kind, as if an API server sent them; `calls` counts the calls for them."""
        writer = StateWriter(self.generation.feeds[0].published)

        def take() -> None:
            for line in lines:
                event = read_watch_line(kind, line, writer.decode)
                assert isinstance(event, Event)
                writer.apply(kind, event)

        calls.count(take)

    def _ask(self, tape: Sequence[Asked], counted: Calls) -> None:
        for first in range(0, len(tape), SLOTS):
            some = tape[first : first + SLOTS]
            before = len(self._batch.replies)
            self._batch.queue(some)
            counted.count(self._serve_batch)
            forwarded = len(some) - (len(self._batch.replies) - before)
            if forwarded:
                self._answer_forwarded(forwarded, counted)

    def ask_over_tcp(self, tape: Sequence[Asked], calls: Calls | None = None) -> list[bytes]:
        """The same over TCP: each client sends its messages on one connection, one after another."""
        counted, replies = calls or Calls(), []
        connections: dict[bytes, tuple[TcpConnection, MemoryTransport]] = {}
        for client, message in tape:
            if client not in connections:
                connections[client] = self._connect(client)
            connection, transport = connections[client]
            framed = frame(message)
            buffer = connection.get_buffer(-1)
            buffer[: len(framed)] = framed
            counted.count(partial(connection.buffer_updated, len(framed)))
            replies += [written[PREFIX:] for written in transport.written]
            transport.written.clear()
        return replies

    def close(self) -> None:
        self.loop.later.clear()
        asyncio._set_running_loop(self.loop)
        try:
            for block in self.generation.blocks:
                block.close()
        finally:
            asyncio._set_running_loop(None)
        self.loop.call_what_is_later()  # upstreams linger before they close their sockets
        self._batch.close()
        self._sock.close()

    def _handler(self, transport: str) -> Handler:
        table = PacketCache(self.generation.view_key, Random(0), _now)
        return Handler(self._blocks, table, QueryCounters("dns://:53", transport, "1"), _now, 53)

    def _connect(self, client: bytes) -> tuple[TcpConnection, MemoryTransport]:
        connection, transport = TcpConnection(self._tcp_listener.clients, self.loop), MemoryTransport(client)
        connection.connection_made(transport)
        return connection, transport

    def _answer_forwarded(self, number: int, calls: Calls) -> None:
        """Let the upstream answer so many queries, which are in flight."""
        calls.count(self.loop.turn)  # what was written in this turn leaves
        for stream in self.loop.streams:
            replies = stream.replies()
            if replies:
                calls.count(partial(stream.connection.data_received, replies))
        if not self.loop.streams:
            self._answer_over_udp(number, calls)
        while self.loop.has_work:
            calls.count(self.loop.turn)

    def _answer_over_udp(self, number: int, calls: Calls) -> None:
        assert self._upstream is not None, "a query without a reply"
        ((epoll, receive),) = [(fd, reader) for fd, reader in self.loop.readers.items() if fd != self._batch.fileno()]
        self._upstream.answer(number, epoll)
        calls.count(receive)
