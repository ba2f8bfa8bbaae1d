"""The `local` plugin: answers localhost, and the zones 0, 127 and 255.in-addr.arpa, itself."""

from collections.abc import Mapping
from typing import Final

from topodns.corefile.arguments import fold_options, no_args, only_choice
from topodns.corefile.parser import Directive
from topodns.dns.message import Query, Response, RRset
from topodns.dns.name import IN_ADDR_ARPA, Name, is_subdomain, name_wire
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.dns.wire_format import pack_soa_numbers
from topodns.plugins.compatibility import same
from topodns.plugins.context import Context
from topodns.plugins.plugin import Plugin
from topodns.plugins.setup import BlockSetup, Install, everywhere
from topodns.query.counters import LocalhostAnswer
from topodns.query.plugin import ChainPart, Client, Resolution


def parse_local(directive: Directive, _: Context) -> bool:
    """`local { localhost_prefix on }`: CoreDNS's default; its `off` is refused."""

    def localhost_prefix(option: Directive, _: bool) -> bool:
        if only_choice(option, {"on": True, "off": False}):
            return True
        raise option.error("CoreDNS has 'localhost_prefix off', topodns does not")

    no_args(directive)
    return fold_options(directive, True, {"localhost_prefix": localhost_prefix})


_TTL: Final = 604800
_LOCALHOST: Final[Name] = ("localhost",)
_LOOPBACK_PTR: Final[Name] = ("1", "0", "0", "127", *IN_ADDR_ARPA)
_ORIGINS: Final[tuple[Name, ...]] = (_LOCALHOST, *((octet, *IN_ADDR_ARPA) for octet in ("0", "127", "255")))

_LOCALHOST_WIRE: Final = name_wire(_LOCALHOST)
_SOA: Final = _LOCALHOST_WIRE + name_wire(("root", "localhost")) + pack_soa_numbers(1, 0, 0, 0, _TTL)
_ADDRESSES: Final[Mapping[int, bytes]] = {RRType.A: bytes((127, 0, 0, 1)), RRType.AAAA: bytes(15) + b"\1"}
_APEX: Final[Mapping[int, bytes]] = {RRType.SOA: _SOA, RRType.NS: _LOCALHOST_WIRE}


def answer_local(query: Query, client: Client) -> Resolution | None:
    """A and AAAA of localhost, the PTR of 127.0.0.1, SOA and NS of the zones. None for other names and classes.

    All else in the zones is NODATA or NXDOMAIN. Names that begin or end with the label localhost have its addresses:
    search lists produce names that begin with it.
    """
    if query.qclass != RRClass.IN:
        return None
    if _is_or_becomes_localhost(query.qname):
        return Resolution(_answer(query, _ADDRESSES.get(query.qtype)), "local", detail=LocalhostAnswer())
    for origin in _ORIGINS:
        if is_subdomain(query.qname, origin):
            return Resolution(_in_origin(query, origin), "local")
    return None


def _is_or_becomes_localhost(qname: Name) -> bool:
    return len(qname) > 1 and (qname[-1:] == _LOCALHOST or qname[:1] == _LOCALHOST)


def _in_origin(query: Query, origin: Name) -> Response:
    if query.qname == origin:
        addresses = _ADDRESSES if origin == _LOCALHOST else {}
        return _answer(query, addresses.get(query.qtype) or _APEX.get(query.qtype))
    spelled_origin = query.spelling[-len(name_wire(origin)) :]
    if query.qname == _LOOPBACK_PTR:
        return _answer(query, _LOCALHOST_WIRE if query.qtype == RRType.PTR else None, spelled_origin)
    return _negative(Rcode.NXDOMAIN, spelled_origin)


def _answer(query: Query, rdata: bytes | None, origin: bytes = b"") -> Response:
    if rdata is None:
        return _negative(Rcode.NOERROR, origin)
    return Response(answer=(RRset(b"", query.qtype, _TTL, (rdata,)),), flags=0)


def _negative(rcode: int, origin: bytes) -> Response:
    return Response(rcode, authority=(RRset(origin, RRType.SOA, _TTL, (_SOA,)),), flags=0)


def _setup(settings: bool, block: BlockSetup) -> Install:
    return everywhere(ChainPart(step=answer_local))


PLUGIN: Final = Plugin(
    name="local",
    coredns=same(),
    parse=parse_local,
    setup=_setup,
)
