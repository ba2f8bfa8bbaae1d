"""Batched UDP I/O: recvmmsg and sendmmsg of libc through ctypes, or recvmsg and sendmsg if libc lacks them.

No DNS in here. A batch is a row of slots in one block of memory: slot i holds a received datagram and its sender's
address, and the reply overwrites the datagram. So the client's address, the destination address of the query and the
message id are in place for sending without being copied.
"""

import ctypes
import errno
import mmap
import socket
import sys
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import unpack
from typing import Any, Final

SLOTS: Final = 64  # datagrams per wake-up: more would delay TCP and the watch streams
DATAGRAM: Final = 4096  # octets of a slot, for a datagram or a reply; larger ones are dropped

# A slot is the peer's sockaddr, the control message, the datagram, and a gap.
_CONTROL: Final = 32
_DATA: Final = 128
# An odd number of cache lines: with a power of two, all slots would map to the same few sets of the CPU cache.
_STRIDE: Final = 67 * 64
_PORT: Final = 2  # in sockaddr_in and sockaddr_in6 alike

_FULL: Final = frozenset({errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM})
IP_PKTINFO: Final = 8  # linux/in.h; Python names it from 3.12 on
_INTERFACE_V4: Final = 16  # offset of ipi_ifindex (struct in_pktinfo) in the control message
_INTERFACE_V6: Final = 32  # offset of ipi6_ifindex (struct in6_pktinfo)


@dataclass(slots=True)
class DatagramCounts:
    """Counters of one socket since it was opened: datagrams, those that are dropped, and replies that are not sent.

    `dnsserver.handler` decides which messages get no reply because of their content.
    """

    received: int = 0  # all, dropped ones included
    dropped_oversize: int = 0  # queries larger than a slot (DATAGRAM), which the kernel truncates (MSG_TRUNC)
    dropped_port_zero: int = 0  # queries from source port 0, to which no reply can be sent (CVE-2024-2169)
    dropped_full: int = 0  # replies for which the kernel has no memory: the send buffer is full
    failed_sends: int = 0  # replies that the kernel refuses for another reason: no route, a firewall


class _Slots(ABC):
    """The memory of a batch and its layout, for a socket of either address family. The base of each `net.udp.Batch`."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.counts = DatagramCounts()
        self.memory = mmap.mmap(-1, SLOTS * _STRIDE)  # unlike a bytearray, its slices are bytes: no second copy
        self.starts = tuple(range(_DATA, SLOTS * _STRIDE, _STRIDE))  # of the datagrams
        self.max_reply = DATAGRAM  # octets
        self._v6 = sock.family == socket.AF_INET6
        peer, width = (8, 16) if self._v6 else (4, 4)
        self.address_span = (peer - _DATA, peer - _DATA + width)  # of the peer's address, from a datagram's start
        self.ports: Sequence[int] = ()  # source ports of the datagrams received last
        self._has_pktinfo = _reports_destination(sock)

    def fileno(self) -> int:
        return self.sock.fileno()

    def close(self) -> None:
        self.sock.close()

    @abstractmethod
    def send(self, lengths: Sequence[int]) -> None:
        """Send the first `lengths[i]` octets of slot i to the sender of its datagram; nothing if the length is 0."""

    @abstractmethod
    def peer(self, slot: int) -> object:
        """The sender and destination address of the datagram in this slot: for `send_to`, at any later time."""

    def send_to(self, replies: Sequence[tuple[object, bytes]]) -> None:
        """Send each reply, of at most DATAGRAM octets, to its peer (a value of `peer`). Overwrites the slots."""
        for first in range(0, len(replies), SLOTS):
            self.send(self._put(replies[first : first + SLOTS]))

    @abstractmethod
    def _put(self, replies: Sequence[tuple[Any, bytes]]) -> list[int]:
        """Write replies and the addresses of their peers into the first slots. Returns the replies' lengths."""


