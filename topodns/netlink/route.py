"""rtnetlink(7): requests, changes and events for the links and addresses of this network namespace.

Written here because a library would cost a third of a node cache's memory.
"""

import errno
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import TracebackType
from typing import Final, NamedTuple, Self

_ROUTE: Final = 0  # NETLINK_ROUTE
_GET_ADDRESSES: Final = 22  # RTM_GETADDR
_NEW_ADDRESS: Final = 20  # RTM_NEWADDR
_IF_ERROR: Final = 2  # NLMSG_ERROR
_IF_DONE: Final = 3  # NLMSG_DONE
_REQUEST_DUMP: Final = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_IF_ADDRESS: Final = 1  # IFA_ADDRESS: on a point-to-point link the address of the other end
_LOCAL: Final = 2  # IFA_LOCAL: the address of this end; absent for IPv6

_MESSAGE: Final = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
_INTERFACE_ADDRESS: Final = struct.Struct("=BBBBI")  # struct ifaddrmsg: family, prefix length, flags, scope, index
_ATTRIBUTE: Final = struct.Struct("=HH")  # struct rtattr: length, type
_DATAGRAM: Final = 65_536
_TIMEOUT: Final = 2.0  # seconds; the kernel answers at once


def addresses_of(interface: str) -> tuple[str, ...] | None:
    """The addresses of an interface, IPv6 link-local ones with `%interface`; None if there is no such interface.

    Raises OSError if the kernel refuses the request.
    """
    try:
        index = socket.if_nametoindex(interface)
    except (OSError, ValueError):
        return None
    return tuple(_if_text(packed, interface) for found, packed in _dump() if found == index)


def own_addresses() -> frozenset[bytes]:
    """The packed addresses of this machine. Raises OSError if the kernel refuses the request."""
    return frozenset(packed for _, packed in _dump())


def _if_text(packed: bytes, interface: str) -> str:
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
            for kind, body in read_interface_messages(kernel.recv(_DATAGRAM)):
                if kind == _IF_ERROR:
                    raise OSError(f"rtnetlink error {-struct.unpack_from('=i', body)[0]}")
                if kind == _IF_DONE:
                    return found
                if kind == _NEW_ADDRESS:
                    found.append(read_interface_address(body))


