"""Ready-made answers of several addresses: each asking moves their order on."""

from collections.abc import Sequence
from itertools import islice
from random import Random
from typing import Final

from topodns.dns.message import RRset, RRType
from topodns.resolve.reply_layout import record_places

_OBJECT: Final = 48  # octets that Python takes for a bytes object beside its content
_ADDRESS_TYPES: Final = frozenset({int(RRType.A), int(RRType.AAAA)})


class Rotation:
    """Makes an answer's next order: round robin, with a new shuffle at each turn's end.

    The shuffle keeps the neighbour of a dead endpoint from inheriting all of its clients. In `reply`, `fitting` of the
    RDATAs stand from `first` on, with the same `gap` octets between each two: the rest of a record.
    """

    __slots__ = (
        "_between",
        "_doubled",
        "_fitting",
        "_foot",
        "_gap",
        "_head",
        "_rdatas",
        "_rng",
        "_span",
        "_turn",
        "_width",
    )

    def __init__(self, reply: bytes, first: int, gap: int, rdatas: Sequence[bytes], fitting: int, rng: Random) -> None:
        self._rdatas, self._rng = list(rdatas), rng
        self._gap, self._width = gap, gap + len(rdatas[0])
        self._fitting = fitting * self._width
        self._span = first, first + self._fitting - gap
        self._turn = len(rdatas)
        self.dress(reply)

    @property
    def octets(self) -> int:
        """About as much memory as it takes: each record thrice, once as an object of its own."""
        return len(self._head) + len(self._foot) + len(self._rdatas) * (3 * self._width + _OBJECT)

    def dress(self, reply: bytes) -> None:
        """Take all but the addresses from `reply`, which has them where the first one had. The turn goes on."""
        first, end = self._span
        self._head, self._foot = reply[2:first], reply[end:]
        after = first + self._width - self._gap
        self._between = reply[after : after + self._gap]
        self._line_up()

    def __call__(self) -> bytes:
        """The reply after its id."""
        if self._turn == len(self._rdatas):
            self._rng.shuffle(self._rdatas)
            self._line_up()
            self._turn = 0
        at = self._turn * self._width
        self._turn += 1
        return self._head + self._doubled[at + self._gap : at + self._fitting] + self._foot

    def _line_up(self) -> None:
        self._doubled = b"".join(self._between + rdata for rdata in self._rdatas) * 2


def order_matters(answer: Sequence[RRset]) -> bool:
    return any(len(rrset.rdatas) > 1 and rrset.rtype in _ADDRESS_TYPES for rrset in answer)


def rotation_of(answer: Sequence[RRset], reply: bytes, rng: Random) -> Rotation | None:
    """What rotates the addresses in `reply`, which was made of this answer; CNAMEs may stand before them.

    None where there are several sets of addresses, or none of them fits.
    """
    sets = [(at, rrset) for at, rrset in enumerate(answer) if rrset.rtype in _ADDRESS_TYPES]
    if len(sets) != 1:
        return None
    at, rrset = sets[0]
    before = sum(len(earlier.rdatas) for earlier in answer[:at])
    fitting = min(int.from_bytes(reply[6:8], "big") - before, len(rrset.rdatas))
    if fitting < 1:
        return None
    first, *second = islice(record_places(reply), before, before + min(fitting, 2))
    # From the second record on, all owners are pointers of two octets, whatever the first one's is.
    gap = second[0].rdata_at - first.end if second else 0
    return Rotation(reply, first.rdata_at, gap, rrset.rdatas, fitting, rng)
