"""Tells the instances of one node of each other: while a new one takes over, the old one must not tear down.

Each holds abstract UNIX sockets (unix(7)) that end with its process, however that ends. Such names belong to the
network namespace, so instances in containers of their own see each other where they share the node's network.
"""

import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

_TABLE: Final = "/proc/net/unix"
_HERE, _SERVES = "here", "serves"


class Presence:
    """Says that this process works on the link of this name, from now on until `end`. A `Company` of its instance."""

    def __init__(self, interface: str) -> None:
        self._interface = interface
        # Names sort by age, whatever process ids are used again.
        born = f"{time.clock_gettime_ns(time.CLOCK_BOOTTIME):020d}"
        self._name = f"{born}-{os.getpid()}-{secrets.token_hex(4)}"
        self._socks: list[socket.socket] = []
        self._announced = False
        self._say(_HERE)

    def announce(self) -> None:
        """It serves: another instance may leave everything to it. Once is enough."""
        if self._socks and not self._announced:
            self._announced = True
            self._say(_SERVES)

    def others(self) -> bool:
        """Whether another instance works on the link, serving or about to."""
        return any(name != self._name for name, _ in _present(self._interface))

    def successor(self) -> int | None:
        """0 where another instance that serves is older than this one, 1 where only younger ones do, else None."""
        serving = [name for name, state in _present(self._interface) if state == _SERVES and name != self._name]
        return int(min(serving) > self._name) if serving else None

    def end(self) -> bool:
        """Say no more, and return whether another instance serves. Of two that end at once, one sees nobody."""
        while self._socks:
            self._socks.pop().close()
        return self.successor() is not None

    def _say(self, state: str) -> None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socks.append(sock)
        sock.bind(f"\0{_prefix(self._interface)}{self._name}/{state}")


def others_serve(interface: str) -> bool:
    """Whether an instance serves on the link of this name now; for a process that is none itself."""
    return any(state == _SERVES for _, state in _present(interface))


def _present(interface: str) -> Iterator[tuple[str, str]]:
    """The names of the instances of this link, each with what it says."""
    prefix = f"@{_prefix(interface)}"
    with suppress(OSError), open(_TABLE, encoding="utf-8", errors="replace") as table:
        for line in table:
            _, found, told = line.rstrip("\n").partition(prefix)
            name, slash, state = told.partition("/")
            if found and slash:
                yield name, state


def _prefix(interface: str) -> str:
    return f"topodns-host-network/{interface}/"
