"""Makers of replies that change: the order of addresses rotates with each query, and TTLs count down until the answer
must be resolved again.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import ceil
from random import Random
from typing import Final, NamedTuple

from topodns.dns.message import RRset
from topodns.dns.rrtype import ADDRESS_TYPES, RRType
from topodns.dns.wire_format import (
    COUNTS_AT,
    HEADER_SIZE,
    QUESTION_TAIL_SIZE,
    RECORD_HEAD_SIZE,
    end_of_name,
    unpack_record_counts,
    unpack_record_head,
)


class Place(NamedTuple):
    """One record: its type and TTL, and the offsets of its TTL, its RDATA and its end."""

    rtype: int
    ttl: int
    ttl_at: int
    rdata_at: int
    end: int


def record_places(reply: bytes) -> Iterator[Place]:
    """The records of all sections, in order. `reply`: a whole message written by topodns, with one question."""
    at = end_of_name(reply, HEADER_SIZE) + QUESTION_TAIL_SIZE
    for _ in range(sum(unpack_record_counts(reply, COUNTS_AT))):
        at = end_of_name(reply, at)
        rtype, _, ttl, rdlength = unpack_record_head(reply, at)
        rdata_at = at + RECORD_HEAD_SIZE
        yield Place(rtype, ttl, at + 4, rdata_at, rdata_at + rdlength)
        at = rdata_at + rdlength


_OBJECT: Final = 48  # octets of memory for a bytes object beside its content
_SLOT: Final = 8  # octets of memory for an object's place in a tuple
_SHUFFLED: Final = 256  # addresses in a part, unless a reply holds more: as many as are shuffled in 0.1 ms


class Rotation:
    """Gives an answer with its addresses in rotated order: round robin, with a new shuffle after each turn.

    Without the shuffle, all clients of an endpoint that is down would go on to the next one in the order. In `reply`,
    `fitting` of the RDATAs begin at offset `first`, with the same `gap` octets (the rest of a record) between each two.

    With thousands of addresses, a turn takes one part of them and the next turn the following part, so that neither
    the time of a shuffle nor its memory grows with their number.
    """

    __slots__ = (
        "_between",
        "_doubled",
        "_fitting",
        "_foot",
        "_gap",
        "_head",
        "_next",
        "_part",
        "_part_size",
        "_rdatas",
        "_rng",
        "_shared",
        "_span",
        "_turn",
        "_width",
    )

    def __init__(
        self,
        reply: bytes,
        first: int,
        gap: int,
        rdatas: Sequence[bytes],
        fitting: int,
        rng: Random,
        shared: bool = False,
    ) -> None:
        """`shared`: another object keeps the RDATAs, too, for at least as long, so `octets` does not count them."""
        self._rdatas, self._rng = tuple(rdatas), rng
        self._shared = shared
        self._gap, self._width = gap, gap + len(rdatas[0])
        self._fitting = fitting * self._width
        self._span = first, first + self._fitting - gap
        self._part_size = min(len(rdatas), max(_SHUFFLED, 2 * fitting))
        self._next = 0  # index of the first RDATA of the next part
        self._part: list[bytes] = []
        self._turn = self._part_size  # the first hit takes the first part: most replies are never asked for again
        self.set_reply(reply)

    @property
    def octets(self) -> int:
        """Approximate memory use: each record of a part twice, and the RDATAs as objects (unless shared)."""
        own = _SLOT if self._shared else _OBJECT + self._width
        return len(self._head) + len(self._foot) + self._part_size * 2 * self._width + len(self._rdatas) * own

    def set_reply(self, reply: bytes) -> None:
        """Take all but the addresses from `reply`, whose addresses are at the same offsets. The turn goes on."""
        first, end = self._span
        self._head, self._foot = reply[2:first], reply[end:]
        after = first + self._width - self._gap
        self._between = reply[after : after + self._gap]
        self._join_part()

    def __call__(self) -> bytes:
        """The reply without its id, with the next order."""
        if self._turn == self._part_size:
            self._next_part()
            self._join_part()
            self._turn = 0
        at = self._turn * self._width
        self._turn += 1
        return self._head + self._doubled[at + self._gap : at + self._fitting] + self._foot

    def _next_part(self) -> None:
        start, end, number = self._next, self._next + self._part_size, len(self._rdatas)
        self._part = [*self._rdatas[start:end], *self._rdatas[: max(0, end - number)]]
        self._next = end % number
        self._rng.shuffle(self._part)

    def _join_part(self) -> None:
        self._doubled = self._between.join((b"", *self._part)) * 2


def rotation_of(answer: Sequence[RRset], reply: bytes, rng: Random, shared: bool = False) -> Rotation | None:
    """The Rotation of the addresses in `reply`, which was written from `answer`; CNAMEs may precede them.

    None unless there is exactly one RRset of addresses, and one of them fits in the reply. `shared`: see `Rotation`.
    """
    sets = [(at, rrset) for at, rrset in enumerate(answer) if rrset.rtype in ADDRESS_TYPES]
    if len(sets) != 1:
        return None
    at, rrset = sets[0]
    before = sum(len(earlier.rdatas) for earlier in answer[:at])
    fitting = min(int.from_bytes(reply[6:8], "big") - before, len(rrset.rdatas))
    if fitting < 1:
        return None
    first, *second = islice(record_places(reply), before, before + min(fitting, 2))
    # From the second record on, all owners are pointers of two octets; the first one may have another form.
    gap = second[0].rdata_at - first.end if second else 0
    return Rotation(
        reply=reply, first=first.rdata_at, gap=gap, rdatas=rrset.rdatas, fitting=fitting, rng=rng, shared=shared
    )


_PLACE: Final = 144  # octets of memory for one place's tuple and numbers
_OBJECTS: Final = 472  # and for an Ageing, its list, the entry, and two bytes objects: see bench/cache_memory.py

_ttl = struct.Struct("!I")


class Ageing:
    """Gives a reply, without its id, with its current TTLs; None from `valid_until` on, or once a TTL would be 0.

    TTLs decrease by one whenever a whole number of seconds is left until `valid_until`; those in `reply` are the TTLs
    when this object is made. `clock`: monotonic seconds, the clock of `valid_until`. The octets are rebuilt once a
    second at most. `indexed`: the entry is also indexed by its dependencies.
    """

    __slots__ = ("_clock", "_first_left", "_left", "_reply", "_rotation", "_tail", "_ttls", "_valid_until", "indexed")

    def __init__(
        self, reply: bytes, valid_until: float, clock: Callable[[], float], rotation: Rotation | None, indexed: bool
    ) -> None:
        self._reply, self._tail = reply, reply[2:]
        # The TTL field of OPT is no TTL (RFC 6891 section 6.1.3).
        self._ttls = [(place.ttl_at, place.ttl) for place in record_places(reply) if place.rtype != RRType.OPT]
        self._valid_until, self._clock = valid_until, clock
        self._rotation = rotation
        self.indexed = indexed
        self._first_left = ceil(valid_until - clock())
        self._left = max(1, self._first_left)  # a reply offered too late is expired from the start

    @property
    def octets(self) -> int:
        """Approximate memory use."""
        rotated = self._rotation.octets if self._rotation is not None else 0
        return 2 * len(self._reply) + len(self._ttls) * _PLACE + rotated + _OBJECTS

    def __call__(self) -> bytes | None:
        left = ceil(self._valid_until - self._clock())
        if left != self._left and not self._count_down(left):
            return None
        return self._tail if self._rotation is None else self._rotation()

    def _count_down(self, left: int) -> bool:
        """Set the TTLs for `left` seconds before the expiry; False if the reply has expired."""
        elapsed = self._first_left - left
        if left <= 0 or any(ttl <= elapsed for _, ttl in self._ttls):
            return False
        aged = bytearray(self._reply)
        for at, ttl in self._ttls:
            _ttl.pack_into(aged, at, ttl - elapsed)
        self._left, self._tail = left, bytes(aged[2:])
        if self._rotation is not None:
            self._rotation.set_reply(bytes(aged))
        return True
