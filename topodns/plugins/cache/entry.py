"""A cache entry: one answer, packed, because thirty thousand trees of objects would take several times the memory."""

import marshal
import struct
from collections import deque
from enum import Enum
from typing import Final

from topodns.dns.message import Flag, Query, Response, RRset
from topodns.dns.rrtype import RRClass, RRType
from topodns.dns.wire_format import DNSSEC_OK, pack_option_head
from topodns.query.forwarded_options import forwarded_options

_KEPT_FLAGS: Final = Flag.RA | Flag.AD  # both in the lower octet

_key_tail: Final = struct.Struct("!HHH")

_PackedRRset = tuple[bytes, int, int, tuple[bytes, ...]]
_PackedSection = tuple[_PackedRRset, ...]


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
        """End the TTL, and let a refresh begin at once: the upstream has said that it has another answer."""
        self.ttl = min(self.ttl, int(now - self.born))
        if self._history is not None:
            self._history.retry_at = 0.0

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
    process.
    """
    flags = response.flags & ~response.cleared & _KEPT_FLAGS
    sections = (_pack(section) for section in (response.answer, response.authority, response.additional))
    return marshal.dumps((int(response.rcode), flags, *sections))


_ADDRESS_SIZES: Final = {RRType.A: 4, RRType.AAAA: 16}  # octets


class AddressEntry(CacheEntry):
    """An entry of a NOERROR response with nothing but addresses, all of the queried name.

    `packed` is the `address_entry_head` and the addresses, one after another: most entries are such, and it takes a
    tenth of the time of `pack`.
    """

    __slots__ = ()

    def response(self, ttl: int) -> Response:
        return Response(0, (address_rrset(self.packed, ttl),), (), (), self.packed[0] | Flag.AA)


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
    return tuple((rrset.owner, int(rrset.rtype), int(rrset.rclass), tuple(rrset.rdatas)) for rrset in section)


def _unpack(section: _PackedSection, ttl: int) -> tuple[RRset, ...]:
    return tuple([RRset(owner, rtype, ttl, rdatas, rclass) for owner, rtype, rclass, rdatas in section])
