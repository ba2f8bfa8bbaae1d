"""SOA records: the synthetic one of an origin, as in CoreDNS, and the negative TTL that one gives."""

from functools import lru_cache
from typing import Final

from topodns.dns.message import RRset
from topodns.dns.name import MAX_WIRE
from topodns.dns.rrtype import RRType
from topodns.dns.wire_format import pack_soa_numbers

MAX_TTL: Final = 300  # seconds; CoreDNS caps the SOA's own TTL, not its MINIMUM

PRIMARY: Final = b"\x02ns\x03dns"  # labels before the origin in MNAME; MAILBOX: in RNAME
MAILBOX: Final = b"\x0ahostmaster"
# Labels before the origin of questions to which MNAME or RNAME is compressed beyond the origin.
SHARED_WITH_NAMES: Final = (b"\x03dns", MAILBOX)

_REFRESH, _RETRY, _EXPIRE = 7200, 1800, 86400


@lru_cache(maxsize=64)  # most negative answers have the same SOA; those in mixed case are evicted soon
def soa_rrset(
    origin_wire: bytes,
    serial: int,
    minimum: int,
    primary: bytes = PRIMARY,
    mailbox: bytes = MAILBOX,
    max_ttl: int = MAX_TTL,
) -> RRset:
    """The SOA of an origin, given in wire form in the case to be written. `minimum`: the negative TTL (RFC 2308).

    `primary` and `mailbox`: the labels before the origin in MNAME and RNAME, in wire form. TTLs are seconds; that of
    the record is `minimum`, at most `max_ttl`. Of the serial, the low 32 bits are taken. A MNAME or RNAME of more than
    255 octets is the origin itself.
    """
    primary, mailbox = (each if len(each) + len(origin_wire) <= MAX_WIRE else b"" for each in (primary, mailbox))
    numbers = pack_soa_numbers(serial & 0xFFFFFFFF, _REFRESH, _RETRY, _EXPIRE, minimum)
    rdata = primary + origin_wire + mailbox + origin_wire + numbers
    return RRset(origin_wire, RRType.SOA, min(minimum, max_ttl), (rdata,))


def negative_ttl(soa: RRset) -> int:
    """The TTL of a negative answer with this SOA: its own, at most its MINIMUM (RFC 2308 section 3)."""
    return min(soa.ttl, int.from_bytes(soa.rdatas[0][-4:], "big"))
