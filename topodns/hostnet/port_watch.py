"""Detects sockets of other processes that receive DNS at the listen addresses: other instances, or foreign ones.

A process with our user id (root in the chart; a Pod with hostNetwork may have one) can join a port that we share
(SO_REUSEPORT, socket(7)), and the kernel then gives it a part of the queries. This cannot be prevented, only detected.

sock_diag(7) lists the sockets, which the kernel filters (INET_DIAG_REQ_BYTECODE of linux/inet_diag.h): the reply has
only those that are bound to the given addresses and port, however many others exist. Each call opens one socket.
"""

import logging
import socket
import struct
from collections.abc import Iterable
from itertools import islice
from typing import Final, NamedTuple

from topodns.hostnet.instances import InstanceRegistry
from topodns.hostnet.rules import HostNetwork
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


log = logging.getLogger(__name__)


INSTANCE: Final = "instance"  # announced by another instance over a connection of our own user
FOREIGN: Final = "foreign"


class PortWatch:
    """Counts the sockets of other processes that receive DNS at the listen addresses.

    Call `list_sockets` in a worker thread (some 100 us in the kernel), then `update` in the event loop.
    """

    def __init__(self, network: HostNetwork, instance_registry: InstanceRegistry) -> None:
        self._network, self._instance_registry = network, instance_registry
        self._unknown: frozenset[int] = frozenset()  # inodes found by the previous `update`
        self._foreign: frozenset[int] = frozenset()
        self._is_unsupported = False
        self.counts: dict[str, int] | None = None  # sockets by INSTANCE and FOREIGN; None: not known

    def list_sockets(self) -> list[BoundSocket] | None:
        """All sockets at the listen addresses, ours too; None if the kernel cannot list them, which is logged once."""
        try:
            return sockets_at(self._network.local_addresses, self._network.port)
        except OSError as problem:
            if not self._is_unsupported:
                log.warning("cannot find out whether other programs share the port of DNS: %s", problem)
            self._is_unsupported = True
            return None

    def is_taken(self, found: Iterable[BoundSocket] | None) -> bool:
        """Whether `list_sockets` found a socket that is not our own; True if unknown (None)."""
        return found is None or not self._instance_registry.own_sockets().issuperset(each.inode for each in found)

    def update(self, found: Iterable[BoundSocket] | None) -> None:
        """Set `counts` from the result of `list_sockets`, and log new foreign sockets.

        A socket that no instance has announced counts as foreign from the second update in a row that finds it, since
        an instance opens its sockets a moment before it announces them; at the first one it is not counted.
        """
        if found is None:
            self.counts = None
            return
        others = [each for each in found if each.inode not in self._instance_registry.own_sockets()]
        instances = self._instance_registry.others_sockets()
        unknown = [each for each in others if each.inode not in instances]
        foreign = [each for each in unknown if each.inode in self._unknown]
        self._unknown = frozenset(each.inode for each in unknown)
        self.counts = {INSTANCE: len(others) - len(unknown), FOREIGN: len(foreign)}
        self._log_changes(foreign)

    def _log_changes(self, foreign: list[BoundSocket]) -> None:
        before, self._foreign = self._foreign, frozenset(each.inode for each in foreign)
        for each in foreign:
            if each.inode not in before:
                log.warning(
                    "another program takes a part of the questions to %s port %d: a %s socket of user %d, inode %d",
                    each.address, self._network.port, each.protocol, each.uid, each.inode,
                )  # fmt: skip
        if before and not foreign:
            log.info("no other program takes questions to the listen addresses any more")
