"""DNS over TCP and TLS for clients: one listener per socket, with a limit and a deadline for every resource."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from topodns.net.socket_memory import bound_buffers
from topodns.net.tcp_connection import Answer, TcpClients, TcpConnection
from topodns.net.tcp_limits import TcpCounts, TcpLimits, TcpSchedule
from topodns.query.query_sample import QuerySample
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
        sample: QuerySample | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.clients = TcpClients(
            answer=answer,
            limits=limits or TcpLimits(),
            schedule=schedule or TcpSchedule(),
            open_session=open_session,
            sample=sample or QuerySample(),
            tls=tls,
        )
        self._sock = sock
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._sweep_due = 0.0

    @property
    def counts(self) -> TcpCounts:
        return self.clients.counts

    async def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start accepting connections."""
        bound_buffers(self._sock)
        make = self._over_tcp if self.clients.tls is None else self._over_tls()
        self._server = await loop.create_server(make, sock=self._sock, backlog=BACKLOG)
        self._schedule_sweep(loop)

    def _over_tcp(self) -> TcpConnection:
        return TcpConnection(self.clients, asyncio.get_running_loop())

    def _over_tls(self) -> Callable[[], asyncio.BufferedProtocol]:
        # Imported here, as few servers have a block with tls://.
        from topodns.net.tls_stream import TlsStream

        received = memoryview(bytearray(self.clients.limits.read_size))
        return lambda: TlsStream(self.clients, self._over_tcp(), received)

    def swap(
        self,
        answer: Answer,
        limits: TcpLimits | None = None,
        open_session: OpenSession | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Use other functions from the next message on: a reload keeps all connections, and their sessions.

        New limits, and a new `tls`, apply to new connections; open ones keep theirs, except for `unread` and `sweep`.
        The read buffer keeps its size.
        """
        clients = self.clients
        clients.answer = answer
        clients.open_session = open_session
        clients.tls = tls
        if limits is not None:
            clients.limits = replace(limits, read_size=clients.limits.read_size)

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
        connections = self.clients.connections
        for connection in tuple(connections):
            connection.finish()
        emptied = self.clients.emptied = asyncio.Event()
        if connections:
            await emptied.wait()  # ends by the connections' deadlines at the latest
        await self._server.wait_closed()
        if self._sweep is not None:
            self._sweep.cancel()

    def _schedule_sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        period = self.clients.limits.sweep
        self._sweep_due = loop.time() + period
        self._sweep = loop.call_later(period, self._sweep_deadlines, loop)

    def _sweep_deadlines(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close connections past their deadlines, bound unread replies, and schedule the next sweep.

        One timer for all connections: one per query would cost more than the query.
        """
        now, clients = loop.time(), self.clients
        late = now - self._sweep_due
        if late > clients.limits.sweep:  # uvloop runs timers before it reads what has arrived meanwhile
            for connection in clients.connections:
                connection.deadline.postpone(late)
        for connection in tuple(clients.connections):
            connection.measure_unread()
            if connection.deadline.at <= now:
                clients.counts.timed_out += 1
                connection.drop()
        clients.bound_unread()
        self._schedule_sweep(loop)
