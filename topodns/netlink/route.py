"""rtnetlink(7): requests, changes and events for the links and addresses of this network namespace."""

import errno
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from topodns.netlink.messages import (
    ACK,
    DUMP,
    NetlinkSocket,
    open_events,
    read_attributes,
    read_text,
    write_attribute,
)

IPAddress = IPv4Address | IPv6Address

# Types of messages (linux/rtnetlink.h)
NEW_LINK: Final = 16
DELETE_LINK: Final = 17
GET_LINK: Final = 18
NEW_ADDRESS: Final = 20
DELETE_ADDRESS: Final = 21
GET_ADDRESS: Final = 22

# Multicast groups (linux/rtnetlink.h, RTNLGRP_*)
_LINK_GROUP: Final = 1
_IPV4_ADDRESS_GROUP: Final = 5
_IPV6_ADDRESS_GROUP: Final = 9

_UP: Final = 0x1  # IFF_UP of linux/if.h

_LINK: Final = struct.Struct("=BxHiII")  # struct ifinfomsg: family, type, index, flags, change mask
_ADDRESS: Final = struct.Struct("=BBBBI")  # struct ifaddrmsg: family, prefix length, flags, scope, index

_IFLA_IFNAME, _IFLA_LINKINFO, _IFLA_IFALIAS, _IFLA_INFO_KIND = 3, 18, 20, 1
# IFA_ADDRESS is the address of the other end on a point-to-point link, IFA_LOCAL that of this end; absent for IPv6.
_IFA_ADDRESS, _IFA_LOCAL, _IFA_LABEL, _IFA_FLAGS = 1, 2, 3, 8
_TENTATIVE: Final = 0x40  # IFA_F_TENTATIVE of linux/if_addr.h, among the eight flags that the header has too
_NO_DAD, _NO_PREFIX_ROUTE = 0x02, 0x200  # usable at once; no route for the /128
_SCOPE_HOST: Final = 254  # never chosen as the source address of packets to other hosts


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
    label: str = ""  # of an IPv4 address: the link's name, or that and a colon and a word, as in ip-address(8)
    tentative: bool = False  # not usable yet: duplicate address detection goes on, or has failed (RFC 4862 section 5.4)


def addresses_of(interface: str) -> tuple[str, ...] | None:
    """The addresses of an interface, IPv6 link-local ones with `%interface`, or those with the label `interface`, such
    as `eth0:1`; None if there is no such interface or label.

    Raises OSError if the kernel refuses the request.
    """
    if ":" in interface:  # in no name of an interface; the kernel ignores what follows it in requests by name
        with Rtnetlink() as kernel:
            return tuple(str(each.address) for each in kernel.addresses() if each.label == interface) or None
    try:
        index = socket.if_nametoindex(interface)
    except (OSError, ValueError):
        return None
    with Rtnetlink() as kernel:
        return tuple(_with_scope(each.address, interface) for each in kernel.addresses() if each.index == index)


def is_tentative(host: str) -> bool:
    """Whether an IPv6 address, perhaps with `%interface`, is one of this network namespace that is not usable yet.

    Raises OSError if the kernel refuses the request.
    """
    address, _, interface = host.partition("%")
    wanted, index = ip_address(address), socket.if_nametoindex(interface) if interface else 0
    with Rtnetlink() as kernel:
        found = [each for each in kernel.addresses() if each.address == wanted and index in (0, each.index)]
    return any(each.tentative for each in found)


def own_addresses() -> frozenset[bytes]:
    """The packed addresses of all links of this network namespace. Raises OSError if the kernel refuses the request."""
    with Rtnetlink() as kernel:
        return frozenset(each.address.packed for each in kernel.addresses())


def _with_scope(address: IPAddress, interface: str) -> str:
    return f"{address}%{interface}" if address.version == 6 and address.is_link_local else str(address)


