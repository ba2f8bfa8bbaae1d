"""Ports that instances of the program share (SO_REUSEPORT, socket(7)), and how one of them leaves without a loss.

The kernel gives each datagram and each connection to one socket of the group. What is queued in a socket that closes
is lost, whoever else shares its port; so who leaves first sees to it that nothing new comes, and then reads what did.
"""

import ctypes
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol

from topodns.dns.names import Name

SETTLE: Final = 0.05  # seconds for handshakes that began before: they end within one way there and back on this node

_SO_ATTACH_REUSEPORT_CBPF: Final = 51  # asm-generic/socket.h
_RETURN: Final = 0x06  # BPF_RET | BPF_K of linux/filter.h
_DISCARD: Final = {socket.AF_INET: ("127.0.0.1", 9), socket.AF_INET6: ("::1", 9)}  # RFC 863

_instruction = struct.Struct("HBBI")  # struct sock_filter
_program = struct.Struct("HP")  # struct sock_fprog


class Sharing(Enum):
    """How a socket is bound."""

    ALONE = auto()  # nobody else can have the port
    FIRST = auto()  # nobody else may have it yet; others can join later
    JOINED = auto()  # others may have it


class Binding(NamedTuple):
    """How a socket gets its address."""

    sharing: Sharing = Sharing.ALONE
    free: bool = False  # also while this machine does not have the address (IP_FREEBIND, ip(7))


class Company(Protocol):
    """The other instances of the program in this network."""

    def others(self) -> bool:
        """Whether there are any, serving or about to."""

    def successor(self) -> int | None:
        """Which socket of each group stays, counted in the order in which they were bound; None: no other serves."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One of several that share their ports. `name` is the question by which it alone is known: to its own probe."""

    name: Name
    company: Company
    addresses: frozenset[str]  # that it brings to this machine itself, and brings back

    def binding(self, host: str) -> Binding:
        """How to open a port of this address now."""
        sharing = Sharing.JOINED if self.company.others() else Sharing.FIRST
        return Binding(sharing, host in self.addresses)


def leave_group(sock: socket.socket, stays: int) -> None:
    """Nothing new comes to this bound socket from now on; what is on its way comes within SETTLE.

    Where the kernel refuses, all goes on as it was, and some of what comes last is lost.
    """
    with suppress(OSError):
        if sock.type == socket.SOCK_DGRAM:
            # A connected socket only gets what its peer sends; `sendto` still goes anywhere (udp(7)).
            sock.connect(_DISCARD[sock.family])
        else:
            _choose(sock, stays)


def _choose(sock: socket.socket, place: int) -> None:
    """All connections to the one that was bound as number `place`, as long as there are so many; else to any."""
    code = ctypes.create_string_buffer(_instruction.pack(_RETURN, 0, 0, place))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_REUSEPORT_CBPF, _program.pack(1, ctypes.addressof(code)))
