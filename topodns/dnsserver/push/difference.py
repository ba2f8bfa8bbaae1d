"""The records that a subscription follows, and the changes from one set to the next (RFC 8765 section 6.3.1)."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from topodns.dns.message import Response, RRset
from topodns.dns.push_messages import ALL_REMOVED, MAX_PUSHED_RDATA, REMOVED, PushChange
from topodns.dns.rrtype import ADDRESS_TYPES, RRClass, RRType

_ADDRESS: Final = 16  # octets of an address record: its RDATA is also kept by the state of the cluster
_RECORD: Final = 64  # octets of another record beside its RDATA, which is made for the answer, as an SRV's target is


class PushedRecords(NamedTuple):
    """The records of an answer that a subscription follows.

    `rest` is a hash of all else that makes another answer: the rcode, and the other records of its sections answer and
    additional, such as the addresses behind a CNAME or of an SRV. Order does not count, nor do the TTLs of these
    records: those from an upstream decrease, and the client that has only some of them queries for the others.
    """

    rrsets: tuple[RRset, ...]  # of the subscription's name, and its type or CNAME; in most answers one
    rest: int

    @property
    def octets(self) -> int:
        """The memory of the records, as measured by bench/push_memory.py."""
        return sum(map(_octets, self.rrsets))


WITHHELD: Final = PushedRecords((), 0)
"""The records of an answer that the client must not have now (REFUSED), or that is not this server's (NOTAUTH)."""


def _octets(rrset: RRset) -> int:
    if rrset.rtype in ADDRESS_TYPES:
        return _ADDRESS * len(rrset.rdatas)
    return _RECORD * len(rrset.rdatas) + sum(map(len, rrset.rdatas))


_Record = tuple[int, bytes]
"""(type, RDATA)"""


def pushed_records(response: Response, qname: bytes, qtype: int) -> PushedRecords:
    """The records of a response that a subscription to this name (wire form, lower case) and type follows.

    The section AUTHORITY does not count: it has the SOA, whose serial changes with each change of the cluster.
    """
    followed: list[RRset] = []
    others: list[RRset] = []
    for rrset in response.answer:
        (followed if _is_followed(rrset, qname, qtype) else others).append(rrset)
    rest = frozenset(map(_identity, (*others, *response.additional)))
    return PushedRecords(tuple(followed), hash((response.rcode, rest)))


def _is_followed(rrset: RRset, qname: bytes, qtype: int) -> bool:
    return (
        rrset.rtype in (qtype, RRType.CNAME)
        and rrset.rclass == RRClass.IN
        and (not rrset.owner or rrset.owner.lower() == qname)
        and all(len(rdata) <= MAX_PUSHED_RDATA for rdata in rrset.rdatas)
    )


def _identity(rrset: RRset) -> tuple[object, ...]:
    owner, rtype, _, rdatas, rclass = rrset
    return owner.lower(), rtype, rclass, rdatas if len(rdatas) == 1 else frozenset(rdatas)


def all_changes(records: PushedRecords, qname: bytes) -> list[PushChange]:
    """The changes that add all records, for a client that has none."""
    return [_added(qname, record, ttl) for record, ttl in _ttls(records).items()]


def anew(records: PushedRecords, qname: bytes, qtype: int) -> list[PushChange]:
    """The changes that lead to these records, for any earlier records of the client."""
    types = dict.fromkeys((qtype, RRType.CNAME))
    return [*(_emptied(qname, rtype) for rtype in types), *all_changes(records, qname)]


def difference(old: PushedRecords, new: PushedRecords, qname: bytes, qtype: int) -> list[PushChange]:
    """The changes from `old` to `new`, none if they are equal but for their order.

    If only `rest` differs, the first record is added once more, which changes nothing in a client's set, or an empty
    set is removed: either way the client learns that its answer is outdated.
    """
    if old == new:
        return []
    before, after = _ttls(old), _ttls(new)
    added = [(record, ttl) for record, ttl in after.items() if before.get(record) != ttl]
    removed = [record for record in before if record not in after]
    if not added and not removed:
        if old.rest == new.rest:
            return []
        return [_added(qname, *each) for each in islice(after.items(), 1)] or [_emptied(qname, qtype)]
    return [*_removals(qname, removed, before), *(_added(qname, record, ttl) for record, ttl in added)]


def _removals(qname: bytes, removed: list[_Record], before: Iterable[_Record]) -> Iterator[PushChange]:
    """Removals of these records out of `before`: of a whole RRset where none of a type stays."""
    had = Counter(rtype for rtype, _ in before)
    lost = Counter(rtype for rtype, _ in removed)
    for rtype in lost:
        if lost[rtype] == had[rtype]:
            yield _emptied(qname, rtype)
    for rtype, rdata in removed:
        if lost[rtype] != had[rtype]:
            yield PushChange(qname, rtype, RRClass.IN, REMOVED, rdata)


def _ttls(records: PushedRecords) -> dict[_Record, int]:
    return {(rrset.rtype, rdata): rrset.ttl for rrset in records.rrsets for rdata in rrset.rdatas}


def _added(qname: bytes, record: _Record, ttl: int) -> PushChange:
    return PushChange(qname, record[0], RRClass.IN, ttl, record[1])


def _emptied(qname: bytes, rtype: int) -> PushChange:
    return PushChange(qname, rtype, RRClass.IN, ALL_REMOVED)
