"""nfnetlink events of nftables changes, which include rules of iptables except those of its legacy variant.

Parsers of messages, and one socket (linux/netfilter/nfnetlink.h, nf_tables.h).
"""

import socket
from collections.abc import Iterable
from typing import Final, NamedTuple

from topodns.netlink.messages import Message, open_events, read_attributes, read_text

_NETFILTER: Final = 12  # NETLINK_NETFILTER
_TABLES_GROUP: Final = 7  # NFNLGRP_NFTABLES
_SUBSYSTEM: Final = 10 << 8  # NFNL_SUBSYS_NFTABLES, above the type of each message
_DELETE_TABLE, _DELETE_CHAIN, _DELETE_RULE = _SUBSYSTEM | 2, _SUBSYSTEM | 5, _SUBSYSTEM | 8
_HEAD: Final = 4  # octets of struct nfgenmsg
_TABLE: Final = 1  # attribute with the table's name, the same in all three messages
_CHAINS: Final = {_DELETE_TABLE: 0, _DELETE_CHAIN: 3, _DELETE_RULE: 2}  # attribute with the chain's name; 0: none


class Removed(NamedTuple):
    """A removed table or chain, or the table and chain of a removed rule."""

    table: str
    chain: str  # "" if the table itself was removed


def read_removed(message: Message) -> Removed | None:
    """The table or chain that this event removes, or those of the rule that it removes; None for other events."""
    chain = _CHAINS.get(message.kind)
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
