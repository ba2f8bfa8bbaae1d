"""What the kernel tells of changes to nftables, which is where the rules of iptables are as well, but for legacy ones.

Bytes in, and one socket (linux/netfilter/nfnetlink.h, nf_tables.h).
"""

import socket
from collections.abc import Iterable
from typing import Final, NamedTuple

from topodns.edge.host_network.rtnetlink import Message, read_attributes

_NETFILTER: Final = 12  # NETLINK_NETFILTER
_SOL_NETLINK, _ADD_MEMBERSHIP, _TABLES_GROUP = 270, 1, 7  # NFNLGRP_NFTABLES
_SUBSYSTEM: Final = 10 << 8  # NFNL_SUBSYS_NFTABLES, above the type of each message
_DELETE_TABLE, _DELETE_CHAIN, _DELETE_RULE = _SUBSYSTEM | 2, _SUBSYSTEM | 5, _SUBSYSTEM | 8
_HEAD: Final = 4  # octets of struct nfgenmsg
_TABLE: Final = 1  # attribute of all three
_CHAINS: Final = {_DELETE_TABLE: 0, _DELETE_CHAIN: 3, _DELETE_RULE: 2}  # attribute; 0: none


class Removed(NamedTuple):
    """Something that is not there any more: a table, a chain or a rule of it."""

    table: str
    chain: str  # "" of a table


def read_removed(message: Message) -> Removed | None:
    """What this event took away; None for all others."""
    chain = _CHAINS.get(message.kind)
    if chain is None:
        return None
    found = read_attributes(message.body[_HEAD:])
    return Removed(_text(found.get(_TABLE, b"")), _text(found.get(chain, b"")))


def may_concern(data: bytes, tables: Iterable[str]) -> bool:
    """Whether some event of this datagram may be about one of these tables: found out without taking it apart.

    Others change theirs by the ten thousand, a kube-proxy for instance.
    """
    return any(table.encode() + b"\0" in data for table in tables)


def open_rule_events() -> socket.socket:
    """A non-blocking socket on which the kernel tells of every change of a table. Raises OSError."""
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, _NETFILTER)
    try:
        sock.bind((0, 0))
        sock.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, _TABLES_GROUP)
    except OSError:
        sock.close()
        raise
    return sock


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode(errors="replace")
