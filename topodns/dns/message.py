"""DNS queries, RRsets and responses as values (RFC 1035 section 4, RFC 6891).

`wire_reader` and `wire_writer` convert them from and to bytes. `Query` and `RRset` are named tuples because every query
that misses the packet cache makes them, and a frozen dataclass costs twice as much.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from topodns.dns.name import Name
from topodns.dns.rrtype import Rcode, RRClass


class Flag:
    """The header bits except opcode and RCODE (RFC 1035 4.1.1, RFC 4035 3)."""

    QR: Final = 0x8000
    AA: Final = 0x0400
    TC: Final = 0x0200
    RD: Final = 0x0100
    RA: Final = 0x0080
    AD: Final = 0x0020
    CD: Final = 0x0010


class Option:
    """The EDNS options in use (IANA registry; the last two are topodns' own, from the local-use range)."""

    NSID: Final = 3
    CLIENT_SUBNET: Final = 8
    COOKIE: Final = 10
    TCP_KEEPALIVE: Final = 11
    EXTENDED_ERROR: Final = 15
    NODE_IDENTITY: Final = 65518
    CLIENT_POD: Final = 65519  # beside it: the packed address of the client; in a reply, for whom the answer is


class EdeCode:
    """The INFO-CODEs of RFC 8914 section 4 in use."""

    OTHER: Final = 0
    STALE_ANSWER: Final = 3
    NOT_READY: Final = 14
    BLOCKED: Final = 15
    FILTERED: Final = 17
    NO_REACHABLE_AUTHORITY: Final = 22
    NETWORK_ERROR: Final = 23
    NAME_CLIENT: Final = 65519  # for private use: a node cache has to name the client by CLIENT_POD


MAX_TTL: Final = (1 << 31) - 1  # seconds (RFC 2181 section 8)


class Edns(NamedTuple):
    """The OPT record of a query (RFC 6891 section 6.1.2). `options` keeps the order and repeats of the wire."""

    udp_payload_size: int  # as received; below 512 means 512
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
    """A query with its one question. `qname` is lower-cased for lookups; answers repeat `spelling`."""

    id: int
    flags: int  # the whole second header word, as received
    qname: Name  # lower-case labels, leaf first; () is the root
    spelling: bytes  # the qname in wire form and the case received, with its final zero octet
    qtype: int
    qclass: int
    edns: Edns | None
    size: int  # octets of the whole message


class RRset(NamedTuple):
    """Records of one owner, type, class and TTL. `owner`: wire form, in the case to be written; b"" is the qname."""

    owner: bytes
    rtype: int
    ttl: int  # seconds, 0..MAX_TTL
    rdatas: tuple[bytes, ...]  # each a record's RDATA, names inside uncompressed
    rclass: int = RRClass.IN


class Ede(NamedTuple):
    """An Extended DNS Error (RFC 8914): sent only in replies to queries with EDNS."""

    code: int
    text: str


@dataclass(slots=True)
class Response:
    """The response to a query. A plugin builds it, the plugins before that one may change it, `wire_writer` encodes it.

    The header has QR, the query's opcode, RD and CD, `flags`, and TC if records are cut; `cleared` is removed last.
    """

    rcode: int = Rcode.NOERROR
    answer: tuple[RRset, ...] = ()
    authority: tuple[RRset, ...] = ()
    additional: tuple[RRset, ...] = ()
    flags: int = Flag.AA
    cleared: int = 0
    ede: Ede | None = None
    options: tuple[tuple[int, bytes], ...] = ()  # EDNS options of the reply, e.g. NSID or ECS


DEFAULT_UDP_SIZE = 1232  # DNS flag day 2020, RFC 9715
