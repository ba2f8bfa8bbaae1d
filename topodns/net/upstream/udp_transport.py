"""Queries over UDP: for each a socket of its own, so that its source port is as hard to guess as its id (RFC 5452).

The sockets are connected, so the kernel drops what comes from elsewhere and reports a port that nobody listens on.
Their ports are the kernel's choice, which is random over net.ipv4.ip_local_port_range. They share one epoll, and that
is all the event loop knows of them: a reader of the loop's own for each of them costs as much as all the rest.
"""

import asyncio
import select
import socket
from typing import Final

from topodns.edge.upstream.deadlines import Deadlines
from topodns.edge.upstream.endpoint import Endpoint
from topodns.edge.upstream.failures import BUSY, TIMED_OUT, failure_of
from topodns.edge.upstream.limits import Counts, UpstreamLimits
from topodns.edge.upstream.matching import RandomIds, is_reply
from topodns.resolve.exchange import Came, Failure

_KIND: Final = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
_DATAGRAM: Final = 0xFFFF  # octets: what an upstream sends is read whole, whatever it was offered
_AT_ONCE: Final = 64  # sockets looked at before the rest of the program has its turn


class _Query:
    """One query and its socket."""

    __slots__ = ("came", "carrier", "deadline", "descriptor", "ident", "question", "sock")

    def __init__(
        self, carrier: "UdpCarrier", sock: socket.SocketType, ident: bytes, question: bytes, deadline: float, came: Came
    ) -> None:
        self.carrier = carrier
        self.sock = sock
        self.descriptor = sock.fileno()
        self.ident = ident
        self.question = question
        self.deadline = deadline
        self.came = came

    def expire(self) -> None:
        self.carrier.counts.timed_out += 1
        self.carrier.finish(self, TIMED_OUT)


class UdpCarrier:
    """Carries queries to one upstream over UDP."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        endpoint: Endpoint,
        limits: UpstreamLimits,
        deadlines: Deadlines,
        ids: RandomIds,
        counts: Counts,
    ) -> None:
        self.counts = counts
        self._loop = loop
        self._family, self._peer, self._source = endpoint.family, endpoint.peer, endpoint.source
        self._limits = limits
        self._deadlines = deadlines
        self._ids = ids
        self._queries: dict[int, _Query] = {}  # by the file descriptor of their sockets
        self._epoll: select.epoll | None = None
        self._closing = False

    @property
    def open_sockets(self) -> int:
        return len(self._queries)

    def exchange(self, message: bytes, question: bytes, timeout: float, came: Came) -> None:
        """As `Upstream.exchange`."""
        if len(self._queries) >= self._limits.udp_sockets:
            came(BUSY)
            return
        ident = self._ids.draw()
        try:
            sock = self._send(ident + message[2:])
        except OSError as reason:
            came(failure_of(reason))
            return
        self.counts.misses += 1
        query = _Query(self, sock, ident, question, self._loop.time() + timeout, came)
        self._queries[query.descriptor] = query
        self._deadlines.add(query)

    def close(self) -> None:
        """Let go of what is not needed for what is in flight; nothing may be asked any more."""
        self._closing = True
        self._let_go()

    def finish(self, query: _Query, result: bytes | Failure) -> None:
        """The query is settled and its port given back."""
        del self._queries[query.descriptor]
        self._deadlines.discard(query)
        query.sock.close()  # which also takes it out of the epoll
        query.came(result)
        if self._closing:
            self._let_go()

    def _send(self, message: bytes) -> socket.SocketType:
        """The socket that this message has left from."""
        epoll = self._epoll or self._open_epoll()
        sock = socket.SocketType(self._family, _KIND, 0)  # socket.socket without the files that can be made of it
        try:
            if self._source is not None:
                sock.bind(self._source)
            sock.connect(self._peer)
            sock.send(message)
            epoll.register(sock.fileno(), select.EPOLLIN)
        except OSError:
            sock.close()
            raise
        return sock

    def _receive(self) -> None:
        """One datagram of each socket that has any; the epoll tells again of those that have more."""
        if self._epoll is None:
            return
        for descriptor, _ in self._epoll.poll(0, _AT_ONCE):
            query = self._queries.get(descriptor)
            if query is not None:
                self._read(query)

    def _read(self, query: _Query) -> None:
        try:
            message = query.sock.recv(_DATAGRAM)
        except BlockingIOError:  # a datagram with a bad checksum, or the port of one that was here before
            return
        except OSError as reason:
            self.finish(query, failure_of(reason))
            return
        if message[:2] == query.ident and is_reply(message, query.question):
            self.finish(query, message)
        else:
            self.counts.strays += 1  # a wrong one never ends the wait for the right one (CVE-2023-28452)

    def _open_epoll(self) -> select.epoll:
        self._epoll = select.epoll()
        self._loop.add_reader(self._epoll.fileno(), self._receive)
        return self._epoll

    def _let_go(self) -> None:
        if self._queries or self._epoll is None:
            return
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()
        self._epoll = None
