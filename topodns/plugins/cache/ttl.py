"""Which answers are cached, and their TTL: by RFC 2308, and with one TTL for all records of an answer as in CoreDNS."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from topodns.dns.message import Flag, Query, Response, RRset
from topodns.dns.name import Name, is_below_any
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.plugins.cache.entry import Sort
from topodns.plugins.cache.settings import Cache

_FAILURES: Final = frozenset({Rcode.SERVFAIL, Rcode.NOTIMP})  # as in CoreDNS; RFC 2308 section 7.1


class CacheVerdict(NamedTuple):
    """The sort of an answer, and the TTL of all its records, 1 or more."""

    sort: Sort
    ttl: int


class Rules:
    """The TTL rules of one `cache` directive."""

    def __init__(self, settings: Cache) -> None:
        self._success, self._denial = settings.success, settings.denial
        self._servfail = settings.servfail

    def judge(self, query: Query, response: Response) -> CacheVerdict | None:
        """The sort and TTL of an upstream's response; None for one that must not be cached.

        That is a truncated response, an rcode other than NOERROR, NXDOMAIN, SERVFAIL and NOTIMP, the latter two with
        `servfail 0`, a denial without an SOA (RFC 2308 section 5), and a TTL of 0, which forbids reuse (RFC 1035
        section 3.2.1): CoreDNS caches a response with TTL 0 for MINTTL.
        """
        if response.flags & ~response.cleared & Flag.TC:
            return None
        if response.rcode in _FAILURES:
            return CacheVerdict(Sort.FAILURE, self._servfail) if self._servfail else None
        if is_positive(query, response):
            ttl = _smallest_ttl(response)
            return CacheVerdict(Sort.SUCCESS, self.positive_ttl(ttl)) if ttl else None
        denial = _denial_ttl(response) if response.rcode in (Rcode.NOERROR, Rcode.NXDOMAIN) else None
        return (
            CacheVerdict(Sort.DENIAL, min(max(denial, self._denial.min_ttl), self._denial.max_ttl)) if denial else None
        )

    def positive_ttl(self, ttl: int) -> int:
        """The TTL of an answer whose smallest TTL is `ttl`, not 0, within the minimum and maximum."""
        share = self._success
        if ttl < share.min_ttl:
            ttl = share.min_ttl
        return share.max_ttl if ttl > share.max_ttl else ttl

    def keeps(self, sort: Sort, qname: Name) -> bool:
        """Whether this sort of answer may be cached for the name: `disable denial` covers failures too."""
        share = self._success if sort is Sort.SUCCESS else self._denial
        return not is_below_any(qname, share.disabled)

    def cap(self, response: Response) -> None:
        """Lower TTLs to the maximum for answers or denials, as CoreDNS does also for answers that it does not cache.

        Without effect if no TTL of the answer section (where that is empty, of the authority section) exceeds it.
        """
        negative = response.rcode == Rcode.NXDOMAIN or not response.answer
        longest = self._denial.max_ttl if negative else self._success.max_ttl
        for rrset in response.answer or response.authority:
            if rrset.ttl > longest:
                break
        else:
            return
        response.answer = _capped(response.answer, longest)
        response.authority = _capped(response.authority, longest)
        response.additional = _capped(response.additional, longest)


def set_ttl(response: Response, ttl: int) -> None:
    """Give all records this TTL."""
    response.answer = _with_ttl(response.answer, ttl)
    response.authority = _with_ttl(response.authority, ttl)
    response.additional = _with_ttl(response.additional, ttl)


def is_positive(query: Query, response: Response) -> bool:
    """Whether the answer is NOERROR with a record of the queried type at the end of the queried name's CNAME chain.

    A chain that loops or forks has no end (RFC 1034 section 3.6.2, RFC 2181 section 10.1).
    """
    if response.rcode != Rcode.NOERROR:
        return False
    wanted = [rrset for rrset in response.answer if query.qclass == RRClass.ANY or rrset.rclass == query.qclass]
    qname = query.spelling.lower()
    owner = qname if query.qtype in (RRType.CNAME, RRType.ANY) else _end_of_chain(qname, wanted)
    return any(
        _owner(rrset, qname) == owner and (rrset.rtype == query.qtype or query.qtype == RRType.ANY) for rrset in wanted
    )


def _end_of_chain(qname: bytes, answer: list[RRset]) -> bytes | None:
    targets: dict[bytes, set[bytes]] = {}
    for rrset in answer:
        if rrset.rtype == RRType.CNAME:
            targets.setdefault(_owner(rrset, qname), set()).update(map(bytes.lower, rrset.rdatas))
    name = qname
    while name in targets:
        found = targets.pop(name)
        if len(found) != 1:
            return None
        (name,) = found
        if name == qname:
            return None
    return name


def _owner(rrset: RRset, qname: bytes) -> bytes:
    return rrset.owner.lower() or qname


def _denial_ttl(response: Response) -> int | None:
    """The smallest TTL of all records and the SOA's MINIMUM (RFC 2308 section 5); None without an SOA."""
    for rrset in response.authority:
        if rrset.rtype == RRType.SOA:
            return min(_smallest_ttl(response), int.from_bytes(rrset.rdatas[0][-4:], "big"))
    return None


def _smallest_ttl(response: Response) -> int:
    return min((rrset.ttl for rrset in _records(response)), default=0)


def _records(response: Response) -> Iterator[RRset]:
    yield from response.answer
    yield from response.authority
    yield from response.additional


def _capped(rrsets: tuple[RRset, ...], longest: int) -> tuple[RRset, ...]:
    return tuple(rrset if rrset.ttl <= longest else rrset._replace(ttl=longest) for rrset in rrsets)


def _with_ttl(rrsets: tuple[RRset, ...], ttl: int) -> tuple[RRset, ...]:
    return tuple(RRset(owner, rtype, ttl, rdatas, rclass) for owner, rtype, _, rdatas, rclass in rrsets)
