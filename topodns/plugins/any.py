"""The `any` plugin: a query of type ANY for any name gets one synthetic HINFO record (RFC 8482 section 4.2)."""

from typing import Final

from topodns.dns.message import Query, Response, RRset
from topodns.dns.rrtype import RRClass, RRType
from topodns.plugins.compatibility import same
from topodns.plugins.plugin import Plugin, parse_flag
from topodns.plugins.setup import BlockSetup, Install, everywhere
from topodns.query.plugin import ChainPart, Client, Resolution

_TTL: Final = 8482  # CoreDNS's
_CPU: Final = b"ANY obsoleted"
_OS: Final = b"See RFC 8482"
_HINFO: Final = bytes((len(_CPU),)) + _CPU + bytes((len(_OS),)) + _OS


def answer_any(query: Query, client: Client) -> Resolution | None:
    """The HINFO record, without AA as in CoreDNS; None for other types and classes."""
    if query.qtype != RRType.ANY or query.qclass != RRClass.IN:
        return None
    return Resolution(Response(answer=(RRset(b"", RRType.HINFO, _TTL, (_HINFO,)),), flags=0), "any")


def _setup(settings: bool, block: BlockSetup) -> Install:
    return everywhere(ChainPart(step=answer_any))


PLUGIN: Final = Plugin(
    name="any",
    coredns=same(),
    parse=parse_flag,
    setup=_setup,
)