class PlainBatch(_Slots):
    """A batch with one system call per datagram, for a libc without recvmmsg and sendmmsg."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._view = memoryview(self.memory)
        self._control_size = socket.CMSG_SPACE(20) if self._has_pktinfo else 0  # struct in6_pktinfo is the larger one
        self._peers: list[Any] = [None] * SLOTS
        self._controls: list[Any] = [()] * SLOTS

    def receive(self) -> list[int]:
        """Receive into the first slots. Returns the datagrams' sizes, 0 for a dropped one; empty if there are none."""
        received: list[tuple[int, int, int]] = []
        while len(received) < SLOTS:
            try:
                received.append(self._receive_one(len(received)))
            except OSError:
                break  # nothing left, or an ICMP error for an earlier reply, which is ignored
        self.counts.received += len(received)
        sizes = [size for size, _, _ in received]
        drop_oversize(self.counts, sizes, [flags for _, flags, _ in received])
        self.ports = [port for _, _, port in received]
        drop_port_zero(self.counts, sizes, self.ports)
        return sizes

    def _receive_one(self, slot: int) -> tuple[int, int, int]:
        """Receive into this slot. Returns the datagram's size, flags and source port. Raises OSError."""
        start = self.starts[slot]
        buffer = self._view[start : start + DATAGRAM]
        size, controls, flags, peer = self.sock.recvmsg_into([buffer], self._control_size, socket.MSG_DONTWAIT)
        first, last = self.address_span
        self.memory[start + first : start + last] = socket.inet_pton(self.sock.family, peer[0].partition("%")[0])
        self._peers[slot] = peer
        self._controls[slot] = [(level, kind, _any_interface(level, data)) for level, kind, data in controls]
        return size, flags, peer[1]

    def peer(self, slot: int) -> tuple[Any, Any]:
        return self._peers[slot], self._controls[slot]

    def _put(self, replies: Sequence[tuple[Any, bytes]]) -> list[int]:
        for slot, (peer, reply) in enumerate(replies):
            self._peers[slot], self._controls[slot] = peer
            start = self.starts[slot]
            self.memory[start : start + len(reply)] = reply
        return [len(reply) for _, reply in replies]

    def send(self, lengths: Sequence[int]) -> None:
        for slot, length in enumerate(lengths):
            if length:
                self._send_one(slot, length)

    def _send_one(self, slot: int, length: int) -> None:
        start = self.starts[slot]
        reply = self._view[start : start + length]
        try:
            self.sock.sendmsg([reply], self._controls[slot], socket.MSG_DONTWAIT, self._peers[slot])
        except OSError as refused:
            drop_replies(self.counts, refused.errno, 1)


