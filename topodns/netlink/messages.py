"""netlink(7): framing of messages and attributes, and sockets for requests and for events.

Written here because a library would cost a third of a node cache's memory.
"""

import os
import socket
import struct
from collections.abc import Iterator
from types import TracebackType
from typing import Final, NamedTuple, Self

# Flags of a request (linux/netlink.h)
REQUEST: Final = 0x1
ACK: Final = 0x4
EXCLUSIVE: Final = 0x200
CREATE: Final = 0x400
DUMP: Final = 0x300

_ERROR, _DONE = 2, 3  # NLMSG_ERROR, NLMSG_DONE
_NESTED: Final = 0x8000  # NLA_F_NESTED

_HEADER: Final = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
_ATTRIBUTE: Final = struct.Struct("=HH")  # struct nlattr: length, type

_BUFFER: Final = 1 << 16
_PATIENCE: Final = 2.0  # seconds


class Message(NamedTuple):
    kind: int
    body: bytes


def read_messages(data: bytes) -> Iterator[Message]:
    """The netlink messages in one datagram of the kernel; stops at the first with an invalid length."""
    offset = 0
    while offset + _HEADER.size <= len(data):
        length, kind, *_ = _HEADER.unpack_from(data, offset)
        if length < _HEADER.size:
            return
        yield Message(kind, data[offset + _HEADER.size : offset + length])
        offset += _aligned(length)


def write_message(kind: int, body: bytes, flags: int, sequence: int) -> bytes:
    """The datagram of one request: the header, with NLM_F_REQUEST and these flags, and the body."""
    return _HEADER.pack(_HEADER.size + len(body), kind, REQUEST | flags, sequence, 0) + body


def read_attributes(data: bytes) -> dict[int, bytes]:
    """type without the flag NLA_F_NESTED -> value, of a sequence of attributes; stops at an invalid length.

    Of several with the same type, the last counts.
    """
    found: dict[int, bytes] = {}
    offset = 0
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size:
            break
        found[kind & ~_NESTED] = data[offset + _ATTRIBUTE.size : offset + length]
        offset += _aligned(length)
    return found


def write_attribute(kind: int, value: bytes, nested: bool = False) -> bytes:
    """One attribute with its padding; `nested`: the value consists of attributes."""
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind | _NESTED if nested else kind) + value + bytes(_aligned(length) - length)


def read_text(value: bytes) -> str:
    """The text of an attribute's value, without NUL at its end; invalid UTF-8 is replaced by U+FFFD."""
    return value.rstrip(b"\0").decode(errors="replace")


def _aligned(length: int) -> int:
    return (length + 3) & ~3


class NetlinkSocket:
    """A blocking socket for requests to one netlink family, for instance NETLINK_ROUTE; use it as a context manager.

    The kernel answers at once, but a request may have to wait for a lock of the kernel: at most _PATIENCE seconds.
    """

    def __init__(self, family: int) -> None:
        self._sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family)
        self._sock.settimeout(_PATIENCE)
        self._sequence = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._sock.close()

    def ask(self, kind: int, body: bytes, flags: int = 0) -> Iterator[Message]:
        """Send a request and yield the messages of the reply; exhaust the iterator before the next request.

        With ACK or DUMP in `flags`, the reply ends with an acknowledgement or NLMSG_DONE (not yielded); otherwise it is
        one datagram. Raises OSError with the kernel's error, TimeoutError without a reply.
        """
        self._sequence += 1
        self._sock.send(write_message(kind, body, flags, self._sequence))
        while True:
            for message in read_messages(self._sock.recv(_BUFFER)):
                if message.kind == _ERROR:
                    _raise_refusal(message.body)
                if message.kind in (_ERROR, _DONE):
                    return
                yield message
            if not flags & (ACK | DUMP):
                return


def open_events(family: int, *groups: int) -> socket.socket:
    """A non-blocking socket that receives the events of these multicast groups (numbers from 1, at most 32).

    Raises OSError.
    """
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, family)
    try:
        sock.bind((0, sum(1 << (group - 1) for group in groups)))
    except OSError:
        sock.close()
        raise
    return sock


def _raise_refusal(body: bytes) -> None:
    """Raise the OSError of an NLMSG_ERROR; return if its error is 0, which is an acknowledgement."""
    number = -struct.unpack_from("=i", body)[0]
    if number:
        raise OSError(number, os.strerror(number))
