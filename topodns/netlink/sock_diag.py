"""sock_diag(7): the UDP and TCP sockets of this network namespace that are bound to given addresses and one port.

The kernel filters (INET_DIAG_REQ_BYTECODE of linux/inet_diag.h), so the reply has only these sockets, however many
others exist. Each call opens one netlink socket.
"""

import socket
import struct
from collections.abc import Iterable
from itertools import islice
from typing import Final, NamedTuple

from topodns.netlink.messages import DUMP, NetlinkSocket, write_attribute
from topodns.netlink.route import IPAddress

MOST: Final = 64  # sockets at most that are read for one address, family and protocol

_SOCK_DIAG: Final = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY: Final = 20  # SOCK_DIAG_BY_FAMILY of linux/sock_diag.h
_PROTOCOLS: Final = {  # and the states of a socket without a peer: 1 << TCP_CLOSE (unconnected UDP), 1 << TCP_LISTEN
    "udp": (socket.IPPROTO_UDP, 1 << 7),
    "tcp": (socket.IPPROTO_TCP, 1 << 10),
}

_REQUEST: Final = struct.Struct("=BBBxI48x")  # struct inet_diag_req_v2: family, protocol, extensions, states, sockid
_OPERATION: Final = struct.Struct("=BBH")  # struct inet_diag_bc_op: code, offset to jump to if true, and if false
_HOST: Final = struct.Struct("=BBxxi")  # struct inet_diag_hostcond: family, prefix length, port
_FOUND: Final = struct.Struct("=4x48x12xII")  # struct inet_diag_msg: uid, inode

_BYTECODE, _SOURCE_IS = 1, 7  # INET_DIAG_REQ_BYTECODE, INET_DIAG_BC_S_COND


class BoundSocket(NamedTuple):
    """A socket that receives datagrams or connections at an address. `uid`: the user who created it."""

    protocol: str  # "udp" or "tcp"
    address: IPAddress
    uid: int
    inode: int


def sockets_at(addresses: Iterable[IPAddress], port: int) -> list[BoundSocket]:
    """The sockets bound to one of these addresses (not the wildcard) and this port, without a peer.

    For UDP, unconnected ones; for TCP, listening ones; of each address, family and protocol, MOST at most. Raises
    OSError if the kernel lacks sock_diag (CONFIG_INET_DIAG, CONFIG_INET_UDP_DIAG).
    """
    return [
        BoundSocket(protocol, address, uid, inode)
        for address in addresses
        for family in _families(address)
        for protocol in _PROTOCOLS
        for uid, inode in _dump(write_request(family, protocol, address, port))
    ]


def _families(address: IPAddress) -> tuple[socket.AddressFamily, ...]:
    """The socket families to query: an IPv6 socket may have an IPv4-mapped address (RFC 4291 section 2.5.5.2)."""
    return (socket.AF_INET, socket.AF_INET6) if address.version == 4 else (socket.AF_INET6,)


def write_request(family: socket.AddressFamily, protocol: str, address: IPAddress, port: int) -> bytes:
    """The body of a dump request for the sockets of a family and protocol with this local address and port."""
    number, states = _PROTOCOLS[protocol]
    wanted = socket.AF_INET if address.version == 4 else socket.AF_INET6
    condition = _HOST.pack(wanted, address.max_prefixlen, port) + address.packed
    length = _OPERATION.size + len(condition)
    code = _OPERATION.pack(_SOURCE_IS, length, length + 4) + condition  # a jump beyond the end rejects the socket
    return _REQUEST.pack(family, number, 0, states) + write_attribute(_BYTECODE, code)


def _dump(request: bytes) -> list[tuple[int, int]]:
    with NetlinkSocket(_SOCK_DIAG) as kernel:
        found = islice(kernel.ask(_BY_FAMILY, request, DUMP), MOST)
        return [_FOUND.unpack_from(message.body) for message in found]
