"""The `log` directive: which exchanges are logged, and as what line in CoreDNS's format language.

Of a query only its name is free text, and `name_text` escapes it: no query can forge or break a line.
Writing lines is the edge's business.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from typing import Final, NamedTuple

from topodns.dns.message import RCODE_NAMES, TYPE_NAMES, Flag, Query, RRClass
from topodns.dns.names import Name, is_subdomain, name_text
from topodns.resolve.response_type import ResponseType, response_class, response_type
from topodns.resolve.step import Client, Resolution
from topodns.settings.steps import LogRule

EMPTY: Final = "-"

_MIN_UDP_SIZE: Final = 512  # RFC 6891 section 6.2.3
_MAX_TCP_SIZE: Final = 65535
_FLAGS: Final = (Flag.QR, Flag.AA, Flag.TC, Flag.RD, Flag.RA, Flag.AD, Flag.CD)
_CLASS_NAMES: Final[Mapping[int, str]] = {int(known): known.name for known in RRClass}
_PLACEHOLDER: Final = re.compile(r"(\{[^{}]*\})")


class Exchange(NamedTuple):
    """A query and what became of it."""

    query: Query
    client: Client
    rcode: int | None  # None: nothing was sent
    flags: int  # the second header word of what was sent
    rsize: int  # octets sent; 0 for nothing
    duration: float  # seconds from the query's arrival to its reply
    kind: ResponseType  # OTHER_ERROR where nothing was sent
    local: str  # the address listened on, as text


Formatter = Callable[[Exchange], str]
_Rule = tuple[tuple[Name, ...], frozenset[str], Formatter]


class QueryLog:
    """The `log` directives of a server block that listens on `local` ("" is every address); `write` takes the lines."""

    def __init__(self, rules: Sequence[LogRule], write: Callable[[str], object], local: str = "") -> None:
        self._rules: list[_Rule] = [(rule.origins, rule.classes, compile_format(rule.format)) for rule in rules]
        self._write = write
        self._local = local or "::"

    def __call__(
        self, query: Query, client: Client, resolution: Resolution | None, reply: bytes | None, seconds: float
    ) -> bool:
        """Log this exchange if a rule asks for it, and say whether one did. No resolution and no reply: dropped."""
        rule = self._rule_for(query.qname)
        if rule is None:
            return False
        exchange = self._exchange(query, client, resolution, reply, seconds)
        _, classes, formatter = rule
        if "all" not in classes and response_class(exchange.kind).value not in classes:
            return False
        self._write(formatter(exchange))
        return True

    def _rule_for(self, qname: Name) -> _Rule | None:
        """The first rule that covers the name, also when its classes will say no (as CoreDNS)."""
        return next((rule for rule in self._rules if any(is_subdomain(qname, origin) for origin in rule[0])), None)

    def _exchange(
        self, query: Query, client: Client, resolution: Resolution | None, reply: bytes | None, seconds: float
    ) -> Exchange:
        if resolution is None or reply is None:
            return Exchange(query, client, None, 0, 0, seconds, ResponseType.OTHER_ERROR, self._local)
        kind = response_type(query, resolution.response)
        flags = int.from_bytes(reply[2:4], "big")
        return Exchange(query, client, resolution.response.rcode, flags, len(reply), seconds, kind, self._local)


def compile_format(text: str) -> Formatter:
    """A function that fills this format's placeholders in, as CoreDNS does.

    An unknown placeholder is literal text; {/LABEL} of unknown metadata is "-".
    """
    parts = [_part(piece) for piece in _PLACEHOLDER.split(text) if piece]
    return lambda exchange: "".join([part(exchange) for part in parts])


def _part(piece: str) -> Formatter:
    placeholder = _PLACEHOLDERS.get(piece)
    if placeholder is not None:
        return placeholder
    literal = EMPTY if piece.startswith("{/") and piece.endswith("}") else piece
    return lambda _: literal


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def type_text(qtype: int) -> str:
    """The mnemonic of a type, or TYPE and its number (RFC 3597 section 5): what lines of the log call it."""
    return TYPE_NAMES.get(qtype) or _rare_type(qtype) or f"TYPE{qtype}"


def _rare_type(qtype: int) -> str | None:
    from topodns.dns.presentation import type_name  # here, because dnslib takes memory that most need not spend

    return type_name(qtype)


def _class(exchange: Exchange) -> str:
    return _CLASS_NAMES.get(exchange.query.qclass) or f"CLASS{exchange.query.qclass}"


def _opcode(exchange: Exchange) -> str:
    return str(exchange.query.flags >> 11 & 15)


def _dnssec_ok(exchange: Exchange) -> str:
    edns = exchange.query.edns
    return "true" if edns is not None and edns.dnssec_ok else "false"


def _bufsize(exchange: Exchange) -> str:
    if exchange.client.transport == "tcp":
        return str(_MAX_TCP_SIZE)
    edns = exchange.query.edns
    return str(max(_MIN_UDP_SIZE, edns.udp_payload_size if edns is not None else 0))


def _rcode(exchange: Exchange) -> str:
    if exchange.rcode is None:
        return EMPTY
    return RCODE_NAMES.get(exchange.rcode) or str(exchange.rcode)


def _response_flags(exchange: Exchange) -> str:
    if exchange.rcode is None:
        return EMPTY
    return ",".join(flag.name.lower() for flag in _FLAGS if exchange.flags & flag)


def _duration(exchange: Exchange) -> str:
    # Nanoseconds are all that CoreDNS prints, and it never prints an exponent.
    return f"{exchange.duration:.9f}".rstrip("0").rstrip(".") + "s"


_PLACEHOLDERS: Final[Mapping[str, Formatter]] = {
    "{type}": lambda exchange: type_text(exchange.query.qtype),
    "{name}": lambda exchange: name_text(exchange.query.qname),
    "{class}": _class,
    "{proto}": lambda exchange: exchange.client.transport,
    "{remote}": lambda exchange: _bracketed(str(ip_address(exchange.client.address))),
    "{port}": lambda exchange: str(exchange.client.port),
    "{local}": lambda exchange: _bracketed(exchange.local),
    "{size}": lambda exchange: str(exchange.query.size),
    "{>id}": lambda exchange: str(exchange.query.id),
    "{>opcode}": _opcode,
    "{>do}": _dnssec_ok,
    "{>bufsize}": _bufsize,
    "{rcode}": _rcode,
    "{rsize}": lambda exchange: str(exchange.rsize),
    "{duration}": _duration,
    "{>rflags}": _response_flags,
    "{/log/type}": lambda exchange: exchange.kind.value,
    "{/log/class}": lambda exchange: response_class(exchange.kind).value,
}
