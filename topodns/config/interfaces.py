"""The addresses of this machine's network interfaces, for `bind INTERFACE`, by rtnetlink(7)."""

import socket
import struct
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import Final

_ROUTE: Final = 0  # NETLINK_ROUTE
_GET_ADDRESSES: Final = 22  # RTM_GETADDR
_NEW_ADDRESS: Final = 20  # RTM_NEWADDR
_ERROR: Final = 2  # NLMSG_ERROR
_DONE: Final = 3  # NLMSG_DONE
_REQUEST_DUMP: Final = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_ADDRESS: Final = 1  # IFA_ADDRESS: on a point-to-point link the other end's
_LOCAL: Final = 2  # IFA_LOCAL: this end's; absent for IPv6

_MESSAGE: Final = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
_INTERFACE_ADDRESS: Final = struct.Struct("=BBBBI")  # struct ifaddrmsg: family, prefix length, flags, scope, index
_ATTRIBUTE: Final = struct.Struct("=HH")  # struct rtattr: length, type
_DATAGRAM: Final = 65_536
_TIMEOUT: Final = 2.0  # seconds; the kernel answers at once


def addresses_of(interface: str) -> tuple[str, ...] | None:
    """The addresses of an interface, IPv6 link-local ones with `%interface`; None where there is no such interface.

    Raises OSError where the kernel does not tell.
    """
    try:
        index = socket.if_nametoindex(interface)
    except (OSError, ValueError):
        return None
    return tuple(_text(packed, interface) for found, packed in _dump() if found == index)


def own_addresses() -> frozenset[bytes]:
    """The packed addresses of this machine. Raises OSError where the kernel does not tell."""
    return frozenset(packed for _, packed in _dump())


def _text(packed: bytes, interface: str) -> str:
    if len(packed) == 4:
        return str(IPv4Address(packed))
    address = IPv6Address(packed)
    return f"{address}%{interface}" if address.is_link_local else str(address)


def _dump() -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _ROUTE) as kernel:
        kernel.settimeout(_TIMEOUT)
        request = _INTERFACE_ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
        kernel.send(_MESSAGE.pack(_MESSAGE.size + len(request), _GET_ADDRESSES, _REQUEST_DUMP, 1, 0) + request)
        while True:
            for kind, body in read_messages(kernel.recv(_DATAGRAM)):
                if kind == _ERROR:
                    raise OSError(f"rtnetlink error {-struct.unpack_from('=i', body)[0]}")
                if kind == _DONE:
                    return found
                if kind == _NEW_ADDRESS:
                    found.append(read_address(body))


def read_messages(datagram: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and body of each message in one datagram."""
    at = 0
    while at + _MESSAGE.size <= len(datagram):
        length, kind, _, _, _ = _MESSAGE.unpack_from(datagram, at)
        yield kind, datagram[at + _MESSAGE.size : at + length]
        at += max(_aligned(length), _MESSAGE.size)


def read_address(body: bytes) -> tuple[int, bytes]:
    """The interface's index and the packed address of an RTM_NEWADDR message."""
    index: int = _INTERFACE_ADDRESS.unpack_from(body)[4]
    attributes = {}
    at = _INTERFACE_ADDRESS.size
    while at + _ATTRIBUTE.size <= len(body):
        length, kind = _ATTRIBUTE.unpack_from(body, at)
        attributes[kind] = body[at + _ATTRIBUTE.size : at + length]
        at += max(_aligned(length), _ATTRIBUTE.size)
    return index, attributes.get(_LOCAL) or attributes[_ADDRESS]


def _aligned(length: int) -> int:
    return (length + 3) & ~3
