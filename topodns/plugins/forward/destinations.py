"""Destinations of `forward`: `[dns://|tls://|https://]HOST[:PORT]`, or a file in resolv.conf format with name servers.

An upstream over TLS may have the name in its certificate behind a `%`: `tls://ADDRESS:PORT%NAME`.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from ipaddress import IPv6Address, ip_address
from typing import Final

from topodns.corefile.arguments import MAX_PORT
from topodns.corefile.errors import shown
from topodns.corefile.files import load_nameservers
from topodns.corefile.parser import Directive
from topodns.dns.name import BadName, parse_name
from topodns.plugins.context import Context
from topodns.plugins.forward.settings import UpstreamAddress, UpstreamTransport

EXPECTED: Final = "HOST[:PORT], tls://HOST[:PORT], https://HOST[:PORT] or a file like /etc/resolv.conf"

_DEFAULT_PORTS: Final = {UpstreamTransport.DNS: 53, UpstreamTransport.TLS: 853, UpstreamTransport.HTTPS: 443}
_ELSEWHERE: Final = {
    "https3": "DNS over HTTP/3; most such servers answer tls://ADDRESS as well",
    "quic": "DNS over QUIC; most such servers answer tls://ADDRESS as well",
    "grpc": "gRPC; write the address that the server has for DNS itself",
    "unix": "sockets in the file system; write the address that the server has for DNS",
}
# One `%` is followed by the TLS server name after tls://, before or behind the port (as in CoreDNS), otherwise by the
# interface (RFC 4007 section 11). Of two, after tls://, the first is followed by the interface.
_BEFORE: Final = r"(?:%(?P<before>[^\[\]:%]+))?"
_BEHIND: Final = r"(?:%(?P<behind>[^\[\]:%]+))?"
_FORMS: Final = (
    re.compile(rf"\[(?P<host>[0-9A-Fa-f:.]+){_BEFORE}](?::(?P<port>[0-9]+))?{_BEHIND}"),
    re.compile(rf"(?P<host>[0-9A-Fa-f.]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*){_BEFORE}(?P<port>){_BEHIND}"),
    re.compile(rf"(?P<host>[0-9.]+){_BEFORE}(?::(?P<port>[0-9]+))?{_BEHIND}"),
)
_HOST_NAME: Final = re.compile(rf"(?P<host>[^\[\]:%/]+){_BEFORE}(?::(?P<port>[0-9]+))?{_BEHIND}")


class BadDestination(ValueError):
    """A text that is no destination; `str` of it says what was expected, and follows "has 'TEXT', "."""


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
    try:
        address = parse_destination(word, server_name)
        if address is not None:
            return [address]
        if "://" in word or not ("/" in word or os.path.exists(os.path.join(context.directory, word))):
            return [_host_name(word, server_name)]
    except BadDestination as problem:
        raise directive.error(f"'{directive.name}' has {shown(word)}, {problem}") from None
    hosts = load_nameservers(context.readable_file(directive, word), context.warn)
    return [UpstreamAddress(host, 53) for host in hosts]


def parse_destination(word: str, server_name: str = "") -> UpstreamAddress | None:
    """The upstream at an address, written as in a Corefile; None for a text of another form, such as a path.

    `server_name` is that of all TLS upstreams, or "". Raises BadDestination for an address that cannot be forwarded to.
    """
    scheme, separator, rest = word.rpartition("://")
    transport = _transport(scheme) if separator else UpstreamTransport.DNS
    match = next(filter(None, (form.fullmatch(rest) for form in _FORMS)), None)
    if match is None:
        if not word:
            raise BadDestination(f"expected {EXPECTED}")
        return None
    plain = UpstreamAddress(_host(match["host"]), _port(match["port"]) or _DEFAULT_PORTS[transport], transport)
    before, behind = match["before"] or "", match["behind"] or ""
    if transport is not UpstreamTransport.DNS:
        return _over_tls(plain, before, behind, server_name)
    return _on_interface(plain, before, behind)


def _host_name(word: str, server_name: str) -> UpstreamAddress:
    """The upstream with a host name, which must be that in the certificate if `server_name` and %SERVERNAME are ""."""
    scheme, separator, rest = word.rpartition("://")
    transport = _transport(scheme) if separator else UpstreamTransport.DNS
    match = _HOST_NAME.fullmatch(rest)
    if match is None or not _is_server_name(match["host"]):
        raise BadDestination(f"expected {EXPECTED}")
    host = match["host"].rstrip(".").lower()
    plain = UpstreamAddress(host, _port(match["port"]) or _DEFAULT_PORTS[transport], transport, is_name=True)
    if transport is UpstreamTransport.DNS:
        return _on_interface(plain, match["before"] or "", match["behind"] or "")
    named = _over_tls(plain, match["before"] or "", match["behind"] or "", server_name)
    return replace(named, server_name=named.server_name or host)


def _transport(scheme: str) -> UpstreamTransport:
    if scheme in _ELSEWHERE:
        raise BadDestination(f"but topodns does not speak {_ELSEWHERE[scheme]}")
    for transport in UpstreamTransport:
        if transport.value == scheme:
            return transport
    raise BadDestination(f"expected {EXPECTED}")


def _host(host: str) -> str:
    try:
        return str(ip_address(host))
    except ValueError:
        raise BadDestination(f"expected {EXPECTED}") from None


def _port(digits: str | None) -> int | None:
    if not digits:
        return None
    if len(digits) > 5 or not 1 <= int(digits) <= MAX_PORT:
        raise BadDestination(f"expected a port from 1 to {MAX_PORT}")
    return int(digits)


def _over_tls(plain: UpstreamAddress, before: str, behind: str, server_name: str) -> UpstreamAddress:
    """`plain` with the texts behind a `%` before and behind the port: the server name alone, or interface and name."""
    interface, name = (before, behind) if before and behind else ("", before or behind)
    if name and server_name:
        raise BadDestination(f"but 'tls_servername {server_name}' names the server too, expected one of the names")
    if interface and not _is_ipv6(plain):
        raise BadDestination("expected one %NAME, or %INTERFACE and %NAME with an IPv6 address")
    if name and not _is_server_name(name):
        raise BadDestination(f"with the server name {shown(name)}, expected a DNS name or an address")
    host = f"{plain.host}%{interface}" if interface else plain.host
    return replace(plain, host=host, server_name=name.rstrip(".") or server_name)


def _on_interface(plain: UpstreamAddress, before: str, behind: str) -> UpstreamAddress:
    if behind or (before and not _is_ipv6(plain)):
        raise BadDestination("expected %NAME only after tls://, or %INTERFACE behind an IPv6 address")
    return replace(plain, host=f"{plain.host}%{before}") if before else plain


def _is_ipv6(plain: UpstreamAddress) -> bool:
    return not plain.is_name and isinstance(ip_address(plain.host), IPv6Address)


def check_server_name(directive: Directive, text: str) -> str:
    """`text` without a final dot, to verify an upstream's certificate against. Raises ConfigError if it is no name."""
    if not _is_server_name(text):
        raise directive.error(f"found the server name {shown(text)}, expected a DNS name or an address")
    return text.rstrip(".")


def _is_server_name(text: str) -> bool:
    try:
        return text.isascii() and bool(parse_name(text))
    except BadName:
        return False
