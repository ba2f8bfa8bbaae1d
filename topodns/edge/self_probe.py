"""Asking ourselves: which of the addresses that we listen on answer, as a client would see it, and that it is us."""

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address
from secrets import token_bytes
from typing import Final

from topodns.dns.names import Name, name_wire
from topodns.resolve.handler import PROBE_CLASS

Address = IPv4Address | IPv6Address

TRIES: Final = 8  # where another instance shares the port, each goes to one of the two: 1 in 256 rounds none to us

_HEADER: Final = b"\1\0\0\1\0\0\0\0\0\0"
_TXT: Final = b"\0\x10"
_QR, _RCODE = 0x80, 0x0F
_MAX_REPLY: Final = 512


class SelfProbe:
    """Questions that only the instance of this name answers with NOERROR."""

    def __init__(self, name: Name, port: int) -> None:
        self._question = _HEADER + name_wire(name) + _TXT + PROBE_CLASS.to_bytes(2, "big")
        self._port = port

    async def answered(self, addresses: Iterable[Address], patience: float, tries: int = 1) -> bool:
        """Whether we have answered at one of the addresses, over UDP, within so many seconds."""
        asking = [asyncio.create_task(self._answers(address)) for address in addresses for _ in range(tries)]
        try:
            async with asyncio.timeout(patience):
                for answer in asyncio.as_completed(asking):
                    if await answer:
                        return True
        except TimeoutError:
            pass
        finally:
            for question in asking:
                question.cancel()
        return False

    async def _answers(self, address: Address) -> bool:
        loop, ident = asyncio.get_running_loop(), token_bytes(2)
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        with socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
            try:
                sock.connect((str(address), self._port))
                sock.send(ident + self._question)
                while True:
                    reply = await loop.sock_recv(sock, _MAX_REPLY)
                    if reply[:2] == ident and len(reply) > 3 and reply[2] & _QR:
                        return not reply[3] & _RCODE
            except OSError:
                return False
