"""Packets to port 53 that arrive in a namespace, as they are on the wire, read beside their receiver (packet(7))."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final, NamedTuple

from tests.support.dns_messages import NODE_IDENTITY
from tests.support.namespaced_node import Namespace

_ETH_P_ALL: Final = 3
_ETH_P_IP, _ETH_P_IPV6 = 0x0800, 0x86DD
_PROTOCOLS: Final = {6: "tcp", 17: "udp"}
_PORT: Final = 53


class Packet(NamedTuple):
    protocol: str  # "udp" or "tcp"
    source: str
    to: str
    payload: bytes  # behind the header of UDP or TCP


@dataclass(slots=True)
class Tapped:
    packets: list[Packet] = field(default_factory=list)

    @property
    def protocols(self) -> set[str]:
        return {packet.protocol for packet in self.packets}

    def claims(self) -> set[str]:
        """The nodes that queries said they came from (EDNS option 65518)."""
        code = struct.pack("!H", NODE_IDENTITY)
        found: set[str] = set()
        for packet in self.packets:
            _, there, rest = packet.payload.partition(code)
            while there:
                size = int.from_bytes(rest[:2], "big")
                found.add(rest[2 : 2 + size].decode(errors="replace"))
                _, there, rest = rest.partition(code)
        return found


@contextmanager
def tapped(where: Namespace) -> Iterator[Tapped]:
    """Everything that came in for port 53 meanwhile; all of it is there when the block has ended."""
    seen = Tapped()
    with where.entered():
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ETH_P_ALL))
    done = threading.Event()

    def read() -> None:
        while True:
            try:
                data, (_, protocol, kind, *_rest) = sock.recvfrom(0xFFFF)
            except TimeoutError:
                if done.is_set():
                    return
                continue
            packet = _read(data, protocol) if kind == socket.PACKET_HOST else None
            if packet is not None:
                seen.packets.append(packet)

    with sock:
        sock.settimeout(0.05)
        thread = threading.Thread(target=read, name="wire tap")
        thread.start()
        try:
            yield seen
        finally:
            done.set()
            thread.join()


def _read(data: bytes, protocol: int) -> Packet | None:
    """None for other ports than 53. No program here makes extension headers of IPv6."""
    if protocol == _ETH_P_IP:
        start, kind, source, to = (data[0] & 15) * 4, data[9], data[12:16], data[16:20]
    elif protocol == _ETH_P_IPV6:
        start, kind, source, to = 40, data[6], data[8:24], data[24:40]
    else:
        return None
    if kind not in _PROTOCOLS or struct.unpack_from("!H", data, start + 2)[0] != _PORT:
        return None
    size = 8 if kind == socket.IPPROTO_UDP else (data[start + 12] >> 4) * 4
    return Packet(_PROTOCOLS[kind], str(ip_address(source)), str(ip_address(to)), data[start + size :])
