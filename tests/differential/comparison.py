"""Differences between two replies to one question, by aspect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tests.differential.questions import Question
from tests.differential.replies import Record, Reply

REPLY: Final = "a reply"
RCODE: Final = "rcode"
AA, TC, RA, AD, Z = "AA", "TC", "RA", "AD", "Z"
FLAGS: Final = "other flags"
QUESTION: Final = "question"
ANSWER, AUTHORITY, ADDITIONAL = "answer", "authority", "additional"
SECTIONS: Final = (ANSWER, AUTHORITY, ADDITIONAL)
TTL: Final = "TTL"  # where the records are the same but for it
EDNS: Final = "EDNS"  # its presence, version and flags
SIZE: Final = "EDNS size"
OPTIONS: Final = "EDNS options"
ASPECTS: Final = (RCODE, AA, TC, RA, AD, Z, FLAGS, QUESTION, *SECTIONS, TTL, EDNS, SIZE, OPTIONS)  # of two replies

_BITS: Final = {AA: 0x0400, TC: 0x0200, RA: 0x0080, AD: 0x0020, Z: 0x0040}
_OTHER_BITS: Final = 0xFFF0 & ~sum(_BITS.values())


@dataclass(frozen=True)
class Case:
    """A question under a Corefile, and what CoreDNS (`theirs`) and topodns (`ours`) say; None is nothing."""

    corefile: str
    question: Question
    theirs: Reply | None
    ours: Reply | None

    @cached_property
    def aspects(self) -> frozenset[str]:
        """In what the replies differ."""
        if self.theirs is None or self.ours is None:
            return frozenset() if self.theirs is self.ours else frozenset((REPLY,))
        return frozenset(_aspects(self.theirs, self.ours))

    def __str__(self) -> str:
        about = f"{self.corefile}: {self.question}\n  differ in {', '.join(sorted(self.aspects))}"
        return f"{about}\n  CoreDNS: {self.theirs}\n  topodns: {self.ours}"


def _aspects(theirs: Reply, ours: Reply) -> list[str]:
    flags = theirs.flags ^ ours.flags
    found = [name for name, bit in _BITS.items() if flags & bit]
    pairs: Mapping[str, tuple[object, object]] = {
        RCODE: (theirs.rcode, ours.rcode),
        FLAGS: (theirs.flags & _OTHER_BITS, ours.flags & _OTHER_BITS),
        QUESTION: (theirs.question, ours.question),
        EDNS: (theirs.edns, ours.edns),
        SIZE: (theirs.size, ours.size),
        OPTIONS: (theirs.options, ours.options),
    }
    found += [name for name, (one, other) in pairs.items() if one != other]
    for name in SECTIONS:
        found += _section_aspects(name, getattr(theirs, name), getattr(ours, name))
    return found


def _section_aspects(name: str, theirs: Sequence[Record], ours: Sequence[Record]) -> list[str]:
    if theirs == ours:
        return []
    return [TTL if _without_ttl(theirs) == _without_ttl(ours) else name]


def _without_ttl(records: Sequence[Record]) -> list[Record]:
    return sorted(record._replace(ttl=0) for record in records)
