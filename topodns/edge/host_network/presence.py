"""Tells the instances of one node of each other: while a new one takes over, the old one must not tear down.

Each holds an abstract UNIX socket (unix(7)) that ends with its process, however that ends. Such names belong to the
network namespace, so instances in containers of their own see each other where they share the node's network.
"""

import os
import secrets
import socket
from contextlib import suppress
from typing import Final

_TABLE: Final = "/proc/net/unix"


class Presence:
    """Says that this process works on the link of this name, from now on until `end`."""

    def __init__(self, interface: str) -> None:
        self._interface = interface
        self._name = f"{_prefix(interface)}{os.getpid()}-{secrets.token_hex(4)}"
        self._sock: socket.socket | None = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sock.bind(f"\0{self._name}")

    def end(self) -> bool:
        """Say no more, and return whether another instance does. Of two that end at once, one sees nobody."""
        if self._sock is not None:
            self._sock.close()
            self._sock = None
        return others_present(self._interface)


def others_present(interface: str) -> bool:
    """Whether an instance works on the link of this name now."""
    with suppress(OSError), open(_TABLE, encoding="utf-8", errors="replace") as table:
        return any(f" @{_prefix(interface)}" in line for line in table)
    return False


def _prefix(interface: str) -> str:
    return f"topodns-host-network/{interface}/"
