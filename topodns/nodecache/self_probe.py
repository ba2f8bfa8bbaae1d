"""Self-probe: queries to our own listen addresses, as a client sends them, and whether this instance replies."""

import asyncio
import socket
from collections.abc import Sequence
from enum import Enum, auto
from ipaddress import IPv4Address, IPv6Address
from secrets import token_bytes
from typing import Final

from topodns.dns.name import Name, name_wire
from topodns.dnsserver.handler import PROBE_CLASS

Address = IPv4Address | IPv6Address

TRIES: Final = 8  # if another instance shares the port, probes go to either: in 1 of 256 rounds none to this one

_HEADER: Final = b"\1\0\0\1\0\0\0\0\0\0"
_TXT: Final = b"\0\x10"
_QR, _RCODE = 0x80, 0x0F
_MAX_REPLY: Final = 512


class Heard(Enum):
    """The sender of the reply to a probe."""

    NOTHING = auto()
    ANOTHER = auto()
    US = auto()


class SelfProbe:
    """Queries that only the instance of this name answers with NOERROR."""

    def __init__(self, name: Name, port: int) -> None:
        self._question = _HEADER + name_wire(name) + _TXT + PROBE_CLASS.to_bytes(2, "big")
        self._port = port

    async def hear(self, addresses: Sequence[Address], patience: float, tries: int = 1) -> list[frozenset[Heard]]:
        """The senders of the replies to `tries` queries at each address, over UDP, within `patience` seconds each.

        Timeouts together with replies mean that another instance shares the port and hangs.
        """
        heard = await asyncio.gather(*(self._hear(address, patience) for address in [*addresses] * tries))
        return [frozenset(heard[at :: len(addresses)]) for at in range(len(addresses))]

    async def _hear(self, address: Address, patience: float) -> Heard:
        try:
            async with asyncio.timeout(patience):
                return await self._ask(address)
        except (OSError, TimeoutError):
            return Heard.NOTHING

    async def _ask(self, address: Address) -> Heard:
        loop, ident = asyncio.get_running_loop(), token_bytes(2)
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        with socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
            sock.connect((str(address), self._port))
            sock.send(ident + self._question)
            while True:
                reply = await loop.sock_recv(sock, _MAX_REPLY)
                if reply[:2] == ident and len(reply) > 3 and reply[2] & _QR:
                    return Heard.ANOTHER if reply[3] & _RCODE else Heard.US
