"""The SOA record of an origin, as CoreDNS makes it up."""

from functools import lru_cache
from struct import Struct
from typing import Final

from topodns.dns.message import RRset, RRType

MAX_TTL: Final = 300  # seconds; CoreDNS caps the SOA's own TTL, not its minimum

_PRIMARY: Final = b"\x02ns\x03dns"
_MAILBOX: Final = b"\x0ahostmaster"
_NUMBERS: Final = Struct("!IIIII")
_SOA: Final = int(RRType.SOA)
_REFRESH, _RETRY, _EXPIRE = 7200, 1800, 86400


@lru_cache(maxsize=64)  # most negative answers carry the same one; spellings in mixed case pass through
def soa_rrset(origin_wire: bytes, serial: int, minimum: int) -> RRset:
    """The SOA under the origin's name as it is to be spelled, wire form. `minimum` is the negative TTL (RFC 2308)."""
    numbers = _NUMBERS.pack(serial & 0xFFFFFFFF, _REFRESH, _RETRY, _EXPIRE, minimum)
    rdata = _PRIMARY + origin_wire + _MAILBOX + origin_wire + numbers
    return RRset(origin_wire, _SOA, min(minimum, MAX_TTL), (rdata,))