class _Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Msghdr(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("iov", ctypes.c_void_p),
        ("iov_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _Mmsghdr(ctypes.Structure):
    """struct mmsghdr of recvmmsg(2)."""

    _fields_ = (("message", _Msghdr), ("length", ctypes.c_uint))


class _Vector:
    """An array of struct mmsghdr, one for each slot, and their iovecs."""

    def __init__(self, slots: _Slots, v6: bool, has_pktinfo: bool) -> None:
        self._iovecs = (_Iovec * SLOTS)()
        self.headers = bytearray(SLOTS * ctypes.sizeof(_Mmsghdr))
        self._structs = (_Mmsghdr * SLOTS).from_buffer(self.headers)
        self.address = ctypes.addressof(self._structs)
        memory = ctypes.addressof(ctypes.c_char.from_buffer(slots.memory))
        for slot, element in enumerate(self._structs):
            header = element.message
            base = memory + slot * _STRIDE
            self._iovecs[slot] = _Iovec(base + _DATA, DATAGRAM)
            header.name, header.name_length = base, 28 if v6 else 16
            header.iov, header.iov_count = ctypes.addressof(self._iovecs[slot]), 1
            if has_pktinfo:
                header.control, header.control_length = base + _CONTROL, socket.CMSG_SPACE(20 if v6 else 12)
        self.lengths = memoryview(self._iovecs).cast("B").cast("Q")[1::2]  # iov_len of each iovec


class MmsgBatch(_Slots):
    """A batch received with one system call, and sent with one for each run of replies (`_runs`).

    That saves a third of the whole cost of a query.
    """

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._fd = sock.fileno()
        self._inbound = _Vector(self, self._v6, self._has_pktinfo)
        self._outbound = _Vector(self, self._v6, self._has_pktinfo)
        self._pristine = bytes(self._inbound.headers)
        self._headers = memoryview(self._inbound.headers)
        words, width = self._headers.cast("I"), ctypes.sizeof(_Mmsghdr) // 4
        self._sizes = words[_Mmsghdr.length.offset // 4 :: width]
        self._flags = words[(_Mmsghdr.message.offset + _Msghdr.flags.offset) // 4 :: width]
        memory = memoryview(self.memory)
        self._ports = memory.cast("H")[_PORT // 2 :: _STRIDE // 2]  # in network byte order
        interface = _CONTROL + (_INTERFACE_V6 if self._v6 else _INTERFACE_V4)
        self._interfaces = memory.cast("I")[interface // 4 :: _STRIDE // 4]
        self._any_interface = memoryview(array("I", [0] * SLOTS))

    def receive(self) -> list[int]:
        """Receive into the first slots. Returns the datagrams' sizes, 0 for a dropped one; empty if there are none."""
        count = _recvmmsg(self._fd, self._inbound.address, SLOTS, socket.MSG_DONTWAIT, None)
        if count <= 0:
            return []  # no datagram, or an ICMP error for an earlier reply, which is ignored
        self.counts.received += count
        sizes = self._sizes[:count].tolist()
        flags = self._flags[:count].tolist()
        ports = self.ports = unpack(f"!{count}H", self._ports[:count].tobytes())
        if any(flags):
            drop_oversize(self.counts, sizes, flags)
        if 0 in ports:
            drop_port_zero(self.counts, sizes, ports)
        if self._has_pktinfo:
            # The reply leaves from the query's destination address; index 0 lets routing choose the interface.
            self._interfaces[:count] = self._any_interface[:count]
        used = count * ctypes.sizeof(_Mmsghdr)
        self._headers[:used] = self._pristine[:used]
        return sizes

    def peer(self, slot: int) -> bytes:
        start = self.starts[slot]
        return self.memory[start - _DATA : start]

    def _put(self, replies: Sequence[tuple[Any, bytes]]) -> list[int]:
        memory, lengths = self.memory, []
        for start, (peer, reply) in zip(self.starts, replies, strict=False):
            length = len(reply)
            memory[start - _DATA : start + length] = peer + reply
            lengths.append(length)
        return lengths

    def send(self, lengths: Sequence[int]) -> None:
        self._outbound.lengths[: len(lengths)] = array("Q", lengths)
        for first, count in _runs(lengths):
            self._send_run(first, count)

    def _send_run(self, first: int, count: int) -> None:
        while count > 0:
            at = self._outbound.address + first * ctypes.sizeof(_Mmsghdr)
            sent = _sendmmsg(self._fd, at, count, socket.MSG_DONTWAIT)
            if sent <= 0:
                sent = drop_replies(self.counts, ctypes.get_errno(), count)
            first += sent
            count -= sent


def open_batch(sock: socket.socket) -> PlainBatch | MmsgBatch:
    """The fastest batch available here for a bound UDP socket, which becomes non-blocking."""
    return MmsgBatch(sock) if MMSG_AVAILABLE else PlainBatch(sock)


def drop_oversize(counts: DatagramCounts, sizes: list[int], flags: Sequence[int]) -> None:
    """Set the sizes of truncated datagrams to 0 and count them. `flags`: `msg_flags` of each datagram (recvmsg(2))."""
    for slot, each in enumerate(flags):
        if each & socket.MSG_TRUNC:
            sizes[slot] = 0
            counts.dropped_oversize += 1


def drop_port_zero(counts: DatagramCounts, sizes: list[int], ports: Sequence[int]) -> None:
    """Set the sizes of datagrams from source port 0 to 0 and count them. `ports`: the source port of each datagram."""
    for slot, port in enumerate(ports):
        if port == 0:
            sizes[slot] = 0
            counts.dropped_port_zero += 1


def drop_replies(counts: DatagramCounts, error: int | None, waiting: int) -> int:
    """Count a failed send. Returns how many replies to skip: all `waiting` if the send buffer is full, else one.

    `error`: the errno of the first of the `waiting` replies.
    """
    if error in _FULL:
        counts.dropped_full += waiting
        return waiting
    counts.failed_sends += 1
    return 1


def _runs(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(first index, number of slots) of each run of slots with a reply to send: those whose length is not 0."""
    if 0 not in lengths:
        yield 0, len(lengths)
        return
    first = 0
    for slot, length in enumerate((*lengths, 0)):
        if not length:
            if slot > first:
                yield first, slot - first
            first = slot + 1


def _reports_destination(sock: socket.socket) -> bool:
    if sock.family == socket.AF_INET6:
        return sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO) != 0
    return sock.getsockopt(socket.IPPROTO_IP, IP_PKTINFO) != 0


def _any_interface(level: int, data: bytes) -> bytes:
    """The pktinfo with interface index 0, so that routing chooses the interface of the reply."""
    return data[:16] + bytes(4) if level == socket.IPPROTO_IPV6 else bytes(4) + data[4:]


_libc = ctypes.CDLL(None, use_errno=True)

# The structures above have the layout of 64-bit Linux.
MMSG_AVAILABLE: Final = (
    sys.platform == "linux"
    and ctypes.sizeof(_Mmsghdr) == 64
    and hasattr(_libc, "recvmmsg")
    and hasattr(_libc, "sendmmsg")
)

if MMSG_AVAILABLE:
    _recvmmsg = _libc.recvmmsg
    _recvmmsg.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_void_p)
    _sendmmsg = _libc.sendmmsg
    _sendmmsg.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int)