def open_link_events() -> socket.socket:
    """A non-blocking netlink socket that receives an event for every change of a link or an address. Raises OSError."""
    return open_events(socket.NETLINK_ROUTE, _LINK_GROUP, _IPV4_ADDRESS_GROUP, _IPV6_ADDRESS_GROUP)


class Rtnetlink(NetlinkSocket):
    """A blocking rtnetlink socket: a request may have to wait for the kernel's RTNL lock."""

    def __init__(self) -> None:
        super().__init__(socket.NETLINK_ROUTE)

    def change(self, kind: int, body: bytes, flags: int = 0) -> None:
        """Request a change and wait for its acknowledgement. Raises OSError with the kernel's error."""
        for _ in self.ask(kind, body, ACK | flags):
            pass

    def link(self, name: str) -> Link | None:
        """The link of this name; None if there is none. Raises OSError."""
        try:
            found = list(self.ask(GET_LINK, write_link(name=name)))
        except OSError as problem:
            if isinstance(problem, TimeoutError) or problem.errno != errno.ENODEV:
                raise
            return None
        return next((read_link(message.body) for message in found), None)

    def addresses(self) -> Iterator[LinkAddress]:
        """The addresses of all links. Raises OSError."""
        for message in self.ask(GET_ADDRESS, _ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0), DUMP):
            address = read_address(message.body)
            if address is not None:
                yield address


def read_link(body: bytes) -> Link:
    """Parse the body of NEW_LINK or DELETE_LINK."""
    _, _, index, flags, _ = _LINK.unpack_from(body)
    found = read_attributes(body[_LINK.size :])
    info = read_attributes(found.get(_IFLA_LINKINFO, b""))
    name, alias, kind = found.get(_IFLA_IFNAME, b""), found.get(_IFLA_IFALIAS, b""), info.get(_IFLA_INFO_KIND, b"")
    return Link(index, read_text(name), bool(flags & _UP), read_text(kind), read_text(alias))


def read_address(body: bytes) -> LinkAddress | None:
    """Parse the body of NEW_ADDRESS or DELETE_ADDRESS; None for an address that is neither IPv4 nor IPv6."""
    _, _, flags, _, index = _ADDRESS.unpack_from(body)
    found = read_attributes(body[_ADDRESS.size :])
    packed = found.get(_IFA_LOCAL) or found.get(_IFA_ADDRESS, b"")
    if len(packed) not in (4, 16):
        return None
    return LinkAddress(index, ip_address(packed), read_text(found.get(_IFA_LABEL, b"")), bool(flags & _TENTATIVE))


def write_link(index: int = 0, *, name: str = "", kind: str = "", alias: str = "", up: bool = False) -> bytes:
    """The body of a link request: the link by index, or by name if the index is 0, and the attributes to set.

    With `up` the link is set up; otherwise that flag stays as it is.
    """
    flags = _UP if up else 0
    parts = [_LINK.pack(0, 0, index, flags, flags)]
    if name:
        parts.append(write_attribute(_IFLA_IFNAME, name.encode() + b"\0"))
    if alias:
        parts.append(write_attribute(_IFLA_IFALIAS, alias.encode()))
    if kind:
        parts.append(write_attribute(_IFLA_LINKINFO, write_attribute(_IFLA_INFO_KIND, kind.encode()), nested=True))
    return b"".join(parts)


def write_address(index: int, address: IPAddress) -> bytes:
    """The body of an address request for a host address (/32 or /128) of the link with this index."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    scope = _SCOPE_HOST if address.version == 4 else 0  # the scope of an IPv6 address follows from the address
    flags = struct.pack("=I", _NO_DAD | _NO_PREFIX_ROUTE if address.version == 6 else 0)
    parts = [_ADDRESS.pack(family, address.max_prefixlen, 0, scope, index)]
    parts += [write_attribute(kind, address.packed) for kind in (_IFA_LOCAL, _IFA_ADDRESS)]
    parts.append(write_attribute(_IFA_FLAGS, flags))
    return b"".join(parts)
