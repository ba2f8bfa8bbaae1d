"""Queries over UDP, each from its own port, so that the source port is as hard to guess as the id (RFC 5452).

The sockets are connected, so the kernel drops datagrams from other addresses and reports closed ports (ICMP). They
share one epoll, and the event loop only watches that: a reader of the loop for each socket would cost as much as
everything else here.

A socket whose query is answered gives its port back and serves a later query from another port: connect(2) with
AF_UNSPEC dissolves its association, and the next connect binds it to a port chosen at random by the kernel, from
net.ipv4.ip_local_port_range. That takes 3 us, a new socket in the epoll 9.
"""

import asyncio
import ctypes
import select
import socket
from dataclasses import dataclass
from typing import Final

from topodns.net.upstream.address import (
    BUSY,
    TIMED_OUT,
    Counts,
    UpstreamEndpoint,
    UpstreamLimits,
    failure_of,
)
from topodns.net.upstream.in_flight import Deadlines, RandomIds, Retransmission, is_reply, separate
from topodns.query.upstream import Failure, UpstreamQuery

KEPT: Final = 64  # sockets without a query, per upstream; the kernel takes about 1 KiB for each
IDLE: Final = 10.0  # seconds without a query after which they are closed

_DATAGRAM: Final = 0xFFFF  # octets: replies are read whole, even above the payload size of the query
_AT_ONCE: Final = 64  # sockets read in one turn of the loop
_KIND: Final = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
_UNSPECIFIED: Final = bytes(16)  # struct sockaddr with the family AF_UNSPEC, which is 0

_connect = ctypes.CDLL(None).connect
_connect.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)


@dataclass(slots=True)
class UdpSockets:
    """Budget of sockets for queries over UDP, shared by all upstreams of the process.

    Two thirds are reserved for first attempts: no more than `questions` queries may be in flight, and a query is sent a
    second time only while less than a third is open.
    """

    most: int = 1 << 20
    open: int = 0

    def has_spare(self) -> bool:
        """Whether a query in flight may have a second socket: less than a third of the budget is open."""
        return 3 * self.open < self.most

    @property
    def questions(self) -> int:
        return 2 * self.most // 3


