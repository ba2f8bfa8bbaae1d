"""A cache entry: which answers make one, with which TTL, and its form.

The TTL is by RFC 2308, and one for all records of an answer, as in CoreDNS. An entry is packed, because thirty thousand
trees of objects would take several times the memory.
"""

import marshal
import struct
from collections import deque
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from topodns.dns.message import Flag, Query, Response, RRset
from topodns.dns.name import Name, is_below_any
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.dns.wire_format import DNSSEC_OK, OPTION_HEAD_SIZE, pack_option_head, unpack_option_head
from topodns.plugins.cache.settings import Cache
from topodns.query.plugin import forwarded_options

_FAILURES: Final = frozenset({Rcode.SERVFAIL, Rcode.NOTIMP})  # as in CoreDNS; RFC 2308 section 7.1
_KEPT_FLAGS: Final = Flag.RA | Flag.AD  # both in the lower octet

_key_tail: Final = struct.Struct("!HHH")

_PackedRRset = tuple[bytes, int, int, tuple[bytes, ...]]
_PackedSection = tuple[_PackedRRset, ...]

PlainContent = bytes | tuple[int, int, _PackedSection, _PackedSection, _PackedSection]
"""An entry's response as plain values, for a file: the `packed` of an `AddressEntry`, else what `pack` packs."""


class Sort(Enum):
    """Kind of a cached answer. Metrics count a failure as a denial (label `type`), as CoreDNS does."""

    SUCCESS = "success"
    DENIAL = "denial"  # NXDOMAIN and NODATA
    FAILURE = "failure"  # SERVFAIL and NOTIMP


def key_of(query: Query) -> bytes:
    """Cache key: the name in wire form and lower case, then type, class, and the bits DO and CD, 2 octets each, then
    the options that `forward` sends, each with its code and length.

    Queries that differ in RD share an entry, as in CoreDNS: a query without RD gets cached answers, too.
    """
    edns = query.edns
    bits = query.flags & Flag.CD
    if edns is not None and edns.dnssec_ok:
        bits |= DNSSEC_OK  # beside CD, which is another bit
    # Lower-casing a whole wire-form name is safe: length octets, at most 63, are below the letters.
    key = query.spelling.lower() + _key_tail.pack(query.qtype, query.qclass, bits)
    if edns is not None and edns.options:
        for code, data in forwarded_options(edns):
            key += pack_option_head(code, len(data)) + data
    return key


def options_of_key(key: bytes) -> Iterator[int]:
    """The codes of the options in a cache key."""
    at = 0
    while key[at]:  # the labels of the name
        at += 1 + key[at]
    at += 1 + _key_tail.size
    while at < len(key):
        code, length = unpack_option_head(key, at)
        yield code
        at += OPTION_HEAD_SIZE + length


class EntryOwner:
    """A client, with the entries of a table that its queries brought in and no other client has queried."""

    __slots__ = ("address", "keys", "octets", "tidy_at")

    def __init__(self, address: bytes) -> None:
        self.address = address
        self.octets = 0  # total size of its entries
        self.keys: deque[bytes] = deque()  # the oldest first; may include keys of entries it no longer owns
        self.tidy_at = 0  # number of keys at which the stale ones are removed


class History:
    """Query history and retry time of an entry, allocated only when needed."""

    __slots__ = ("hits", "last_asked", "retry_at")

    def __init__(self, born: float) -> None:
        self.hits = 0  # this and `last_asked` are set by `Prefetching`
        self.last_asked = born
        self.retry_at = 0.0  # earliest time of the next refresh


class CacheEntry:
    """A packed response with its TTL in whole seconds and the time it was cached. Times are monotonic seconds."""

    __slots__ = ("_history", "born", "owner", "packed", "sort", "ttl")

    def __init__(self, packed: bytes, sort: Sort, ttl: int, born: float) -> None:
        self.packed = packed
        self.sort = sort
        self.ttl = ttl
        self.born = born
        self.owner: EntryOwner | None = None  # set by the table
        self._history: History | None = None

    @property
    def history(self) -> History:
        """The history, created at the first access."""
        if self._history is None:
            self._history = History(self.born)
        return self._history

    def succeed(self, entry: "CacheEntry") -> None:
        """Take over the hits of `entry`, which this one replaces."""
        if entry._history is not None:
            self.history.hits = entry._history.hits

    def ticks(self, now: float) -> int:
        """The age in whole seconds."""
        return int(now - self.born)

    def left(self, now: float) -> int:
        """The remaining TTL; 0 or less once it is stale."""
        return self.ttl - int(now - self.born)

    def expire(self, now: float) -> None:
        """End the TTL, and let a refresh begin at once: the upstream has, or may have, another answer."""
        self.ttl = min(self.ttl, int(now - self.born))
        if self._history is not None:
            self._history.retry_at = 0.0

    def plain_content(self) -> PlainContent:
        content: PlainContent = marshal.loads(self.packed)
        return content

    def response(self, ttl: int) -> Response:
        """The response, unpacked, each record with this TTL, and with AA."""
        rcode, flags, answer, authority, additional = marshal.loads(self.packed)
        return Response(
            rcode,
            _unpack(answer, ttl) if answer else (),  # most answers have one section, and every hit runs this
            _unpack(authority, ttl) if authority else (),
            _unpack(additional, ttl) if additional else (),
            flags | Flag.AA,  # as CoreDNS, for stub resolvers that ignore answers without it
        )


