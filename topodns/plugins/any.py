"""The `any` directive: a query for type ANY gets one short made-up HINFO (RFC 8482 section 4.2), whatever the name."""

from typing import Final

from topodns.dns.message import Query, Response, RRClass, RRset, RRType
from topodns.resolve.step import Client, Resolution

_TTL: Final = 8482  # CoreDNS's
_CPU: Final = b"ANY obsoleted"
_OS: Final = b"See RFC 8482"
_HINFO: Final = bytes((len(_CPU),)) + _CPU + bytes((len(_OS),)) + _OS


def answer_any(query: Query, client: Client) -> Resolution | None:
    """A step: the HINFO, without AA as in CoreDNS."""
    if query.qtype != RRType.ANY or query.qclass != RRClass.IN:
        return None
    return Resolution(Response(answer=(RRset(b"", RRType.HINFO, _TTL, (_HINFO,)),), flags=0), "any")
