"""Ports shared by instances of the program (SO_REUSEPORT, socket(7)), and how one stops without losing queries.

The kernel gives each datagram and each connection to one socket of the group. Queries queued in a socket are lost when
it closes, although other sockets share its port; so an instance that stops first keeps new ones from arriving, and
then reads its queue.
"""

import ctypes
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol

from topodns.dns.name import Name

SETTLE: Final = 0.05  # seconds for TCP handshakes that have begun: they end within one round trip on this node

_SO_ATTACH_REUSEPORT_CBPF: Final = 51  # asm-generic/socket.h
_SO_DETACH_REUSEPORT_BPF: Final = 68
_RETURN: Final = 0x06  # BPF_RET | BPF_K of linux/filter.h
_DISCARD: Final = {socket.AF_INET: ("127.0.0.1", 9), socket.AF_INET6: ("::1", 9)}  # RFC 863

_instruction = struct.Struct("HBBI")  # struct sock_filter
_program = struct.Struct("HP")  # struct sock_fprog


class Sharing(Enum):
    """Whether a socket shares its port (SO_REUSEPORT): never, with sockets bound later, or also with earlier ones."""

    ALONE = auto()  # never shared
    FIRST = auto()  # bind fails if the port is in use; other sockets can join later
    JOINED = auto()  # other sockets may have the port already


class Binding(NamedTuple):
    """Options with which a socket is bound."""

    sharing: Sharing = Sharing.ALONE
    free: bool = False  # bind even while this machine does not have the address (IP_FREEBIND, ip(7))


class OtherInstances(Protocol):
    """The other instances of the program in this network namespace (`hostnet.instances.InstanceRegistry`)."""

    def others(self) -> bool:
        """Whether any other instance exists at this time, serving or starting."""

    def opened(self, sockets: Iterable[socket.socket]) -> None:
        """Add listening sockets of this instance, so that the other instances know them."""

    def successor(self) -> int | None:
        """The index, in the order of bind, of the other instance's socket in each group of sockets that share a port.

        None if no other instance serves.
        """


@dataclass(frozen=True, slots=True)
class Instance:
    """One of several instances that share ports. `name`: the query name that only this instance answers, for its own
    probe; None: it has none.
    """

    name: Name | None
    peers: OtherInstances
    addresses: frozenset[str]  # that the instance itself adds to this machine, and adds again if removed

    def binding(self, host: str) -> Binding:
        """The binding for a socket at this address: JOINED if other instances exist now, else FIRST.

        `free` if the address is one of `addresses`.
        """
        sharing = Sharing.JOINED if self.peers.others() else Sharing.FIRST
        return Binding(sharing, host in self.addresses)


class _FirstProcess:
    """The process whose ports a worker of `multisocket` shares: it has bound each of them first."""

    def others(self) -> bool:
        return True

    def opened(self, sockets: Iterable[socket.socket]) -> None:
        """Nothing: the processes know of each other."""

    def successor(self) -> int:
        return 0


FIRST_PROCESS: Final = Instance(None, _FirstProcess(), frozenset())
"""For a worker of `multisocket`: at its end, new queries go to the first process."""


def share(sockets: Iterable[socket.socket]) -> None:
    """Let other processes of this user join the ports of these bound sockets from now on."""
    for sock in sockets:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


def take_all_again(sockets: Iterable[socket.socket]) -> None:
    """Undo `leave_group` for the groups of these sockets: the kernel chooses among all that are left."""
    for sock in sockets:
        with suppress(OSError):  # nothing to undo
            sock.setsockopt(socket.SOL_SOCKET, _SO_DETACH_REUSEPORT_BPF, 0)


def leave_group(sock: socket.socket, stays: int) -> None:
    """Stop new datagrams or connections to this bound socket; those under way arrive within SETTLE.

    `stays`: the index, in the order of bind, of the socket that stays in the group (TCP only). If the kernel refuses,
    nothing changes, and the last queries may be lost.
    """
    with suppress(OSError):
        if sock.type == socket.SOCK_DGRAM:
            # A connected socket only receives from its peer; `sendto` still reaches any address (udp(7)).
            sock.connect(_DISCARD[sock.family])
        else:
            _choose(sock, stays)


def _choose(sock: socket.socket, place: int) -> None:
    """Make the kernel give all new connections of the socket's group to the one with index `place` in bind order.

    To any of the group if it has fewer sockets.
    """
    code = ctypes.create_string_buffer(_instruction.pack(_RETURN, 0, 0, place))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_REUSEPORT_CBPF, _program.pack(1, ctypes.addressof(code)))
