"""HTTP listeners: accept connections, and evict older ones above the limits."""

import asyncio
import errno
import logging
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from topodns.net.http_server.connection import HttpConnection
from topodns.net.http_server.messages import AdminLimits, HttpCounts, Route
from topodns.net.http_server.scheduler import RoundRobin

log = logging.getLogger(__name__)


BACKLOG: Final = 1024  # connections that the kernel keeps until they are accepted
SEND_BUFFER: Final = 64 << 10  # octets: SO_SNDBUF of a connection; Linux doubles it
RECEIVE_BUFFER: Final = 16 << 10  # octets: SO_RCVBUF of a connection; Linux doubles it

_LIMITS: Final = AdminLimits()
_ACCEPTS: Final = 8  # connections in one step
_NO_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_DESCRIPTOR_PAUSE: Final = 0.1  # seconds until accepting is tried again


@dataclass(eq=False)
class _Listener:
    limits: AdminLimits
    turns: RoundRobin
    counts: HttpCounts
    routes: dict[str, Route]
    acceptors: list["_Acceptor"] = field(default_factory=list)
    connections: dict[HttpConnection, None] = field(default_factory=dict)  # open ones, the oldest first

    @property
    def full(self) -> bool:
        return len(self.connections) >= self.limits.connections

    def to_evict(self) -> HttpConnection | None:
        """The oldest connection of the address with the most; those that await their first reply are never evicted.

        None if all do.
        """
        held = Counter(connection.peer for connection in self.connections)
        others = (connection for connection in self.connections if not connection.awaits_first_reply)
        return max(others, key=lambda connection: held[connection.peer], default=None)


@dataclass
class AdminServer:
    """All HTTP listeners of the process, each with its routes by path. Routes can be replaced while it runs."""

    limits: AdminLimits = _LIMITS
    counts: HttpCounts = field(default_factory=HttpCounts)
    _listeners: dict[tuple[str, int], _Listener] = field(default_factory=dict)
    _stopped: list[_Listener] = field(default_factory=list)
    _turns: RoundRobin = field(default_factory=RoundRobin)

    @property
    def connections(self) -> int:
        """The number of open connections of all listeners, including stopped ones."""
        return sum(len(listener.connections) for listener in (*self._listeners.values(), *self._stopped))

    def listen(self, at: tuple[str, int], sockets: Iterable[socket.socket], routes: Mapping[str, Route]) -> None:
        """Serve routes on bound, non-blocking sockets, which together form the listener with the key `at`."""
        listener = self._listeners[at] = _Listener(self.limits, self._turns, self.counts, dict(routes))
        listener.acceptors = [_Acceptor(listener, sock) for sock in sockets]

    def sockets(self) -> Iterator[socket.socket]:
        """The listening sockets of all listeners that are not stopped."""
        return (acceptor.sock for listener in self._listeners.values() for acceptor in listener.acceptors)

    def replace_routes(self, at: tuple[str, int], routes: Mapping[str, Route]) -> None:
        """Replace the routes of an existing listener."""
        self._listeners[at].routes = dict(routes)

    @property
    def addresses(self) -> frozenset[tuple[str, int]]:
        return frozenset(self._listeners)

    def close(self, keep: frozenset[tuple[str, int]] = frozenset()) -> None:
        """Stop all listeners except those in `keep`, without waiting: requests that have arrived are still answered."""
        self._stopped = [listener for listener in self._stopped if listener.connections]
        for at in [at for at in self._listeners if at not in keep]:
            listener = self._listeners.pop(at)
            for acceptor in listener.acceptors:
                acceptor.close()
            for connection in list(listener.connections):
                connection.finish()
            self._stopped.append(listener)


class _Acceptor:
    """One listening socket: accepts a few connections in each of its steps."""

    def __init__(self, listener: _Listener, sock: socket.socket) -> None:
        self.sock = sock
        self._listener = listener
        self._turns = listener.turns
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._short = False  # whether the last accept failed for lack of descriptors
        # Connections inherit these. The kernel's queues are bounded by the buffers.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        sock.listen(BACKLOG)
        self._watch()

    def step(self) -> None:
        if self._closed:
            return
        for _ in range(_ACCEPTS):
            evicted = self._listener.to_evict() if self._listener.full else None
            if self._listener.full and evicted is None:
                break  # until a first request has been answered
            try:
                sock, address = self.sock.accept()
            except BlockingIOError:
                self._watch()
                return
            except OSError as failed:
                if failed.errno in _NO_DESCRIPTORS:
                    self._wait_for_descriptors(failed)
                    return
                continue  # this connection was reset before it was accepted (accept(2))
            self._short = False
            if evicted is not None:
                evicted.drop()
            sock.setblocking(False)
            HttpConnection(self._listener, sock, address[0])
        self._turns.join(self)

    def _wait_for_descriptors(self, failed: OSError) -> None:
        """Drop a connection to free its descriptor, and try again after _DESCRIPTOR_PAUSE."""
        if not self._short:
            log.warning("no HTTP connection can be accepted: %s", failed.strerror)
        self._short = True
        if (evicted := self._listener.to_evict()) is not None:
            evicted.drop()
        self._loop.call_later(_DESCRIPTOR_PAUSE, self._watch)

    def close(self) -> None:
        self._closed = True
        self._turns.leave(self)
        self._loop.remove_reader(self.sock.fileno())
        self.sock.close()

    def _watch(self) -> None:
        if not self._closed:
            self._loop.add_reader(self.sock.fileno(), self._readable)

    def _readable(self) -> None:
        self._loop.remove_reader(self.sock.fileno())
        self._turns.join(self)
