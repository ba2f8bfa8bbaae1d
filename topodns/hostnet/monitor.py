"""Tells within a turn of the loop that somebody took away the link, one of its addresses, or a rule."""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable
from functools import partial
from typing import Final

from topodns.edge.host_network.iptables_text import chain_of
from topodns.edge.host_network.nfnetlink import may_concern, open_rule_events, read_removed
from topodns.edge.host_network.nftables_text import TABLE
from topodns.edge.host_network.plan import Hook, HostNetwork, Table
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
from topodns.settings.node_cache import Firewall

log = logging.getLogger(__name__)

_BUFFER: Final = 1 << 16
_TABLES: Final = {Firewall.NFTABLES: (TABLE,), Firewall.IPTABLES: tuple(map(str, Table))}
# Of iptables: a table as a whole, our own chains, and those with the jumps to them.
_CHAINS: Final = {"", *Hook, *map(chain_of, Hook)}


class EventWatch:
    """Calls `changed` when a datagram of the kernel `concerns` us."""

    def __init__(
        self, what: str, opening: Callable[[], socket.socket], concerns: Callable[[bytes], bool], missed: bool
    ) -> None:
        """`what` is watched, for the log. `missed`: events that the kernel could not tell may concern us, too."""
        self._what, self._opening, self._concerns, self._missed = what, opening, concerns, missed
        self._sock: socket.socket | None = None
        self._changed: Callable[[], object] = bool

    def start(self, changed: Callable[[], object]) -> None:
        """Begin, in the running loop. Where the kernel refuses, a warning says so, and nothing is told."""
        self._changed = changed
        try:
            self._sock = self._opening()
        except OSError as problem:
            log.warning("cannot watch the %s of this node: %s", self._what, problem)
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
                    log.warning("watching the %s of this node: %s", self._what, os.strerror(problem.errno or 0))
                    self.stop()
                concerned = concerned or self._missed
                break
            concerned = concerned or self._concerns(data)
        if concerned:
            self._changed()


def watch_link(network: HostNetwork) -> EventWatch:
    """Tells that the link is removed or goes down, or loses a listen address."""
    return EventWatch("links", open_events, partial(_takes_link, network), missed=True)


def watch_rules(firewall: Firewall) -> EventWatch | None:
    """Tells that a rule or chain that may be ours is removed; None for a firewall without rules of ours.

    Where somebody changes so many that the kernel cannot tell of all, comparing once more with each would only add to
    it: the next tick is soon.
    """
    if firewall not in _TABLES:
        return None
    return EventWatch("rules", open_rule_events, partial(takes_rule, firewall), missed=False)


def _takes_link(network: HostNetwork, data: bytes) -> bool:
    return any(concerns(network, message) for message in read_messages(data))


def concerns(network: HostNetwork, message: Message) -> bool:
    """Whether this event took something away from what the network needs."""
    if message.kind == DELETE_ADDRESS:
        found = read_address(message.body)
        return found is not None and found.address in network.local_addresses
    if message.kind not in (DELETE_LINK, NEW_LINK):
        return False
    link = read_link(message.body)
    return link.name == network.interface and (message.kind == DELETE_LINK or not link.up)


def takes_rule(firewall: Firewall, data: bytes) -> bool:
    """Whether an event of this datagram took away what may be ours."""
    tables = _TABLES[firewall]
    if not may_concern(data, tables):
        return False
    removed = [each for each in map(read_removed, read_messages(data)) if each is not None and each.table in tables]
    return any(each.table == TABLE or each.chain in _CHAINS for each in removed)
