"""The values of a DNS exchange: what was asked and what was decided (RFC 1035 section 4, RFC 6891).

Values only; bytes are `wire`'s business. `Query` and `RRset` are named tuples because one is made per query
on the miss path, where a frozen dataclass costs twice as much.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from topodns.dns.names import Name


class Rcode(IntEnum):
    """RFC 6895 section 2.3; 16 and above need EDNS."""

    NOERROR = 0
    FORMERR = 1
    SERVFAIL = 2
    NXDOMAIN = 3
    NOTIMP = 4
    REFUSED = 5
    BADVERS = 16


class RRType(IntEnum):
    """The types this server has a reason to name; any other type is a plain int."""

    A = 1
    NS = 2
    CNAME = 5
    SOA = 6
    PTR = 12
    HINFO = 13
    MX = 15
    TXT = 16
    AAAA = 28
    SRV = 33
    NAPTR = 35
    OPT = 41
    DS = 43
    RRSIG = 46
    NSEC = 47
    DNSKEY = 48
    NSEC3 = 50
    SVCB = 64
    HTTPS = 65
    IXFR = 251
    AXFR = 252
    ANY = 255


class RRClass(IntEnum):
    IN = 1
    CH = 3
    HS = 4
    ANY = 255


class Flag(IntEnum):
    """The header bits beside opcode and rcode (RFC 1035 4.1.1, RFC 4035 3). Not an IntFlag: its `|` is slow."""

    QR = 0x8000
    AA = 0x0400
    TC = 0x0200
    RD = 0x0100
    RA = 0x0080
    AD = 0x0020
    CD = 0x0010


class Option(IntEnum):
    """EDNS options we read or write (IANA registry; NODE_IDENTITY is ours, from the local-use range)."""

    NSID = 3
    CLIENT_SUBNET = 8
    COOKIE = 10
    TCP_KEEPALIVE = 11
    EXTENDED_ERROR = 15
    NODE_IDENTITY = 65518


class EdeCode(IntEnum):
    """RFC 8914 section 4, the codes in use here."""

    OTHER = 0
    NOT_READY = 14
    BLOCKED = 15
    FILTERED = 17
    NO_REACHABLE_AUTHORITY = 22
    NETWORK_ERROR = 23


class Edns(NamedTuple):
    """The OPT record of a query (RFC 6891 section 6.1.2). `options` keeps the order and repeats of the wire."""

    udp_payload_size: int  # as sent; below 512 means 512
    version: int
    dnssec_ok: bool
    options: tuple[tuple[int, bytes], ...] = ()

    def option(self, code: int) -> bytes | None:
        """The data of the first option with this code, or None."""
        for found, data in self.options:
            if found == code:
                return data
        return None


class Query(NamedTuple):
    """One question as received. `qname` is lower-cased for lookups, `spelling` is what answers echo."""

    id: int
    flags: int  # the whole second header word, as received
    qname: Name  # lower-case labels, leaf first; () is the root
    spelling: bytes  # the qname in wire form as spelled, with its final zero octet
    qtype: int
    qclass: int
    edns: Edns | None
    size: int  # octets of the whole message


class RRset(NamedTuple):
    """All records of one owner and type. `owner` is a wire-form name as it is to be spelled; b"" is the qname."""

    owner: bytes
    rtype: int
    ttl: int  # seconds, 0..2**31-1 (RFC 2181 section 8)
    rdatas: tuple[bytes, ...]  # each a record's RDATA, names inside uncompressed
    rclass: int = RRClass.IN


class Ede(NamedTuple):
    """An Extended DNS Error (RFC 8914): shown only to requesters that sent EDNS."""

    code: int
    text: str


@dataclass(slots=True)
class Response:
    """What we decided about a query. A step builds it; the wrappers of its server block may change it; wire writes it.

    `flags` are set in the header (AA by default), `cleared` are taken out last, RD and CD are copied from the query.
    """

    rcode: int = Rcode.NOERROR
    answer: tuple[RRset, ...] = ()
    authority: tuple[RRset, ...] = ()
    additional: tuple[RRset, ...] = ()
    flags: int = Flag.AA
    cleared: int = 0
    ede: Ede | None = None
    options: tuple[tuple[int, bytes], ...] = ()  # EDNS options of the reply, e.g. NSID or ECS


TYPE_NAMES: Final[Mapping[int, str]] = {int(t): t.name for t in RRType}
RCODE_NAMES: Final[Mapping[int, str]] = {int(r): r.name for r in Rcode}
