"""An upstream that forwards a query back to its sender, as a node's resolver does whose resolv.conf names us."""

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from tests.support.faulty_upstream import Act, Asked
from tests.support.upstream_faults import answers

_PATIENCE: Final = 6.0  # seconds that a query may be on its way


class Relay:
    """A behaviour over UDP: while `to` is an address, that is who gives the answers; else the upstream does."""

    def __init__(self, to: tuple[str, int]) -> None:
        self.to: tuple[str, int] | None = to

    def __call__(self, asked: Asked) -> Sequence[Act]:
        if self.to is None:
            return answers(asked)
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setblocking(False)
        sock.connect(self.to)
        sock.send(asked.message)
        loop = asyncio.get_running_loop()
        loop.add_reader(sock, _pass_back, loop, sock, asked)
        return [Act(lambda: _close(loop, sock), after=_PATIENCE)]


def _pass_back(loop: asyncio.AbstractEventLoop, sock: socket.socket, asked: Asked) -> None:
    with suppress(ConnectionRefusedError):
        asked.channel.send(sock.recv(65535))
    _close(loop, sock)


def _close(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
    if sock.fileno() >= 0:
        loop.remove_reader(sock)
        sock.close()