def pack(response: Response) -> bytes:
    """The response packed for the cache, without TTLs and without EDNS (RFC 6891 section 6.2.6: hop by hop).

    Uses marshal, which reads back in a tenth of the time that parsing a message takes; the data never leaves this
    process: a file has the `PlainContent`.
    """
    flags = response.flags & ~response.cleared & _KEPT_FLAGS
    answer, authority, additional = response.answer, response.authority, response.additional
    return marshal.dumps(
        (
            int(response.rcode),
            flags,
            _pack(answer) if answer else (),  # as in `CacheEntry.response`
            _pack(authority) if authority else (),
            _pack(additional) if additional else (),
        )
    )


_ADDRESS_SIZES: Final = {RRType.A: 4, RRType.AAAA: 16}  # octets


class AddressEntry(CacheEntry):
    """An entry of a NOERROR response with nothing but addresses, all of the queried name.

    `packed` is the `address_entry_head` and the addresses, one after another: most entries are such, and it takes a
    tenth of the time of `pack`.
    """

    __slots__ = ()

    def plain_content(self) -> PlainContent:
        return self.packed

    def response(self, ttl: int) -> Response:
        return Response(0, (address_rrset(self.packed, ttl),), (), (), self.packed[0] | Flag.AA)


def entry_of(content: PlainContent, sort: Sort, ttl: int, born: float) -> CacheEntry:
    """An entry of the `CacheEntry.plain_content` of another one."""
    if isinstance(content, bytes):
        return AddressEntry(content, sort, ttl, born)
    return CacheEntry(marshal.dumps(content), sort, ttl, born)


def address_entry_head(flags: int, rtype: int) -> bytes:
    """The first octets of `AddressEntry.packed`, for the flags of the response, and the type A or AAAA."""
    return bytes((flags & _KEPT_FLAGS, rtype))


def address_rrset(packed: bytes, ttl: int) -> RRset:
    """The RRset of an `AddressEntry` with this TTL."""
    rtype = packed[1]
    size = _ADDRESS_SIZES[rtype]
    rdatas = tuple([packed[at : at + size] for at in range(2, len(packed), size)])
    return RRset(b"", rtype, ttl, rdatas, RRClass.IN)


def _pack(section: tuple[RRset, ...]) -> _PackedSection:
    return tuple([(owner, int(rtype), int(rclass), tuple(rdatas)) for owner, rtype, _, rdatas, rclass in section])


def _unpack(section: _PackedSection, ttl: int) -> tuple[RRset, ...]:
    return tuple([RRset(owner, rtype, ttl, rdatas, rclass) for owner, rtype, rclass, rdatas in section])


class CacheVerdict(NamedTuple):
    """The sort of an answer, and the TTL of all its records, 1 or more."""

    sort: Sort
    ttl: int


class Rules:
    """Which answers one `cache` directive keeps, and with which TTL."""

    def __init__(self, settings: Cache) -> None:
        self._success, self._denial = settings.success, settings.denial
        self._servfail = settings.servfail

    def make_entry(self, query: Query, response: Response, now: float, longest: int | None = None) -> CacheEntry | None:
        """Set the TTLs of an upstream's response, at most `longest`; the entry for it, None if it is not cached.

        Answers to queries without RD are not cached: an upstream that may not recurse can leave out data that other
        clients would get. (CoreDNS caches them and serves them to all clients.)
        """
        verdict = self.judge(query, response)
        if verdict is None:
            self.cap(response)
            return None
        ttl = verdict.ttl if longest is None else min(verdict.ttl, longest)
        _set_ttl(response, ttl)
        if not query.flags & Flag.RD or not self._keeps(verdict.sort, query.qname):
            return None
        return CacheEntry(pack(response), verdict.sort, ttl, now)

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

    def _keeps(self, sort: Sort, qname: Name) -> bool:
        """Whether this sort of answer may be cached for the name: `disable denial` covers failures too."""
        share = self._success if sort is Sort.SUCCESS else self._denial
        return not share.disabled or not is_below_any(qname, share.disabled)

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


def _set_ttl(response: Response, ttl: int) -> None:
    """Give all records this TTL."""
    if response.answer:  # most responses have one section
        response.answer = _with_ttl(response.answer, ttl)
    if response.authority:
        response.authority = _with_ttl(response.authority, ttl)
    if response.additional:
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
    return tuple([RRset(owner, rtype, ttl, rdatas, rclass) for owner, rtype, _, rdatas, rclass in rrsets])