def read_interface_messages(datagram: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and body of each message in one datagram."""
    at = 0
    while at + _MESSAGE.size <= len(datagram):
        length, kind, _, _, _ = _MESSAGE.unpack_from(datagram, at)
        yield kind, datagram[at + _MESSAGE.size : at + length]
        at += max(_aligned(length), _MESSAGE.size)


def read_interface_address(body: bytes) -> tuple[int, bytes]:
    """The interface's index and the packed address of an RTM_NEWADDR message."""
    index: int = _INTERFACE_ADDRESS.unpack_from(body)[4]
    attributes = {}
    at = _INTERFACE_ADDRESS.size
    while at + _ATTRIBUTE.size <= len(body):
        length, kind = _ATTRIBUTE.unpack_from(body, at)
        attributes[kind] = body[at + _ATTRIBUTE.size : at + length]
        at += max(_aligned(length), _ATTRIBUTE.size)
    return index, attributes.get(_LOCAL) or attributes[_IF_ADDRESS]


def _aligned(length: int) -> int:
    return (length + 3) & ~3


IPAddress = IPv4Address | IPv6Address

# Types of messages (linux/rtnetlink.h)
NEW_LINK: Final = 16
DELETE_LINK: Final = 17
GET_LINK: Final = 18
NEW_ADDRESS: Final = 20
DELETE_ADDRESS: Final = 21
GET_ADDRESS: Final = 22

# Flags of a request (linux/netlink.h)
REQUEST: Final = 0x1
ACK: Final = 0x4
EXCLUSIVE: Final = 0x200
CREATE: Final = 0x400
DUMP: Final = 0x300

# Multicast groups (linux/rtnetlink.h, RTMGRP_*)
LINK_GROUP: Final = 0x1
IPV4_ADDRESS_GROUP: Final = 0x10
IPV6_ADDRESS_GROUP: Final = 0x100

UP: Final = 0x1  # IFF_UP of linux/if.h

_HEADER: Final = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
_LINK: Final = struct.Struct("=BxHiII")  # struct ifinfomsg: family, type, index, flags, change mask
_ADDRESS: Final = struct.Struct("=BBBBI")  # struct ifaddrmsg: family, prefix length, flags, scope, index

_ERROR, _DONE = 2, 3
_IFLA_IFNAME, _IFLA_LINKINFO, _IFLA_IFALIAS, _IFLA_INFO_KIND = 3, 18, 20, 1
_IFA_ADDRESS, _IFA_LOCAL, _IFA_FLAGS = 1, 2, 8
_NO_DAD, _NO_PREFIX_ROUTE = 0x02, 0x200  # usable at once; no route for the /128
_SCOPE_HOST: Final = 254  # never chosen as the source address of packets to other hosts
_NESTED: Final = 0x8000

_BUFFER: Final = 1 << 16
_PATIENCE: Final = 2.0  # seconds


@dataclass(frozen=True, slots=True)
class Link:
    index: int
    name: str
    up: bool
    kind: str  # e.g. "dummy"; "" for hardware
    alias: str


@dataclass(frozen=True, slots=True)
class LinkAddress:
    index: int  # of the link
    address: IPAddress


class Message(NamedTuple):
    kind: int
    body: bytes


def read_messages(data: bytes) -> Iterator[Message]:
    """Split one datagram of the kernel into its netlink messages; stops at an invalid length."""
    offset = 0
    while offset + _HEADER.size <= len(data):
        length, kind, *_ = _HEADER.unpack_from(data, offset)
        if length < _HEADER.size:
            return
        yield Message(kind, data[offset + _HEADER.size : offset + length])
        offset += _aligned(length)


def read_link(body: bytes) -> Link:
    """Parse the body of NEW_LINK or DELETE_LINK."""
    _, _, index, flags, _ = _LINK.unpack_from(body)
    found = read_attributes(body[_LINK.size :])
    info = read_attributes(found.get(_IFLA_LINKINFO, b""))
    name, alias, kind = found.get(_IFLA_IFNAME, b""), found.get(_IFLA_IFALIAS, b""), info.get(_IFLA_INFO_KIND, b"")
    return Link(index, _text(name), bool(flags & UP), _text(kind), _text(alias))


def read_address(body: bytes) -> LinkAddress | None:
    """Parse the body of NEW_ADDRESS or DELETE_ADDRESS; None for an address that is neither IPv4 nor IPv6."""
    *_, index = _ADDRESS.unpack_from(body)
    found = read_attributes(body[_ADDRESS.size :])
    packed = found.get(_IFA_LOCAL) or found.get(_IFA_ADDRESS, b"")
    return LinkAddress(index, ip_address(packed)) if len(packed) in (4, 16) else None


def write_link(index: int = 0, *, name: str = "", kind: str = "", alias: str = "", up: bool = False) -> bytes:
    """A body that identifies a link by index, or by name if the index is 0, with the attributes to set."""
    flags = UP if up else 0
    parts = [_LINK.pack(0, 0, index, flags, flags)]
    if name:
        parts.append(_attribute(_IFLA_IFNAME, name.encode() + b"\0"))
    if alias:
        parts.append(_attribute(_IFLA_IFALIAS, alias.encode()))
    if kind:
        parts.append(_attribute(_IFLA_LINKINFO | _NESTED, _attribute(_IFLA_INFO_KIND, kind.encode())))
    return b"".join(parts)


def write_address(index: int, address: IPAddress) -> bytes:
    """A body for a host address (/32 or /128) of a link."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    scope = _SCOPE_HOST if address.version == 4 else 0  # the scope of an IPv6 address follows from the address
    parts = [_ADDRESS.pack(family, address.max_prefixlen, 0, scope, index)]
    parts += [_attribute(kind, address.packed) for kind in (_IFA_LOCAL, _IFA_ADDRESS)]
    parts.append(_attribute(_IFA_FLAGS, struct.pack("=I", _NO_DAD | _NO_PREFIX_ROUTE if address.version == 6 else 0)))
    return b"".join(parts)


def _attribute(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + bytes(_aligned(length) - length)


def read_attributes(data: bytes) -> dict[int, bytes]:
    """The attributes of a netlink message, by type, without the flag NLA_F_NESTED."""
    found: dict[int, bytes] = {}
    offset = 0
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size:
            break
        found[kind & ~_NESTED] = data[offset + _ATTRIBUTE.size : offset + length]
        offset += _aligned(length)
    return found


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode(errors="replace")


def open_events() -> socket.socket:
    """A non-blocking netlink socket that receives an event for every change of a link or an address. Raises OSError."""
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE)
    try:
        sock.bind((0, LINK_GROUP | IPV4_ADDRESS_GROUP | IPV6_ADDRESS_GROUP))
    except OSError:
        sock.close()
        raise
    return sock


class Rtnetlink:
    """A blocking rtnetlink socket: a request may have to wait for the kernel's RTNL lock, at most _PATIENCE seconds."""

    def __init__(self) -> None:
        self._sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._sock.settimeout(_PATIENCE)
        self._sequence = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._sock.close()

    def change(self, kind: int, body: bytes, flags: int = 0) -> None:
        """Request a change and wait for its acknowledgement. Raises OSError with the kernel's error."""
        self._ask(kind, body, ACK | flags)

    def link(self, name: str) -> Link | None:
        """The link of this name; None if there is none. Raises OSError."""
        try:
            found = self._ask(GET_LINK, write_link(name=name), 0)
        except OSError as problem:
            if isinstance(problem, TimeoutError) or problem.errno != errno.ENODEV:
                raise
            return None
        return next((read_link(message.body) for message in found), None)

    def addresses(self, index: int) -> set[IPAddress]:
        """The addresses of a link."""
        bodies = (message.body for message in self._ask(GET_ADDRESS, _ADDRESS.pack(0, 0, 0, 0, index), DUMP))
        return {each.address for body in bodies if (each := read_address(body)) and each.index == index}

    def _ask(self, kind: int, body: bytes, flags: int) -> list[Message]:
        self._sequence += 1
        length = _HEADER.size + len(body)
        self._sock.send(_HEADER.pack(length, kind, REQUEST | flags, self._sequence, 0) + body)
        found: list[Message] = []
        while True:
            for message in read_messages(self._sock.recv(_BUFFER)):
                if message.kind == _DONE:
                    return found
                if message.kind == _ERROR:
                    _raise_refusal(message.body)
                    return found
                found.append(message)
            if not flags & (ACK | DUMP):
                return found


def _raise_refusal(body: bytes) -> None:
    """Raise the OSError of an NLMSG_ERROR; error 0 is an acknowledgement."""
    number = -struct.unpack_from("=i", body)[0]
    if number:
        raise OSError(number, os.strerror(number))
