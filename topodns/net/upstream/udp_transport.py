"""Queries over UDP, each with its own socket, so that the source port is as hard to guess as the id (RFC 5452).

The sockets are connected, so the kernel drops datagrams from other addresses and reports closed ports (ICMP). The
kernel chooses their ports at random from net.ipv4.ip_local_port_range. They share one epoll, and the event loop only
watches that: a reader of the loop for each socket would cost as much as everything else here.
"""

import asyncio
import select
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
from topodns.query.upstream import Failure, OnReply, Sent

_KIND: Final = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
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
        self._family, self._peer, self._source = endpoint.family, endpoint.peer, endpoint.source
        self._limits = limits
        self._deadlines = deadlines
        self._ids = ids
        self._queries: dict[int, _Query] = {}  # by the file descriptor of their sockets
        self._epoll: select.epoll | None = None
        self._twins = 0  # queries sent a second time
        self._closing = False

    @property
    def open_sockets(self) -> int:
        return len(self._queries)

    def exchange(self, message: bytes, question: bytes, timeout: float, on_reply: OnReply) -> Sent | None:
        """Send a query from a new socket, as `Upstream.exchange`. Fails at once if too many are in flight."""
        if len(self._queries) - self._twins >= self._limits.udp_queries or self._sockets.open >= self._sockets.most:
            on_reply(BUSY)
            return None
        ident = self._ids.draw()
        try:
            sock = self._send(ident + message[2:])
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
        if self._twins >= self._limits.sent_twice or not self._sockets.has_spare():
            return
        ident = self._ids.draw()
        try:
            sock = self._send(ident + query.message[2:])
        except OSError:
            return
        self.counts.misses += 1
        self.counts.resent += 1
        self._twins += 1
        twin = _Query(self, sock, ident, query.message, query.question, query.deadline, query.on_reply)
        query.twin, twin.twin = twin, query
        self._queries[twin.descriptor] = twin

    def close(self) -> None:
        """Close the epoll as soon as no query is in flight; `exchange` must not be called any more."""
        self._closing = True
        self._close_epoll()

    def finish(self, query: _Query, result: bytes | Failure) -> None:
        """Settle a query: close its sockets, then deliver the result."""
        self.release(query)
        query.on_reply(result)

    def release(self, query: _Query) -> None:
        """Stop waiting for the reply: close the socket of a query and that of its twin. Idempotent."""
        if self._queries.get(query.descriptor) is not query:
            return
        twin = query.twin
        self._close_socket(query)
        if twin is not None:
            query.twin = twin.twin = None
            self._twins -= 1
            self._close_socket(twin)
        if self._closing:
            self._close_epoll()

    def _close_socket(self, query: _Query) -> None:
        del self._queries[query.descriptor]
        self._deadlines.discard(query)
        self._sockets.open -= 1
        query.sock.close()  # also removes it from the epoll

    def _send(self, message: bytes) -> socket.SocketType:
        """Send a message from a new connected socket, and return the socket. Raises OSError."""
        epoll = self._epoll or self._open_epoll()
        sock = socket.SocketType(self._family, _KIND, 0)  # the C base class of socket.socket, which costs less
        try:
            if self._source is not None:
                sock.bind(self._source)
            sock.connect(self._peer)
            sock.send(message)
            epoll.register(sock.fileno(), select.EPOLLIN)
        except OSError:
            sock.close()
            raise
        self._sockets.open += 1
        return sock

    def _receive(self) -> None:
        """Read one datagram of each ready socket; the level-triggered epoll reports the rest in the next turn."""
        if self._epoll is None:
            return
        for descriptor, _ in self._epoll.poll(0, _AT_ONCE):
            query = self._queries.get(descriptor)
            if query is not None:
                self._read(query)

    def _read(self, query: _Query) -> None:
        try:
            message = query.sock.recv(_DATAGRAM)
        except BlockingIOError:  # a datagram with a bad checksum, or an event of an earlier socket with this descriptor
            return
        except OSError as reason:
            self.finish(query, failure_of(reason))
            return
        if message[:2] == query.ident and is_reply(message, query.question):
            self.finish(query, message)
        else:
            self.counts.strays += 1  # a wrong message never ends the wait for the reply (CVE-2023-28452)

    def _open_epoll(self) -> select.epoll:
        self._epoll = select.epoll()
        self._loop.add_reader(self._epoll.fileno(), self._receive)
        return self._epoll

    def _close_epoll(self) -> None:
        if self._queries or self._epoll is None:
            return
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()
        self._epoll = None
