"""The kernel's memory for a process's TCP connections, by sock_diag(7): no root, and no other test's sockets in it."""

import socket
import struct
from collections.abc import Iterator
from typing import Final

_NETLINK_SOCK_DIAG: Final = 4  # linux/netlink.h
_SOCK_DIAG_BY_FAMILY: Final = 20  # linux/sock_diag.h
_REQUEST: Final = 0x001 | 0x300  # linux/netlink.h: NLM_F_REQUEST, NLM_F_DUMP
_ERROR, _DONE = 2, 3  # linux/netlink.h
_MEMORY: Final = 7  # linux/inet_diag.h: INET_DIAG_SKMEMINFO
_CONNECTED: Final = 0xFFF & ~(1 << 10)  # states: all but TCP_LISTEN
_HEADER: Final = struct.Struct("=IHHII")
_MESSAGE_SIZE: Final = 72  # struct inet_diag_msg
_ATTRIBUTE: Final = struct.Struct("=HH")
_PAGE: Final = 1 << 16


def kernel_octets(address: str, port: int) -> int:
    """Octets that the kernel has allocated for the queues, both ways, of IPv4 connections from this local address.

    Orphans, which no process has any more, are among them.
    """
    local = struct.pack("!H", port), socket.inet_aton(address)
    return sum(
        received + queued
        for message in _dump()
        if (message[4:6], message[8:12]) == local
        for received, queued in _memory(message)
    )


def _dump() -> Iterator[bytes]:
    """A struct inet_diag_msg with its attributes for each connection of this network namespace."""
    request = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 1 << (_MEMORY - 1), 0, _CONNECTED) + bytes(48)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as sock:
        sock.send(_HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST, 1, 0) + request)
        while True:
            data = sock.recv(_PAGE)
            while data:
                size, kind, *_ = _HEADER.unpack_from(data)
                assert kind != _ERROR, "the kernel refuses to tell of its sockets"
                if kind == _DONE:
                    return
                yield data[_HEADER.size : size]
                data = data[(size + 3) & ~3 :]


def _memory(message: bytes) -> Iterator[tuple[int, int]]:
    """Octets received, and octets queued to be sent: sk_rmem_alloc and sk_wmem_queued."""
    at = _MESSAGE_SIZE
    while at + _ATTRIBUTE.size <= len(message):
        size, kind = _ATTRIBUTE.unpack_from(message, at)
        if kind == _MEMORY:
            words = struct.unpack_from("=8I", message, at + _ATTRIBUTE.size)
            yield words[0], words[5]
        at += (size + 3) & ~3
