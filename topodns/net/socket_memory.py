"""Kernel memory of a connected TCP socket: bound it, measure it, discard it. Measured on Linux only, else 0."""

import fcntl
import socket
import struct
import termios
from typing import Final, NamedTuple, Protocol

SEND_BUFFER: Final = 64 << 10
RECEIVE_BUFFER: Final = 16 << 10
"""Buffers of a client's TCP or HTTP connection, in octets: for unacknowledged replies and for unread queries.

The kernel doubles both for its own overhead (socket(7)) and, as they are set, does not autotune them up to some
megabytes each. SEND_BUFFER can be sent in each round trip: 64 MB a second at one millisecond.
"""

_SO_MEMINFO: Final = 55  # asm-generic/socket.h; Linux 4.12
_MEMORY: Final = struct.Struct("=9I")
_RECEIVED, _QUEUED = 0, 5  # SK_MEMINFO_RMEM_ALLOC, SK_MEMINFO_WMEM_QUEUED of linux/sock_diag.h
_COUNT: Final = struct.Struct("=i")
_RESET: Final = struct.pack("ii", 1, 0)  # struct linger


class Socket(Protocol):
    """The socket methods that a transport offers; on uvloop it is not a socket.socket."""

    def fileno(self) -> int: ...

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes: ...

    def setsockopt(self, level: int, option: int, value: bytes | int, /) -> None: ...


def bound_buffers(sock: socket.socket) -> None:
    """Set the buffer sizes on a socket before it listens; connections inherit them and derive their window scale."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)


class Kept(NamedTuple):
    """Octets of kernel memory of a socket, overhead included."""

    received: int = 0  # received, not read
    sent: int = 0  # unsent or unacknowledged


def kernel_memory(sock: Socket) -> Kept:
    """The kernel memory of a connection (SO_MEMINFO); zeros if the kernel does not support it."""
    try:
        words = _MEMORY.unpack(sock.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMORY.size))
    except (OSError, struct.error):
        return Kept()
    return Kept(words[_RECEIVED], words[_QUEUED])


def octets_to_read(sock: Socket) -> int:
    """Received octets that are not read yet (FIONREAD); 0 on error."""
    try:
        return int(_COUNT.unpack(fcntl.ioctl(sock.fileno(), termios.FIONREAD, bytes(_COUNT.size)))[0])
    except OSError:
        return 0


def reset_on_close(sock: Socket) -> None:
    """Make a later close discard queued data, with a reset; else the kernel would go on sending for minutes."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def give_up_after(sock: Socket, seconds: float) -> None:
    """Let the kernel close a connection whose data are not acknowledged for so long (TCP_USER_TIMEOUT of tcp(7))."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))
