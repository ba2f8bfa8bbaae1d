"""The sockets to an API server: ones that notice when the other end is gone."""

import socket
from typing import Final

_IDLE, _EVERY, _PROBES = 15, 5, 3  # seconds, seconds, and how many: a dead peer is noticed within 30 s
_UNACKNOWLEDGED: Final = 30_000  # milliseconds that what was sent may wait for its acknowledgement

AddressInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]]


def open_socket(address: AddressInfo) -> socket.socket:
    """A TCP socket for an address as getaddrinfo gives it.

    A watch may be silent for minutes, so that only the kernel can tell a quiet server from one that has lost power or
    whose packets are dropped. Without these options Linux takes two hours over it, or 15 minutes with data under way
    (kubernetes/kubernetes#95981).
    """
    family, kind, protocol, *_ = address
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _EVERY)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED)
    return sock