class SourcePorts:
    """The sockets of one upstream's queries over UDP, all in one epoll, by file descriptor: in use or idle.

    Each query has a random source port of its own (RFC 5452 section 9.2); an idle socket has none.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, endpoint: UpstreamEndpoint, budget: UdpSockets) -> None:
        self._loop = loop
        self._family, self._peer, self._source = endpoint.family, endpoint.peer, endpoint.source
        self._budget = budget
        self.sockets: dict[int, socket.SocketType] = {}  # all, by file descriptor
        self._idle: dict[int, None] = {}  # descriptors of those without a query
        self._used = False  # since the last look at idle sockets
        self._timer: asyncio.TimerHandle | None = None
        self.epoll = select.epoll()

    def send(self, message: bytes) -> int | None:
        """Send a message from a random port. Returns the descriptor of its socket, which is connected.

        None, without effect, if the budget has no socket left. Raises OSError. The socket is in use until `release` or
        `close_socket`.
        """
        if self._idle:
            descriptor, _ = self._idle.popitem()
            sock = self.sockets[descriptor]
            self._used = True
            try:
                sock.connect(self._peer)
                sock.send(message)
            except OSError:  # perhaps an ICMP error for its earlier query; a new socket has none
                self.close_socket(descriptor)
            else:
                return descriptor
        return self._open(message) if self._budget.open < self._budget.most else None

    def _open(self, message: bytes) -> int:
        sock = socket.SocketType(self._family, _KIND, 0)  # the C base class of socket.socket, which costs less
        try:
            if self._source is not None:
                sock.bind(self._source)
            sock.connect(self._peer)
            sock.send(message)
            descriptor = sock.fileno()
            self.epoll.register(descriptor, select.EPOLLIN)
        except OSError:
            sock.close()
            raise
        self._budget.open += 1
        self.sockets[descriptor] = sock
        return descriptor

    def release(self, descriptor: int) -> None:
        """Give the socket's port back, and keep the socket for a later query.

        It is closed instead if KEPT sockets are kept or the budget is short.
        """
        if len(self._idle) >= KEPT or not self._budget.has_spare() or _connect(descriptor, _UNSPECIFIED, 16):
            self.close_socket(descriptor)
            return
        self._idle[descriptor] = None
        if self._timer is None:
            self._used = False
            self._timer = self._loop.call_later(IDLE, self._look_at_idle)

    def close_socket(self, descriptor: int) -> None:
        """Close a socket that is in use."""
        self._budget.open -= 1
        self.sockets.pop(descriptor).close()  # also removes it from the epoll

    def close_idle(self, descriptor: int) -> None:
        """Close an idle socket that is readable: a second datagram came before its port was given back.

        Without effect for any other descriptor.
        """
        if descriptor in self._idle:
            del self._idle[descriptor]
            self.close_socket(descriptor)

    def close(self) -> None:
        """Close the epoll and the idle sockets."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._close_all_idle()
        self.epoll.close()

    def _look_at_idle(self) -> None:
        self._timer = None
        if self._used:
            self._used = False
            self._timer = self._loop.call_later(IDLE, self._look_at_idle)
        else:
            self._close_all_idle()

    def _close_all_idle(self) -> None:
        while self._idle:
            self.close_socket(self._idle.popitem()[0])


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
        self._draw = ids.draw
        self._queries: dict[int, UpstreamQuery] = {}  # by the file descriptor of their sockets
        self._ports: SourcePorts | None = None
        self._twins = 0  # queries sent a second time
        self._closing = False
        deadlines.add(self._queries.values)

    def exchange(self, query: UpstreamQuery, timeout: float, now: float) -> None:
        """Send a query from a port of its own, as `Upstream.exchange`.

        Its `on_reply` gets a Failure at once if too many are in flight, or for an error of the socket.
        """
        if len(self._queries) - self._twins >= self._limits.udp_queries:
            query.on_reply(BUSY)
            return
        try:
            sent = self._send(query)
        except OSError as reason:
            query.on_reply(failure_of(reason))
            return
        if not sent:
            query.on_reply(BUSY)
            return
        query.carrier = self
        query.deadline = now + timeout
        patience = self._limits.udp_patience
        query.due = now + (patience if 0 < patience < timeout else timeout)
        if self._deadlines.armed is None:
            self._deadlines.arm()

    def on_due(self, query: UpstreamQuery, now: float) -> None:
        """Send the query once more, with another id and from another port; at its deadline, give it up.

        It is not sent again if `sent_twice` queries in flight were, without a spare socket, or on an error.
        """
        query.due = query.deadline
        if now >= query.deadline:
            self.counts.timed_out += 1
            self._finish(query, TIMED_OUT)
        elif self._twins < self._limits.sent_twice and self._sockets.has_spare():
            again = Retransmission(query)
            try:
                sent = self._send(again)
            except OSError:
                sent = False
            if sent:
                self.counts.resent += 1
                self._twins += 1
            else:
                separate(query)

    def cancel(self, query: UpstreamQuery) -> None:
        """As `UpstreamQuery.cancel`: its port is given back, and that of its retransmission."""
        self._release(query)

    def close(self) -> None:
        """Close all sockets as soon as no query is in flight; `exchange` must not be called any more."""
        self._closing = True
        self._close_ports()

    def _send(self, query: UpstreamQuery) -> bool:
        """Send a query under a new id; whether there is a socket for it. Raises OSError."""
        ports = self._ports or self._open_ports()
        ident = self._draw()
        descriptor = ports.send(ident + query.message)
        if descriptor is None:
            return False
        query.descriptor, query.ident = descriptor, ident
        self._queries[descriptor] = query
        self.counts.misses += 1
        return True

    def _finish(self, query: UpstreamQuery, failure: Failure) -> None:
        self._release(query)
        query.on_reply(failure)

    def _release(self, query: UpstreamQuery) -> None:
        """Stop waiting for the reply to a query in flight: close its socket, and that of its twin."""
        ports = self._ports
        assert ports is not None, "a query in flight has a socket"
        self._close_socket(query, ports)
        self._settle(query, ports)

    def _settle(self, query: UpstreamQuery, ports: SourcePorts) -> None:
        """Note that a query, which has no socket any more, is in flight no longer. The same for its twin, if any."""
        query.carrier = None
        if query.twin is not None:
            twin = separate(query)
            self._twins -= 1
            self._close_socket(twin, ports)
            twin.carrier = None
        if self._closing:
            self._close_ports()

    def _close_socket(self, query: UpstreamQuery, ports: SourcePorts) -> None:
        del self._queries[query.descriptor]
        ports.close_socket(query.descriptor)

    def _receive(self) -> None:
        """Read one datagram of each ready socket; the level-triggered epoll reports the rest in the next turn."""
        ports, queries = self._ports, self._queries
        if ports is None:
            return
        for descriptor, _ in ports.epoll.poll(0, _AT_ONCE):
            query = queries.get(descriptor)
            if query is None:
                ports.close_idle(descriptor)
                continue
            try:
                message = ports.sockets[descriptor].recv(_DATAGRAM)
            except BlockingIOError:  # a datagram with a bad checksum, or an event of an earlier query of this socket
                continue
            except OSError as reason:
                self._finish(query, failure_of(reason))
                continue
            if message[:2] != query.ident or not is_reply(message, query.question):
                self.counts.strays += 1  # a wrong message never ends the wait for the reply (CVE-2023-28452)
                continue
            del queries[descriptor]
            ports.release(descriptor)
            query.carrier = None
            if query.twin is not None or self._closing:
                self._settle(query, ports)
            query.on_reply(message)

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
