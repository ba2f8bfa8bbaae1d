"""Asking ourselves: which of the addresses that we listen on answer, as a client would see it."""

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address
from secrets import token_bytes
from typing import Final

Address = IPv4Address | IPv6Address

# TXT id.server. in class CH: answered at once with whatever rcode, without a step of any block that could have to wait.
_QUESTION: Final = b"\2id\6server\0\0\x10\0\3"
_HEADER: Final = b"\1\0\0\1\0\0\0\0\0\0"
_MAX_REPLY: Final = 512


async def answering(addresses: Iterable[Address], port: int, patience: float) -> frozenset[Address]:
    """Those that have answered a question over UDP within so many seconds."""
    asked = list(addresses)
    answered = await asyncio.gather(*(_answers(address, port, patience) for address in asked))
    return frozenset(address for address, there in zip(asked, answered, strict=True) if there)


async def _answers(address: Address, port: int, patience: float) -> bool:
    loop, ident = asyncio.get_running_loop(), token_bytes(2)
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
        try:
            sock.connect((str(address), port))
            sock.send(ident + _HEADER + _QUESTION)
            async with asyncio.timeout(patience):
                while True:
                    reply = await loop.sock_recv(sock, _MAX_REPLY)
                    if reply[:2] == ident and len(reply) > len(ident) and reply[2] & 0x80:
                        return True
        except (OSError, TimeoutError):
            return False
