"""When a message arrived, by the kernel's timestamp: the time until it is read, on a busy machine, is not in it."""

import socket
import time
from struct import Struct
from typing import Final

_SO_TIMESTAMPNS: Final = 35  # socket(7); as option and as type of control message; the socket module does not have it
_TIMESPEC: Final = Struct("@qq")
_BILLION: Final = 1_000_000_000


def stamping(sock: socket.socket) -> socket.socket:
    """The socket, with the time of arrival on all that it receives."""
    sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    return sock


def receive_stamped(sock: socket.socket) -> tuple[bytes, int]:
    """A message and when it arrived, in nanoseconds of the wall clock; now if the kernel has not stamped it."""
    data, control, _, _ = sock.recvmsg(65535, socket.CMSG_SPACE(_TIMESPEC.size))
    for level, kind, value in control:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
            seconds, nanoseconds = _TIMESPEC.unpack(value)
            return data, seconds * _BILLION + nanoseconds
    return data, time.time_ns()
