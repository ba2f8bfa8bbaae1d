"""Sockets for queries over UDP: each query has a random source port of its own (RFC 5452 section 9.2).

A socket whose query is answered gives its port back and serves a later query from another port: connect(2) with
AF_UNSPEC dissolves its association, and the next connect binds it to a port chosen at random by the kernel, from
net.ipv4.ip_local_port_range. That takes 3 us, a new socket in the epoll 9.
"""

import asyncio
import ctypes
import select
import socket
from typing import Final

from topodns.net.upstream.address import UdpSockets, UpstreamEndpoint

_KIND: Final = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
_UNSPECIFIED: Final = int(socket.AF_UNSPEC).to_bytes(2, "little").ljust(16, b"\0")  # struct sockaddr
KEPT: Final = 64  # sockets without a query, per upstream; the kernel takes about 1 KiB for each
IDLE: Final = 10.0  # seconds without a query after which they are closed

_connect = ctypes.CDLL(None).connect
_connect.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)


class SourcePorts:
    """The sockets of one upstream's queries over UDP, all in one epoll, which `readable` reports to the caller."""

    def __init__(self, loop: asyncio.AbstractEventLoop, endpoint: UpstreamEndpoint, budget: UdpSockets) -> None:
        self._loop = loop
        self._family, self._peer, self._source = endpoint.family, endpoint.peer, endpoint.source
        self._budget = budget
        self._idle: dict[int, socket.SocketType] = {}  # without a port, by file descriptor
        self._used = False  # since the last look at idle sockets
        self._timer: asyncio.TimerHandle | None = None
        self.epoll = select.epoll()

    def send(self, message: bytes) -> tuple[int, socket.SocketType] | None:
        """Send a message from a random port. Returns its socket, which is connected, after the file descriptor.

        None, without effect, if the budget has no socket left. Raises OSError. The socket belongs to the caller until
        `release` or `close_socket`.
        """
        idle = self._idle
        if idle:
            found = idle.popitem()
            _, sock = found
            self._used = True
            try:
                sock.connect(self._peer)
                sock.send(message)
            except OSError:  # perhaps an ICMP error for its earlier query; a new socket has none
                self.close_socket(sock)
            else:
                return found
        return self._open(message) if self._budget.open < self._budget.most else None

    def _open(self, message: bytes) -> tuple[int, socket.SocketType]:
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
        return descriptor, sock

    def release(self, descriptor: int, sock: socket.SocketType) -> None:
        """Give the socket's port back; it is kept for a later query, or closed if KEPT are or the budget is short."""
        if len(self._idle) >= KEPT or not self._budget.has_spare() or _connect(descriptor, _UNSPECIFIED, 16):
            self.close_socket(sock)
            return
        self._idle[descriptor] = sock
        if self._timer is None:
            self._used = False
            self._timer = self._loop.call_later(IDLE, self._look_at_idle)

    def close_socket(self, sock: socket.SocketType) -> None:
        self._budget.open -= 1
        sock.close()  # also removes it from the epoll

    def close_idle(self, descriptor: int) -> None:
        """Close an idle socket that is readable: a second datagram came before its port was given back.

        Without effect for any other descriptor.
        """
        sock = self._idle.pop(descriptor, None)
        if sock is not None:
            self.close_socket(sock)

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
            self.close_socket(self._idle.popitem()[1])
