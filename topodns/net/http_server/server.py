"""HTTP listeners: accept connections, and evict older ones above the limits."""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from topodns.net.http_server.connection import HttpClients, HttpConnection, RoundRobin
from topodns.net.http_server.messages import AdminLimits, HttpCounts, Route
from topodns.net.socket_memory import bound_buffers

log = logging.getLogger(__name__)


BACKLOG: Final = 1024  # connections that the kernel keeps until they are accepted

_LIMITS: Final = AdminLimits()
_RECORD: Final = 16 << 10  # octets; no TLS record has more
_ACCEPTS: Final = 8  # connections in one step
_NO_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_DESCRIPTOR_PAUSE: Final = 0.1  # seconds until accepting is tried again


class _Listener(NamedTuple):
    """The sockets of one listener, and its clients."""

    clients: HttpClients
    acceptors: list["_Acceptor"]


@dataclass
class AdminServer:
    """All HTTP listeners of the process, each with its routes by path. Routes can be replaced while it runs."""

    limits: AdminLimits = _LIMITS
    counts: HttpCounts = field(default_factory=HttpCounts)
    _listeners: dict[tuple[str, int], _Listener] = field(default_factory=dict)
    _stopped: list[HttpClients] = field(default_factory=list)
    _turns: RoundRobin = field(default_factory=RoundRobin)

    @property
    def connections(self) -> int:
        """The number of open connections of all listeners, including stopped ones."""
        listening = [listener.clients for listener in self._listeners.values()]
        return sum(len(clients.connections) for clients in (*listening, *self._stopped))

    def listen(
        self,
        at: tuple[str, int],
        sockets: Iterable[socket.socket],
        routes: Mapping[str, Route],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Serve routes on bound, non-blocking sockets, which together form the listener with the key `at`.

        `tls`: None for plain HTTP.
        """
        clients = HttpClients(self.limits, self._turns, self.counts, dict(routes), tls)
        self._listeners[at] = _Listener(clients, [_Acceptor(clients, sock) for sock in sockets])

    def sockets(self) -> Iterator[socket.socket]:
        """The listening sockets of all listeners that are not stopped."""
        return (acceptor.sock for listener in self._listeners.values() for acceptor in listener.acceptors)

    def replace_routes(
        self, at: tuple[str, int], routes: Mapping[str, Route], tls: ssl.SSLContext | None = None
    ) -> None:
        """Replace the routes of an existing listener, and the TLS of its new connections."""
        clients = self._listeners[at].clients
        clients.routes, clients.tls = dict(routes), tls

    @property
    def addresses(self) -> frozenset[tuple[str, int]]:
        return frozenset(self._listeners)

    def close(self, keep: frozenset[tuple[str, int]] = frozenset()) -> None:
        """Stop all listeners except those in `keep`, without waiting: requests that have arrived are still answered."""
        self._stopped = [clients for clients in self._stopped if clients.connections]
        for at in [at for at in self._listeners if at not in keep]:
            listener = self._listeners.pop(at)
            for acceptor in listener.acceptors:
                acceptor.close()
            for connection in list(listener.clients.connections):
                connection.finish()
            self._stopped.append(listener.clients)


class _Acceptor:
    """One listening socket: accepts a few connections in each of its steps."""

    def __init__(self, clients: HttpClients, sock: socket.socket) -> None:
        self.sock = sock
        self._clients = clients
        self._turns = clients.turns
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._short = False  # whether the last accept failed for lack of descriptors
        # Connections inherit these. The kernel's queues are bounded by the buffers.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        bound_buffers(sock)
        sock.listen(BACKLOG)
        self._watch()

    def step(self) -> None:
        if self._closed:
            return
        for _ in range(_ACCEPTS):
            evicted = self._clients.to_evict() if self._clients.full else None
            if self._clients.full and evicted is None:
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
            if self._clients.tls is not None:
                try:
                    sock = over_tls(self._clients.tls, sock)
                except OSError:  # reset before it was accepted
                    sock.close()
                    continue
            HttpConnection(self._clients, sock, address[0])
        self._turns.join(self)

    def _wait_for_descriptors(self, failed: OSError) -> None:
        """Drop a connection to free its descriptor, and try again after _DESCRIPTOR_PAUSE."""
        if not self._short:
            log.warning("no HTTP connection can be accepted: %s", failed.strerror)
        self._short = True
        if (evicted := self._clients.to_evict()) is not None:
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


def over_tls(context: ssl.SSLContext, sock: socket.socket) -> socket.socket:
    """The server's side of an accepted connection; the handshake is a part of the first reads. Raises OSError."""
    context.sslsocket_class = _TlsSocket
    return context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)


class _TlsSocket(ssl.SSLSocket):
    """A non-blocking socket that `HttpConnection` takes for one of TCP: a call that TLS cannot complete would block."""

    def recv(self, buflen: int = _RECORD, flags: int = 0) -> bytes:
        # A whole record: of octets that OpenSSL kept back, epoll would know nothing.
        try:
            return super().recv(max(buflen, _RECORD), flags)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def sendmsg(self, buffers: Sequence[Any], *_: Any) -> int:  # type: ignore[override]
        try:
            return self.send(buffers[0])
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def shutdown(self, how: int) -> None:
        with suppress(OSError):  # it waits for the client's
            self.unwrap()  # sends close_notify
        super().shutdown(how)
