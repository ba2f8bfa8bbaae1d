"""Netlink monitors: report within one turn of the event loop that the link, an address or a rule is removed.

nfnetlink has events of nftables changes, which include rules of iptables except those of its legacy variant
(linux/netfilter/nfnetlink.h, nf_tables.h).
"""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple

from topodns.hostnet.iptables_ruleset import chain_of
from topodns.hostnet.nftables_ruleset import TABLE
from topodns.hostnet.rules import Firewall, Hook, HostNetwork, IptablesTable
from topodns.netlink.messages import Message, open_events, read_attributes, read_messages, read_text
from topodns.netlink.route import DELETE_ADDRESS, DELETE_LINK, NEW_LINK, open_link_events, read_address, read_link

_NETFILTER: Final = 12  # NETLINK_NETFILTER
_TABLES_GROUP: Final = 7  # NFNLGRP_NFTABLES
_SUBSYSTEM: Final = 10 << 8  # NFNL_SUBSYS_NFTABLES, above the type of each message
_DELETE_TABLE, _DELETE_CHAIN, _DELETE_RULE = _SUBSYSTEM | 2, _SUBSYSTEM | 5, _SUBSYSTEM | 8
_HEAD: Final = 4  # octets of struct nfgenmsg
_TABLE: Final = 1  # attribute with the table's name, the same in all three messages
_CHAIN_ATTRIBUTES: Final = {
    _DELETE_TABLE: 0,
    _DELETE_CHAIN: 3,
    _DELETE_RULE: 2,
}  # attribute with the chain's name; 0: none


class Removed(NamedTuple):
    """A removed table or chain, or the table and chain of a removed rule."""

    table: str
    chain: str  # "" if the table itself was removed


def read_removed(message: Message) -> Removed | None:
    """The table or chain that this event removes, or those of the rule that it removes; None for other events."""
    chain = _CHAIN_ATTRIBUTES.get(message.kind)
    if chain is None:
        return None
    found = read_attributes(message.body[_HEAD:])
    return Removed(read_text(found.get(_TABLE, b"")), read_text(found.get(chain, b"")))


def may_concern(data: bytes, tables: Iterable[str]) -> bool:
    """Whether a datagram may have an event of one of these tables, by their names; false positives are possible.

    A substring search without parsing, because other programs change rules by the ten thousand, as kube-proxy does.
    """
    return any(table.encode() + b"\0" in data for table in tables)


def open_rule_events() -> socket.socket:
    """A non-blocking netlink socket that receives an event for every nftables change. Raises OSError."""
    return open_events(_NETFILTER, _TABLES_GROUP)


log = logging.getLogger(__name__)


_BUFFER: Final = 1 << 16
_TABLES: Final = {Firewall.NFTABLES: (TABLE,), Firewall.IPTABLES: tuple(map(str, IptablesTable))}
# For iptables: "" (a whole table), our own chains, and the built-in chains that jump to them.
_CHAINS: Final = {"", *Hook, *map(chain_of, Hook)}


class NetlinkMonitor:
    """Calls `changed` when the kernel sends a netlink datagram for which `is_relevant` is true."""

    def __init__(
        self,
        what: str,
        open_socket: Callable[[], socket.socket],
        is_relevant: Callable[[bytes], bool],
        report_loss: bool,
    ) -> None:
        """`what`: the watched objects, for log lines. `open_socket` opens the netlink socket. `report_loss`: call
        `changed` also after the kernel dropped events (ENOBUFS).
        """
        self._what, self._open_socket = what, open_socket
        self._is_relevant, self._report_loss = is_relevant, report_loss
        self._sock: socket.socket | None = None
        self._changed: Callable[[], object] = bool

    def start(self, changed: Callable[[], object]) -> None:
        """Start in the running loop. If the kernel refuses the socket, log a warning and never call `changed`."""
        self._changed = changed
        try:
            self._sock = self._open_socket()
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
        relevant = False
        while True:
            try:
                data = sock.recv(_BUFFER)
            except BlockingIOError:
                break
            except OSError as problem:
                if problem.errno != errno.ENOBUFS:
                    log.warning("watching the %s of this node: %s", self._what, os.strerror(problem.errno or 0))
                    self.stop()
                relevant = relevant or self._report_loss
                break
            relevant = relevant or self._is_relevant(data)
        if relevant:
            self._changed()


def link_monitor(network: HostNetwork) -> NetlinkMonitor:
    """A monitor of the link: reports that it is removed or down, or that events were lost (ENOBUFS).

    Also that a listen address is removed, from any link.
    """
    return NetlinkMonitor("links", open_link_events, partial(_any_affects_link, network), report_loss=True)


def rule_monitor(firewall: Firewall) -> NetlinkMonitor | None:
    """A monitor of the firewall: reports removal of a rule or chain that may be ours; None for Firewall.NONE.

    Dropped events (ENOBUFS) are not reported: another process is changing many rules at once, and an extra comparison
    each time would only add load. The periodic comparison (`reconciler.MAX_SYNC_INTERVAL`) follows soon.
    """
    if firewall not in _TABLES:
        return None
    return NetlinkMonitor("rules", open_rule_events, partial(removes_rule, firewall), report_loss=False)


def _any_affects_link(network: HostNetwork, data: bytes) -> bool:
    return any(affects_link(network, message) for message in read_messages(data))


def affects_link(network: HostNetwork, message: Message) -> bool:
    """Whether this event removes the link or a listen address (from any link), or reports the link as down."""
    if message.kind == DELETE_ADDRESS:
        found = read_address(message.body)
        return found is not None and found.address in network.local_addresses
    if message.kind not in (DELETE_LINK, NEW_LINK):
        return False
    link = read_link(message.body)
    return link.name == network.interface and (message.kind == DELETE_LINK or not link.up)


def removes_rule(firewall: Firewall, data: bytes) -> bool:
    """Whether an event of this datagram removes a table, chain or rule that may be ours."""
    tables = _TABLES[firewall]
    if not may_concern(data, tables):
        return False
    removed = [each for each in map(read_removed, read_messages(data)) if each is not None and each.table in tables]
    return any(each.table == TABLE or each.chain in _CHAINS for each in removed)
