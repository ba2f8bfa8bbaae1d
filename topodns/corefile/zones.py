"""Server block keys and zone arguments: `[dns://|tls://]ZONE[:PORT]`, where a ZONE may be an address prefix.

A prefix expands to its reverse zones, as in CoreDNS: one zone at an octet (IPv4) or nibble (IPv6) boundary, otherwise
the zones at the next boundary that together cover it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from topodns.corefile.arguments import MAX_PORT, Network, expected_network, no_body, parse_network
from topodns.corefile.errors import ConfigError, may_show_key, shown, shown_word, unshown
from topodns.corefile.lexer import Token
from topodns.corefile.parser import Directive
from topodns.dns.name import ROOT, BadName, Name, parse_name, reverse_name


class ListenAt(NamedTuple):
    """The address of a listener; `host` "" is every address of both families."""

    host: str
    port: int
    tls: bool = False  # DNS over TLS (RFC 7858) alone; else UDP and TCP


@dataclass(frozen=True, slots=True)
class BlockKey:
    """An origin that a server block serves, at a port and over a transport; a key that is a prefix gives several."""

    origin: Name
    port: int
    tls: bool = False  # as in `ListenAt`

    def at(self, host: str) -> ListenAt:
        return ListenAt(host, self.port, self.tls)


TLS_PORT: Final = 853
_TRANSPORTS: Final = frozenset({"dns", "tls"})
_TRANSPORTS_ELSEWHERE: Final = frozenset({"https", "https3", "grpc", "quic", "unix"})
_KEY: Final = re.compile(r"(?:(?P<scheme>[^/:]*)://)?(?P<origin>.*?)(?::(?P<port>[0-9]+))?", re.DOTALL)
_PREFIX_LIKE: Final = re.compile(r"[0-9A-Fa-f:.]+/[0-9]+")


class _Key(NamedTuple):
    origins: tuple[Name, ...]
    port: int | None
    tls: bool


def parse_keys(keys: Iterable[Token], default_port: int) -> list[tuple[Token, BlockKey]]:
    """(source token, key) pairs; a prefix gives one pair for each of its reverse zones. Raises ConfigError."""
    return [(token, key) for token in keys for key in _block_keys(token, default_port)]


def _block_keys(token: Token, default_port: int) -> list[BlockKey]:
    parsed = _parse(token, token.text)
    by_transport = TLS_PORT if parsed.tls else default_port
    port = by_transport if parsed.port is None else parsed.port
    return [BlockKey(origin, port, parsed.tls) for origin in parsed.origins]


def parse_origins(directive: Directive, words: Iterable[str]) -> tuple[Name, ...]:
    """The origins of the zones that these words of a directive name, without duplicates. Raises ConfigError.

    A transport and a port have no effect, as in CoreDNS.
    """
    return tuple(dict.fromkeys(origin for word in words for origin in _parse(directive, word).origins))


def fallthrough(option: Directive) -> tuple[Name, ...]:
    """The origins of an option `fallthrough [ZONES...]`; the root without arguments. Raises ConfigError."""
    no_body(option)
    return parse_origins(option, option.args) or (ROOT,)


def _parse(place: Token | Directive, text: str) -> _Key:
    match = _KEY.fullmatch(text)
    assert match is not None  # every part is optional
    _check_scheme(place, text, match["scheme"])
    return _Key(_origins(place, text, match["origin"]), _port(place, text, match["port"]), match["scheme"] == "tls")


def _check_scheme(place: Token | Directive, text: str, scheme: str | None) -> None:
    if scheme is None or scheme in _TRANSPORTS:
        return
    if scheme in _TRANSPORTS_ELSEWHERE:
        raise place.error(f"CoreDNS has the transport '{scheme}://', topodns does not")
    raise place.error(f"unknown transport {_found(place, text, f'{scheme}://')}, expected dns:// or tls://")


def _port(place: Token | Directive, text: str, digits: str | None) -> int | None:
    if digits is None:
        return None
    if len(digits) > 5 or int(digits) > MAX_PORT:
        raise place.error(f"found the port {_found(place, text, digits)}, expected a number from 0 to {MAX_PORT}")
    return int(digits)


def _origins(place: Token | Directive, text: str, origin: str) -> tuple[Name, ...]:
    if _PREFIX_LIKE.fullmatch(origin):
        network = parse_network(origin)
        if network is None:
            expected = expected_network(origin, "a whole address and a prefix length, such as 10.0.0.0/8")
            raise place.error(f"found {_found(place, text, origin)}, expected {expected}")
        return reverse_origins(network)
    return (_origin(place, text, origin),)


def _origin(place: Token | Directive, text: str, origin: str) -> Name:
    if not origin or ":" in origin:
        raise _no_zone(place, text)
    if not origin.isascii():
        found = _found(place, text, origin)
        raise place.error(f"found the zone {found}, expected ASCII; write an IDN in its A-label (xn--) form")
    try:
        return parse_name(origin)
    except BadName as problem:
        found = _found(place, text, origin)
        # `problem` quotes the name, so use it only if the name may be shown.
        raise place.error(f"found no zone's name: {problem if found == shown(origin) else found}") from None


def _found(place: Token | Directive, text: str, part: str) -> str:
    """A part of `text` for a message; of a block's key in an imported file that is like no zone, only the length."""
    hidden = isinstance(place, Token) and place.imported and not may_show_key(text)
    return unshown(part) if hidden else shown_word(part)


def _no_zone(place: Token | Directive, text: str) -> ConfigError:
    found = _found(place, text, text)
    return place.error(f"found {found}, expected a zone and perhaps a port, such as 'example.org:53' or '.:53'")


def reverse_origins(network: Network) -> tuple[Name, ...]:
    """The reverse zones that together cover exactly this prefix, lowest address first."""
    bits_per_label = 8 if network.version == 4 else 4
    labels = -(-network.prefixlen // bits_per_label)
    dropped = network.max_prefixlen // bits_per_label - labels
    parts = network.subnets(new_prefix=labels * bits_per_label)
    return tuple(reverse_name(part.network_address.packed)[dropped:] for part in parts)
