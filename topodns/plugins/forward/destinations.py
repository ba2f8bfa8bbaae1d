"""Destinations of `forward`: `[dns://|tls://]ADDRESS[:PORT]`, or a file in resolv.conf format with name servers."""

import os
import re
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address
from typing import Final

from topodns.corefile.arguments import MAX_PORT
from topodns.corefile.errors import ConfigError, shown
from topodns.corefile.parser import Directive
from topodns.corefile.resolv_conf import load_nameservers
from topodns.dns.name import BadName, parse_name
from topodns.plugins.context import Context
from topodns.plugins.forward.settings import UpstreamAddress, UpstreamTransport

EXPECTED: Final = "ADDRESS[:PORT], tls://ADDRESS[:PORT] or a file like /etc/resolv.conf"

_DEFAULT_PORTS: Final = {UpstreamTransport.DNS: 53, UpstreamTransport.TLS: 853}
_ELSEWHERE: Final = {
    "https": "DNS over HTTPS; most such servers answer tls://ADDRESS as well",
    "https3": "DNS over HTTP/3; most such servers answer tls://ADDRESS as well",
    "quic": "DNS over QUIC; most such servers answer tls://ADDRESS as well",
    "grpc": "gRPC; write the address that the server has for DNS itself",
    "unix": "sockets in the file system; write the address that the server has for DNS",
}
# `%` is followed by the TLS server name after tls:// (as in CoreDNS), otherwise by the interface (RFC 4007 section 11).
_BRACKETED: Final = re.compile(r"\[(?P<host>[0-9A-Fa-f:.]+)(?:%(?P<of>[^\[\]:%]+))?](?::(?P<port>[0-9]+))?")
_COLONS: Final = re.compile(r"(?P<host>[0-9A-Fa-f.]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*)(?:%(?P<of>[^\[\]:%]+))?(?P<port>)")
_DOTTED: Final = re.compile(r"(?P<host>[0-9.]+)(?:%(?P<of>[^\[\]:%]+))?(?::(?P<port>[0-9]+))?")


def upstreams_of(
    directive: Directive, words: Iterable[str], context: Context, server_name: str
) -> tuple[UpstreamAddress, ...]:
    """The upstream addresses given by `words`, in order, without duplicates; at least one.

    `server_name` applies to all TLS upstreams; "" lets each have its own behind `%`. Raises ConfigError.
    """
    found = [address for word in words for address in _of_word(directive, word, context, server_name)]
    if not found:
        raise directive.error(f"'{directive.name}' has only files without a name server, expected at least one")
    return tuple(dict.fromkeys(found))


def _of_word(directive: Directive, word: str, context: Context, server_name: str) -> list[UpstreamAddress]:
    if not word:
        raise directive.error(f"'{directive.name}' has '', expected {EXPECTED}")
    scheme, separator, rest = word.rpartition("://")
    transport = _transport(directive, word, scheme) if separator else UpstreamTransport.DNS
    match = _BRACKETED.fullmatch(rest) or _COLONS.fullmatch(rest) or _DOTTED.fullmatch(rest)
    if match is not None:
        host = _host(directive, word, match["host"])
        port = _port(directive, word, match["port"]) or _DEFAULT_PORTS[transport]
        return [_at(directive, UpstreamAddress(host, port, transport, server_name), word, match["of"] or "")]
    path = os.path.join(context.directory, word)
    if separator or not ("/" in word or os.path.exists(path)):
        raise _no_address(directive, word)
    return [UpstreamAddress(host, 53) for host in load_nameservers(context.readable_file(directive, word))]


def _transport(directive: Directive, word: str, scheme: str) -> UpstreamTransport:
    if scheme in _ELSEWHERE:
        raise directive.error(f"'{directive.name}' has {shown(word)}, but topodns does not speak {_ELSEWHERE[scheme]}")
    for transport in UpstreamTransport:
        if transport.value == scheme:
            return transport
    raise directive.error(f"'{directive.name}' has {shown(word)}, expected {EXPECTED}")


def _host(directive: Directive, word: str, host: str) -> str:
    try:
        return str(ip_address(host))
    except ValueError:
        raise _no_address(directive, word) from None


def _port(directive: Directive, word: str, digits: str | None) -> int | None:
    if not digits:
        return None
    if len(digits) > 5 or not 1 <= int(digits) <= MAX_PORT:
        raise directive.error(f"'{directive.name}' has {shown(word)}, expected a port from 1 to {MAX_PORT}")
    return int(digits)


def _at(directive: Directive, plain: UpstreamAddress, word: str, of: str) -> UpstreamAddress:
    """`plain` with `of`, the text behind the `%`, as its TLS server name or its interface."""
    host, port, transport, server_name = plain.host, plain.port, plain.transport, plain.server_name
    if not of:
        return UpstreamAddress(host, port, transport, server_name if transport is UpstreamTransport.TLS else "")
    if transport is UpstreamTransport.TLS:
        if server_name:
            raise directive.error(f"found {shown(word)} and 'tls_servername {server_name}', expected one of the names")
        return UpstreamAddress(host, port, transport, check_server_name(directive, of))
    if isinstance(ip_address(host), IPv6Address):
        return UpstreamAddress(f"{host}%{of}", port)
    raise directive.error(f"'{directive.name}' has {shown(word)}, expected %NAME only after tls:// or an IPv6 address")


def check_server_name(directive: Directive, text: str) -> str:
    """`text` without a final dot, to verify an upstream's certificate against. Raises ConfigError if it is no name."""
    try:
        if text.isascii() and parse_name(text):
            return text.rstrip(".")
    except BadName:
        pass
    raise directive.error(f"found the server name {shown(text)}, expected a DNS name or an address")


def _no_address(directive: Directive, word: str) -> ConfigError:
    return directive.error(
        f"'{directive.name}' has {shown(word)}, expected {EXPECTED}; "
        "a host name is not looked up, so write its addresses, or those of its Service"
    )
