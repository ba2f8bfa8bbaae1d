"""Datagrams that are dropped before they reach the server, and replies that are not sent: which, and their counts.

| counter | dropped |
|---|---|
| `dropped_oversize` | a query larger than a slot (`net.mmsg.DATAGRAM`), which the kernel truncates (MSG_TRUNC) |
| `dropped_port_zero` | a query from source port 0, to which no reply can be sent (CVE-2024-2169) |
| `dropped_full` | replies for which the kernel has no memory: the send buffer is full |
| `failed_sends` | replies that the kernel refuses for another reason: no route, a firewall |

`dnsserver.handler` decides which messages get no reply because of their content. No I/O.
"""

import errno
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_FULL: Final = frozenset({errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM})


@dataclass(slots=True)
class DatagramCounts:
    """Counters of one socket since it was opened, in datagrams."""

    received: int = 0  # all, dropped ones included
    dropped_oversize: int = 0
    dropped_port_zero: int = 0
    dropped_full: int = 0
    failed_sends: int = 0


def drop_oversize(counts: DatagramCounts, sizes: list[int], flags: Sequence[int]) -> None:
    """Set the sizes of truncated datagrams to 0 and count them. `flags`: `msg_flags` of each datagram (recvmsg(2))."""
    for slot, each in enumerate(flags):
        if each & socket.MSG_TRUNC:
            sizes[slot] = 0
            counts.dropped_oversize += 1


def drop_port_zero(counts: DatagramCounts, sizes: list[int], ports: Sequence[int]) -> None:
    """Set the sizes of datagrams from source port 0 to 0 and count them. `ports`: the source port of each datagram."""
    for slot, port in enumerate(ports):
        if port == 0:
            sizes[slot] = 0
            counts.dropped_port_zero += 1


def drop_replies(counts: DatagramCounts, error: int | None, waiting: int) -> int:
    """Count a failed send. Returns how many replies to skip: all `waiting` if the send buffer is full, else one.

    `error`: the errno of the first of the `waiting` replies.
    """
    if error in _FULL:
        counts.dropped_full += waiting
        return waiting
    counts.failed_sends += 1
    return 1
