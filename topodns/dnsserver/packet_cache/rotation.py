"""Where the records of a reply of our own stand, for what changes ready-made replies in place."""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from topodns.dns.wire import HEADER_SIZE

_QUESTION_TAIL: Final = 4
_POINTER: Final = 0xC0

_counts = struct.Struct("!HHH")
_record_head = struct.Struct("!HHIH")


class Place(NamedTuple):
    """One record: its type and TTL, and where that TTL, its RDATA and its end stand."""

    rtype: int
    ttl: int
    ttl_at: int
    rdata_at: int
    end: int


def record_places(reply: bytes) -> Iterator[Place]:
    """The records of all sections, in order. `reply` is a whole message of ours, with one question."""
    at = _end_of_name(reply, HEADER_SIZE) + _QUESTION_TAIL
    for _ in range(sum(_counts.unpack_from(reply, 6))):
        at = _end_of_name(reply, at)
        rtype, _, ttl, rdlength = _record_head.unpack_from(reply, at)
        rdata_at = at + _record_head.size
        yield Place(rtype, ttl, at + 4, rdata_at, rdata_at + rdlength)
        at = rdata_at + rdlength


def _end_of_name(message: bytes, at: int) -> int:
    while (octet := message[at]) != 0:
        if octet >= _POINTER:
            return at + 2
        at += 1 + octet
    return at + 1
