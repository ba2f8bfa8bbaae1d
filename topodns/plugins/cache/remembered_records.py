"""The records that an upstream has pushed for each subscription, as hashes, to compare fetched answers with them."""

from array import array
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final

from topodns.dns.message import RRset
from topodns.dns.push_messages import ALL_REMOVED, REMOVED, PushChange
from topodns.dns.rrtype import RRClass, RRType
from topodns.dns.wire_format import QUESTION_TAIL_SIZE

MAX_OF_ONE: Final = 1 << 13  # octets of hashes of one subscription, eight for each record
MAX_OF_ALL: Final = 1 << 20


class RecordMatch(Enum):
    """How an answer compares with the pushed records of its name and type."""

    SAME = "same"
    OTHER = "other"  # the upstream has other records now, or had when it answered
    UNKNOWN = "unknown"  # a part of the answer is nothing that is pushed, or too many records were pushed


class RememberedRecords:
    """The pushed records by subject: name in lower case, type and class, in wire form.

    A subject with more than `MAX_OF_ONE` octets of hashes, or beyond `MAX_OF_ALL`, is not remembered any more.
    """

    def __init__(self) -> None:
        self.octets = 0
        self._by_subject: dict[bytes, bytes | None] = {}  # sorted hashes; None: too many

    def begin(self, subject: bytes) -> None:
        """A subscription has begun: its subject has no records before the first ones are pushed.

        RFC 8765 section 6.3: the upstream pushes those that exist at once, so without a PUSH there are none.
        """
        self.forget(subject)
        self._by_subject[subject] = b""

    def apply(self, subject: bytes, changes: Iterable[PushChange]) -> None:
        """Apply changes to the records of a subject that has begun, in time linear in their number; else no effect."""
        before = self._by_subject.get(subject)
        if before is None:
            return
        others, aliases = _split(before)
        for _, rtype, rclass, ttl, rdata in changes:
            records = aliases if rtype == RRType.CNAME else others
            if ttl == ALL_REMOVED:
                records.clear()
                if rtype == RRType.ANY or rclass == RRClass.ANY:
                    others.clear()
                    aliases.clear()
            elif ttl == REMOVED:
                records.discard(_hash(rtype, rdata))
            else:
                records.add(_hash(rtype, rdata))
        packed = _packed(others | aliases)
        self.octets += len(packed) - len(before)
        self._by_subject[subject] = packed
        if len(packed) > MAX_OF_ONE or self.octets > MAX_OF_ALL:
            self.octets -= len(packed)
            self._by_subject[subject] = None

    def compare(self, subject: bytes, answer: Iterable[RRset], additional: Sequence[RRset] = ()) -> RecordMatch:
        """Compare the sections of an answer with the pushed records.

        Pushed are records of the subject's name, of its type or CNAME. So the target of an alias, and the addresses
        beside an SRV record, are unknown; of a denial it is unknown whether the name exists; and some upstreams push no
        CNAME, so an alias is unknown where nothing is pushed.
        """
        pushed = self._by_subject.get(subject)
        if pushed is None:
            return RecordMatch.UNKNOWN
        name = subject[:-QUESTION_TAIL_SIZE]
        types = (int.from_bytes(subject[-QUESTION_TAIL_SIZE : 2 - QUESTION_TAIL_SIZE], "big"), RRType.CNAME)
        fetched: set[int] = set()
        is_known = True
        for rrset in answer:
            if rrset.rtype in types and rrset.owner.lower() in (b"", name):
                fetched.update(_hash(rrset.rtype, rdata) for rdata in rrset.rdatas)
            else:
                is_known = False
        if _packed(fetched) != pushed:
            return RecordMatch.UNKNOWN if not pushed and _has_alias(fetched) else RecordMatch.OTHER
        return RecordMatch.SAME if is_known and fetched and not additional else RecordMatch.UNKNOWN

    def forget(self, subject: bytes) -> None:
        """Forget the records of a subject, if there are any."""
        self.octets -= len(self._by_subject.pop(subject, None) or b"")

    def clear(self) -> None:
        self._by_subject.clear()
        self.octets = 0


def _split(packed: bytes) -> tuple[set[int], set[int]]:
    """The hashes of records that are no CNAME, and of those that are."""
    records = set(array("q", packed))
    aliases = {each for each in records if each & 1}
    return records - aliases, aliases


def _packed(hashes: Iterable[int]) -> bytes:
    return array("q", sorted(hashes)).tobytes()


def _has_alias(hashes: Iterable[int]) -> bool:
    return any(each & 1 for each in hashes)


def _hash(rtype: int, rdata: bytes) -> int:
    """A hash of the record; its lowest bit says whether it is a CNAME."""
    return hash((rtype, rdata)) & ~1 | (rtype == RRType.CNAME)
