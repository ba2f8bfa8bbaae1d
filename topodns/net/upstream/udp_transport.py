"""Queries over UDP, each from its own port, so that the source port is as hard to guess as the id (RFC 5452).

The sockets are connected, so the kernel drops datagrams from other addresses and reports closed ports (ICMP). They
share one epoll, and the event loop only watches that: a reader of the loop for each socket would cost as much as
everything else here.
"""

import asyncio
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
from topodns.net.upstream.retransmission import Retransmission, separate
from topodns.net.upstream.source_ports import SourcePorts
from topodns.query.upstream import Failure, UpstreamQuery

_DATAGRAM: Final = 0xFFFF  # octets: replies are read whole, even above the payload size of the query
_AT_ONCE: Final = 64  # sockets read in one turn of the loop


class UdpCarrier:
    """The UDP transport of one upstream. `via` of a query is its socket."""

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
        found = ports.send(ident + query.message)
        if found is None:
            return False
        descriptor, query.via = found
        query.ident = ident
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
        """Drop what else there is of a query that has no socket any more."""
        query.carrier = None
        if query.twin is not None:
            twin = separate(query)
            self._twins -= 1
            self._close_socket(twin, ports)
            twin.carrier = None
        if self._closing:
            self._close_ports()

    def _close_socket(self, query: UpstreamQuery, ports: SourcePorts) -> None:
        del self._queries[query.via.fileno()]
        ports.close_socket(query.via)

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
            sock = query.via
            try:
                message = sock.recv(_DATAGRAM)
            except BlockingIOError:  # a datagram with a bad checksum, or an event of an earlier query of this socket
                continue
            except OSError as reason:
                self._finish(query, failure_of(reason))
                continue
            if message[:2] != query.ident or not is_reply(message, query.question):
                self.counts.strays += 1  # a wrong message never ends the wait for the reply (CVE-2023-28452)
                continue
            del queries[descriptor]
            ports.release(descriptor, sock)
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
