"""DNS over TCP for clients: one listener per socket, with a limit and a deadline for every resource."""

import asyncio
import socket
from dataclasses import replace
from typing import Final

from topodns.net.socket_memory import bound_buffers
from topodns.net.tcp_admission import Admission
from topodns.net.tcp_connection import TcpConnection
from topodns.net.tcp_contract import Answer
from topodns.net.tcp_limits import TcpCounts, TcpLimits
from topodns.net.tcp_scheduler import TcpSchedule
from topodns.query.session import OpenSession

BACKLOG: Final = 1024  # connections not yet accepted: with a short queue other clients have to retransmit SYNs


class TcpListener:
    """Serves the connections of one bound socket, on a schedule that other listeners may share."""

    def __init__(
        self,
        sock: socket.socket,
        answer: Answer,
        limits: TcpLimits | None = None,
        schedule: TcpSchedule | None = None,
        open_session: OpenSession | None = None,
    ) -> None:
        self.answer = answer
        self.open_session = open_session
        self.limits = limits or TcpLimits()
        self.counts = TcpCounts()
        self.schedule = schedule or TcpSchedule()
        # Shared by all connections: asyncio fills it and the connection reads it within one callback.
        self.read_buffer = memoryview(bytearray(self.limits.read_size))
        self.unfinished = 0  # octets of incomplete messages beyond each connection's own share (`TcpLimits.begun`)
        self.unread = 0  # upper bound of the octets of replies that clients have not read
        self._sock = sock
        self._connections: Admission[TcpConnection] = Admission()
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._sweep_due = 0.0
        self._emptied: asyncio.Event | None = None

    def __len__(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    async def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start accepting connections."""
        bound_buffers(self._sock)
        self._server = await loop.create_server(lambda: TcpConnection(self, loop), sock=self._sock, backlog=BACKLOG)
        self._schedule_sweep(loop)

    def swap(self, answer: Answer, limits: TcpLimits | None = None, open_session: OpenSession | None = None) -> None:
        """Use other functions from the next message on: a reload keeps all connections, and their sessions.

        New limits apply to new connections; open ones keep theirs, except for `unread` and `sweep`. The read buffer
        keeps its size.
        """
        self.answer = answer
        self.open_session = open_session
        if limits is not None:
            self.limits = replace(limits, read_size=self.limits.read_size)

    async def close(self) -> None:
        """Stop accepting connections, and wait until all are closed.

        Each closes when its messages are answered and the replies are read, at its deadline at the latest.
        """
        if self._server is None:
            self._sock.close()
            return
        self._server.close()
        for _ in range(2):  # the loop polls its sockets after the first turn and reads them in the second
            await asyncio.sleep(0)
        for connection in tuple(self._connections):
            connection.finish()
        self._emptied = asyncio.Event()
        if self._connections:
            await self._emptied.wait()  # ends by the connections' deadlines at the latest
        await self._server.wait_closed()
        if self._sweep is not None:
            self._sweep.cancel()

    def admit(self, connection: TcpConnection) -> bool:
        """Admit a new connection, perhaps by evicting an older one, and count it until `leave`. False: refused."""
        closing = self._emptied is not None  # it was accepted in the last turn before the close
        verdict = self._connections.judge(connection.address, self.limits)
        if closing or not verdict.admitted:
            self.counts.refused += 1
            return False
        if verdict.evicted is not None:
            self.counts.evicted += 1
            self._connections.remove(verdict.evicted)
            verdict.evicted.evict()
        self.counts.accepted += 1
        self._connections.add(connection)
        return True

    def hold(self, connection: TcpConnection) -> None:
        """Implements `Listener`: no new connection evicts one that has a session."""
        self._connections.hold(connection)

    def release(self, connection: TcpConnection) -> None:
        """Implements `Listener`."""
        self._connections.release(connection)

    def leave(self, connection: TcpConnection) -> None:
        """Stop counting a lost connection; no effect on a refused or evicted one.

        The last one ends the wait of `close`.
        """
        if self._connections.remove(connection) and self._emptied is not None and not self._connections:
            self._emptied.set()

    def _schedule_sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        self._sweep_due = loop.time() + self.limits.sweep
        self._sweep = loop.call_later(self.limits.sweep, self._sweep_deadlines, loop)

    def _sweep_deadlines(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close connections past their deadlines, bound unread replies, and schedule the next sweep.

        One timer for all connections: one per query would cost more than the query.
        """
        now = loop.time()
        late = now - self._sweep_due
        if late > self.limits.sweep:  # uvloop runs timers before it reads what has arrived meanwhile
            for connection in self._connections:
                connection.deadline.postpone(late)
        for connection in tuple(self._connections):
            connection.measure_unread()
            if connection.deadline.at <= now:
                self.counts.timed_out += 1
                connection.drop()
        self.bound_unread()
        self._schedule_sweep(loop)

    def bound_unread(self) -> None:
        """If unread replies may exceed the limit, measure them, and drop the connections with the most.

        Drops until three quarters of the limit are left, so that the next replies do not cause another measurement at
        once.
        """
        if self.unread <= self.limits.unread:
            return
        for connection in self._connections:
            connection.measure_unread()
        if self.unread <= (enough := self.limits.unread * 3 // 4):
            return
        for connection in sorted(self._connections, key=lambda each: each.unread, reverse=True):
            self.counts.over_memory += 1
            connection.drop()
            if self.unread <= enough:
                return
