"""Queries over UDP, each from its own port, so that the source port is as hard to guess as the id (RFC 5452).

The sockets are connected, so the kernel drops datagrams from other addresses and reports closed ports (ICMP). They
share one epoll, and the event loop only watches that: a reader of the loop for each socket would cost as much as
everything else here.
"""

import asyncio
import socket
from typing import Final

from topodns.net.upstream.address import (
    BUSY,
    TIMED_OUT,
    Counts,
    UdpSockets,
    UpstreamEndpoint,
    UpstreamLimits,
    failure_of,
)
from topodns.net.upstream.deadlines import Deadlines
from topodns.net.upstream.matching import RandomIds, is_reply
from topodns.net.upstream.source_ports import SourcePorts
from topodns.query.upstream import Failure, OnReply, Sent

_DATAGRAM: Final = 0xFFFF  # octets: replies are read whole, even above the payload size of the query
_AT_ONCE: Final = 64  # sockets read in one turn of the loop


class _Query:
    """One query and its socket. `twin`: the same query sent again from another socket."""

    __slots__ = ("carrier", "deadline", "descriptor", "due", "ident", "message", "on_reply", "question", "sock", "twin")

    def __init__(
        self,
        carrier: "UdpCarrier",
        sock: socket.SocketType,
        ident: bytes,
        message: bytes,
        question: bytes,
        deadline: float,
        on_reply: OnReply,
    ) -> None:
        self.carrier = carrier
        self.sock = sock
        self.descriptor = sock.fileno()
        self.ident = ident
        self.message = message
        self.question = question
        self.deadline = self.due = deadline
        self.on_reply = on_reply
        self.twin: _Query | None = None

    def on_due(self, now: float) -> None:
        self.due = self.deadline
        if now < self.deadline:
            self.carrier.send_again(self)
        else:
            self.carrier.counts.timed_out += 1
            self.carrier.finish(self, TIMED_OUT)

    def cancel(self) -> None:
        """Stop waiting for the reply, as `Sent.cancel`; without effect after the reply."""
        self.carrier.release(self)


class UdpCarrier:
    """The UDP transport of one upstream."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        endpoint: UpstreamEndpoint,
        limits: UpstreamLimits,
        deadlines: Deadlines,
        ids: RandomIds,
        counts: Counts,
        sockets: UdpSockets,
    ) -> None:
        self.counts = counts
        self._sockets = sockets
        self._loop = loop
        self._endpoint = endpoint
        self._limits = limits
        self._deadlines = deadlines
        self._ids = ids
        self._queries: dict[int, _Query] = {}  # by the file descriptor of their sockets
        self._ports: SourcePorts | None = None
        self._twins = 0  # queries sent a second time
        self._closing = False

    @property
    def open_sockets(self) -> int:
        return len(self._queries)

    def exchange(self, message: bytes, question: bytes, timeout: float, on_reply: OnReply) -> Sent | None:
        """Send a query from a port of its own, as `Upstream.exchange`. Fails at once if too many are in flight."""
        ports = self._ports or self._open_ports()
        if len(self._queries) - self._twins >= self._limits.udp_queries or not ports.available:
            on_reply(BUSY)
            return None
        ident = self._ids.draw()
        try:
            sock = ports.send(ident + message[2:])
        except OSError as reason:
            on_reply(failure_of(reason))
            return None
        self.counts.misses += 1
        now, patience = self._loop.time(), self._limits.udp_patience
        query = _Query(self, sock, ident, message, question, now + timeout, on_reply)
        if 0 < patience < timeout:
            query.due = now + patience
        self._queries[query.descriptor] = query
        self._deadlines.add(query)
        return query

    def send_again(self, query: _Query) -> None:
        """Send a query once more, with another id and from another port; the first reply to either counts.

        Without effect if `sent_twice` queries in flight were sent again already, without a spare socket, or on an
        error.
        """
        ports = self._ports
        if ports is None or self._twins >= self._limits.sent_twice or not self._sockets.has_spare():
            return
        ident = self._ids.draw()
        try:
            sock = ports.send(ident + query.message[2:])
        except OSError:
            return
        self.counts.misses += 1
        self.counts.resent += 1
        self._twins += 1
        twin = _Query(self, sock, ident, query.message, query.question, query.deadline, query.on_reply)
        query.twin, twin.twin = twin, query
        self._queries[twin.descriptor] = twin

    def close(self) -> None:
        """Close all sockets as soon as no query is in flight; `exchange` must not be called any more."""
        self._closing = True
        self._close_ports()

    def finish(self, query: _Query, failure: Failure) -> None:
        """Settle a query without a reply."""
        self.release(query)
        query.on_reply(failure)

    def release(self, query: _Query) -> None:
        """Stop waiting for the reply: close the socket of a query and that of its twin. Idempotent."""
        if self._queries.get(query.descriptor) is query and self._ports is not None:
            del self._queries[query.descriptor]
            self._ports.close_socket(query.sock)
            self._forget(query, self._ports)

    def _forget(self, query: _Query, ports: SourcePorts) -> None:
        """Drop what else there is of a query that has no socket any more: its deadline and its twin."""
        self._deadlines.discard(query)
        twin = query.twin
        if twin is not None:
            query.twin = twin.twin = None
            self._twins -= 1
            del self._queries[twin.descriptor]
            self._deadlines.discard(twin)
            ports.close_socket(twin.sock)
        if self._closing:
            self._close_ports()

    def _receive(self) -> None:
        """Read one datagram of each ready socket; the level-triggered epoll reports the rest in the next turn."""
        ports = self._ports
        if ports is None:
            return
        for descriptor, _ in ports.epoll.poll(0, _AT_ONCE):
            query = self._queries.get(descriptor)
            if query is None:
                ports.close_idle(descriptor)
            else:
                self._read(query, ports)

    def _read(self, query: _Query, ports: SourcePorts) -> None:
        try:
            message = query.sock.recv(_DATAGRAM)
        except BlockingIOError:  # a datagram with a bad checksum, or an event of an earlier query of this socket
            return
        except OSError as reason:
            self.finish(query, failure_of(reason))
            return
        if message[:2] == query.ident and is_reply(message, query.question):
            del self._queries[query.descriptor]
            ports.release(query.sock)
            self._forget(query, ports)
            query.on_reply(message)
        else:
            self.counts.strays += 1  # a wrong message never ends the wait for the reply (CVE-2023-28452)

    def _open_ports(self) -> SourcePorts:
        self._ports = SourcePorts(self._loop, self._endpoint, self._sockets)
        self._loop.add_reader(self._ports.epoll.fileno(), self._receive)
        return self._ports

    def _close_ports(self) -> None:
        if self._queries or self._ports is None:
            return
        self._loop.remove_reader(self._ports.epoll.fileno())
        self._ports.close()
        self._ports = None
