"""One answer as it is kept: packed, because thirty thousand trees of objects would take several times the room."""

import marshal
import struct
from collections import deque
from enum import Enum
from typing import Final

from topodns.dns.message import Flag, Query, Response, RRset

_KEPT_FLAGS: Final = int(Flag.RA | Flag.AD)
# CoreDNS sets AA in what comes from its cache, for stub resolvers that ignore answers without it.
_AUTHORITATIVE: Final = int(Flag.AA)
_CD: Final = int(Flag.CD)
_DO: Final = 0x8000  # as in an OPT record, and beside CD in a key

_key_tail: Final = struct.Struct("!HHH")

_PackedRRset = tuple[bytes, int, int, tuple[bytes, ...]]
_PackedSection = tuple[_PackedRRset, ...]


class Sort(Enum):
    """What is told apart; the value is CoreDNS's label, and a failure counts as a denial."""

    SUCCESS = "success"
    DENIAL = "denial"  # NXDOMAIN and NODATA
    FAILURE = "failure"  # SERVFAIL and NOTIMP


def key_of(query: Query) -> bytes:
    """Name without case, type, class, DO and CD: all of a question that an upstream's answer may differ by.

    RD is not part of it, as in CoreDNS: what is known is told to those as well who do not want it fetched.
    """
    edns = query.edns
    bits = query.flags & _CD
    if edns is not None and edns.dnssec_ok:
        bits |= _DO
    # Lowering a whole wire-form name is safe: length octets, at most 63, lie below the letters.
    return query.spelling.lower() + _key_tail.pack(query.qtype, query.qclass, bits)


class Owner:
    """A client by whose questions entries of a table came in, while nobody else has asked for them."""

    __slots__ = ("address", "keys", "octets", "tidy_at")

    def __init__(self, address: bytes) -> None:
        self.address = address
        self.octets = 0  # of its entries
        self.keys: deque[bytes] = deque()  # theirs, the oldest first, and some of entries that are its own no more
        self.tidy_at = 0  # so many keys


class History:
    """What is noted of an entry only where there is something to note."""

    __slots__ = ("denied_at", "hits", "last_asked", "retry_at")

    def __init__(self, born: float) -> None:
        self.hits = 0  # these two are `Prefetching`'s
        self.last_asked = born
        self.retry_at = 0.0  # no refresh before this
        self.denied_at = 0.0  # when an upstream first said otherwise and was not believed; 0.0 never


class Entry:
    """A packed response, since when it is kept and for how long. Times are monotonic seconds, `ttl` whole ones."""

    __slots__ = ("_history", "born", "owner", "packed", "sort", "ttl")

    def __init__(self, packed: bytes, sort: Sort, ttl: int, born: float) -> None:
        self.packed = packed
        self.sort = sort
        self.ttl = ttl
        self.born = born
        self.owner: Owner | None = None  # the table's to set
        self._history: History | None = None

    @property
    def history(self) -> History:
        """Its notes, made when they are first wanted."""
        if self._history is None:
            self._history = History(self.born)
        return self._history

    def succeed(self, entry: "Entry") -> None:
        """Be as popular as the entry that this one is instead of."""
        if entry._history is not None:
            self.history.hits = entry._history.hits

    def ticks(self, now: float) -> int:
        """The whole seconds that it has been kept."""
        return int(now - self.born)

    def left(self, now: float) -> int:
        """What is left of its TTL: 0 or less once it is stale."""
        return self.ttl - int(now - self.born)

    def response(self, ttl: int) -> Response:
        """The response as it goes out of the cache, each record with this TTL."""
        rcode, flags, answer, authority, additional = marshal.loads(self.packed)
        return Response(
            rcode,
            _unpack(answer, ttl) if answer else (),  # mostly one section has records, and this is each hit
            _unpack(authority, ttl) if authority else (),
            _unpack(additional, ttl) if additional else (),
            flags | _AUTHORITATIVE,
        )


def pack(response: Response) -> bytes:
    """Everything of a response that is kept: no TTLs, and nothing of its EDNS (RFC 6891 section 6.2.6: hop by hop).

    By marshal, because it reads back in a tenth of the time that a message takes; it never leaves this process.
    """
    flags = response.flags & ~response.cleared & _KEPT_FLAGS
    sections = (_pack(section) for section in (response.answer, response.authority, response.additional))
    return marshal.dumps((int(response.rcode), flags, *sections))


def pack_plain(rrset: RRset, flags: int) -> bytes:
    """`pack` of a response that is nothing but this RRset."""
    owner, rtype, _, rdatas, rclass = rrset
    return marshal.dumps((0, flags & _KEPT_FLAGS, ((owner, rtype, rclass, rdatas),), (), ()))


def _pack(section: tuple[RRset, ...]) -> _PackedSection:
    return tuple((rrset.owner, int(rrset.rtype), int(rrset.rclass), tuple(rrset.rdatas)) for rrset in section)


def _unpack(section: _PackedSection, ttl: int) -> tuple[RRset, ...]:
    return tuple([RRset(owner, rtype, ttl, rdatas, rclass) for owner, rtype, rclass, rdatas in section])
