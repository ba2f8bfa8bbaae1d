"""Packet cache entries with several addresses: their order rotates with each query."""

from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from typing import Final, NamedTuple

from topodns.dns.message import RRset
from topodns.dns.rrtype import ADDRESS_TYPES
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


def order_matters(answer: Sequence[RRset]) -> bool:
    return any(len(rrset.rdatas) > 1 and rrset.rtype in ADDRESS_TYPES for rrset in answer)


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
