"""Tells within a turn of the loop that the link or one of its addresses went away (rtnetlink(7), multicast groups)."""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable
from typing import Final

from topodns.edge.host_network.plan import HostNetwork
from topodns.edge.host_network.rtnetlink import (
    DELETE_ADDRESS,
    DELETE_LINK,
    NEW_LINK,
    Message,
    open_events,
    read_address,
    read_link,
    read_messages,
)

log = logging.getLogger(__name__)

_BUFFER: Final = 1 << 16


class LinkWatch:
    """Calls `changed` when the link is removed or goes down, or loses a listen address.

    Also when the kernel could not tell everything, and what was missed may be one of these.
    """

    def __init__(self, network: HostNetwork, changed: Callable[[], object]) -> None:
        self._network, self._changed = network, changed
        self._sock: socket.socket | None = None

    def start(self) -> None:
        """Begin, in the running loop. Where the kernel refuses, a warning says so, and nothing is told."""
        try:
            self._sock = open_events()
        except OSError as problem:
            log.warning("cannot watch the links of this node: %s", problem)
            return
        asyncio.get_running_loop().add_reader(self._sock, self._drain, self._sock)

    def stop(self) -> None:
        if self._sock is not None:
            asyncio.get_running_loop().remove_reader(self._sock)
            self._sock.close()
            self._sock = None

    def _drain(self, sock: socket.socket) -> None:
        concerned = False
        while True:
            try:
                data = sock.recv(_BUFFER)
            except BlockingIOError:
                break
            except OSError as problem:
                if problem.errno != errno.ENOBUFS:
                    log.warning("watching the links of this node: %s", os.strerror(problem.errno or 0))
                    self.stop()
                concerned = True
                break
            concerned = concerned or any(concerns(self._network, message) for message in read_messages(data))
        if concerned:
            self._changed()


def concerns(network: HostNetwork, message: Message) -> bool:
    """Whether this event took something away from what the network needs."""
    if message.kind == DELETE_ADDRESS:
        found = read_address(message.body)
        return found is not None and found.address in network.local_addresses
    if message.kind not in (DELETE_LINK, NEW_LINK):
        return False
    link = read_link(message.body)
    return link.name == network.interface and (message.kind == DELETE_LINK or not link.up)
