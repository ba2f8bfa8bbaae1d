"""The records that an upstream has pushed for each subscription, as hashes, to compare fetched answers with them."""

from array import array
from collections.abc import Iterable
from typing import Final

from topodns.dns.message import RRset
from topodns.dns.push import ALL_REMOVED, REMOVED, PushChange
from topodns.dns.rrtype import RRType

MAX_OF_ONE: Final = 1 << 13  # octets of hashes of one subscription, eight for each record
MAX_OF_ALL: Final = 1 << 20


class RememberedRecords:
    """The pushed records by subject: name in lower case, type and class, in wire form.

    A subject with more than `MAX_OF_ONE` octets of hashes, or beyond `MAX_OF_ALL`, is not remembered any more.
    """

    def __init__(self) -> None:
        self.octets = 0
        self._by_subject: dict[bytes, bytes | None] = {}  # sorted hashes; None: too many

    def apply(self, subject: bytes, changes: Iterable[PushChange]) -> None:
        """Apply changes to the records of a subject; before its first ones it has none."""
        before = self._by_subject.get(subject, b"")
        if before is None:
            return
        records = set(array("q", before))
        for _, rtype, _, ttl, rdata in changes:
            if ttl == ALL_REMOVED:
                records = {each for each in records if rtype != RRType.ANY and each & 1 != (rtype == RRType.CNAME)}
            elif ttl == REMOVED:
                records.discard(_hash(rtype, rdata))
            else:
                records.add(_hash(rtype, rdata))
        packed = _packed(records)
        self.octets += len(packed) - len(before)
        self._by_subject[subject] = packed
        if len(packed) > MAX_OF_ONE or self.octets > MAX_OF_ALL:
            self.octets -= len(packed)
            self._by_subject[subject] = None

    def contradict(self, subject: bytes, name: bytes, answer: Iterable[RRset]) -> bool:
        """Whether the records of `name` in an answer section, of the subject's type or CNAME, are not those pushed.

        False for an alias if no CNAME was pushed: some servers push only records of the type itself, as topodns does.
        """
        pushed = self._by_subject.get(subject)
        if pushed is None:
            return False
        types = (int.from_bytes(subject[-4:-2], "big"), RRType.CNAME)
        fetched = {
            _hash(rrset.rtype, rdata)
            for rrset in answer
            if rrset.rtype in types and rrset.owner.lower() in (b"", name)
            for rdata in rrset.rdatas
        }
        if _packed(fetched) == pushed:
            return False
        return not _has_alias(fetched) or _has_alias(array("q", pushed))

    def forget(self, subject: bytes) -> None:
        """Forget the records of a subject, if there are any."""
        self.octets -= len(self._by_subject.pop(subject, None) or b"")

    def clear(self) -> None:
        self._by_subject.clear()
        self.octets = 0


def _packed(hashes: Iterable[int]) -> bytes:
    return array("q", sorted(hashes)).tobytes()


def _has_alias(hashes: Iterable[int]) -> bool:
    return any(each & 1 for each in hashes)


def _hash(rtype: int, rdata: bytes) -> int:
    """A hash of the record; its lowest bit says whether it is a CNAME."""
    return hash((rtype, rdata)) & ~1 | (rtype == RRType.CNAME)
