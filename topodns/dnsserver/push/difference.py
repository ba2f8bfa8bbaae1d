"""The records that a subscription follows, and the changes from one set to the next (RFC 8765 section 6.3.1)."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from topodns.dns.message import Response, RRset
from topodns.dns.push import ALL_REMOVED, MAX_PUSHED_RDATA, REMOVED, PushChange
from topodns.dns.rrtype import RRClass


class PushedRecords(NamedTuple):
    """The records of an answer that a subscription follows.

    `rest` is a hash of all else that makes another answer: the rcode, and the other records of its sections answer and
    additional, such as the target of a CNAME or the addresses of an SRV. Order does not count.
    """

    rrsets: tuple[RRset, ...]  # of the subscription's name and type, in most answers one
    rest: int

    @property
    def size(self) -> int:
        """The number of records."""
        return sum(len(rrset.rdatas) for rrset in self.rrsets)


WITHHELD: Final = PushedRecords((), 0)
"""The records of an answer that the client must not have now (REFUSED)."""


def pushed_records(response: Response, qname: bytes, qtype: int) -> PushedRecords:
    """What a subscription to this name (wire form, lower case) and type follows of a response.

    The section AUTHORITY does not count: it has the SOA, whose serial changes with each change of the cluster.
    """
    followed: list[RRset] = []
    others: list[RRset] = []
    for rrset in response.answer:
        (followed if _is_followed(rrset, qname, qtype) else others).append(rrset)
    rest = frozenset(map(_unordered, (*others, *response.additional)))
    return PushedRecords(tuple(followed), hash((response.rcode, rest)))


def _is_followed(rrset: RRset, qname: bytes, qtype: int) -> bool:
    return (
        rrset.rtype == qtype
        and rrset.rclass == RRClass.IN
        and (not rrset.owner or rrset.owner.lower() == qname)
        and all(len(rdata) <= MAX_PUSHED_RDATA for rdata in rrset.rdatas)
    )


def _unordered(rrset: RRset) -> tuple[object, ...]:
    owner, rtype, ttl, rdatas, rclass = rrset
    return owner.lower(), rtype, ttl, rclass, rdatas if len(rdatas) == 1 else frozenset(rdatas)


def all_changes(records: PushedRecords, qname: bytes, qtype: int) -> list[PushChange]:
    """The changes that add all records, for a client that has none."""
    ttls = _ttls(records)
    return [_added(qname, qtype, rdata, ttl) for rdata, ttl in ttls.items()]


def anew(records: PushedRecords, qname: bytes, qtype: int) -> list[PushChange]:
    """The changes that lead to these records, for any earlier records of the client."""
    return [_emptied(qname, qtype), *all_changes(records, qname, qtype)]


def difference(old: PushedRecords, new: PushedRecords, qname: bytes, qtype: int) -> list[PushChange]:
    """The changes from `old` to `new`, none if they are equal but for their order.

    If only `rest` differs, the first record is added once more, which changes nothing in a client's set, or an empty
    set is removed: either way the client learns that its answer is outdated.
    """
    if old == new:
        return []
    before, after = _ttls(old), _ttls(new)
    added = [(rdata, ttl) for rdata, ttl in after.items() if before.get(rdata) != ttl]
    removed = [rdata for rdata in before if rdata not in after]
    if not added and not removed:
        if old.rest == new.rest:
            return []
        return [_added(qname, qtype, *each) for each in _first(after.items())] or [_emptied(qname, qtype)]
    changes: list[PushChange] = []
    if removed and len(removed) == len(before):
        changes.append(_emptied(qname, qtype))
    else:
        changes += [PushChange(qname, qtype, RRClass.IN, REMOVED, rdata) for rdata in removed]
    return [*changes, *(_added(qname, qtype, rdata, ttl) for rdata, ttl in added)]


def _ttls(records: PushedRecords) -> dict[bytes, int]:
    """RDATA -> TTL."""
    return {rdata: rrset.ttl for rrset in records.rrsets for rdata in rrset.rdatas}


def _first(items: Iterable[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
    for item in items:
        yield item
        return


def _added(qname: bytes, qtype: int, rdata: bytes, ttl: int) -> PushChange:
    return PushChange(qname, qtype, RRClass.IN, ttl, rdata)


def _emptied(qname: bytes, qtype: int) -> PushChange:
    return PushChange(qname, qtype, RRClass.IN, ALL_REMOVED)
