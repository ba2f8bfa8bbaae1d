"""The kube-dns ConfigMap as node-cache reads it: `stubDomains` and `upstreamNameservers`, each JSON in a file.

Each accepted value is a valid word of a Corefile. Other keys of the ConfigMap belong to kube-dns and are ignored.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from topodns.corefile.errors import ConfigError, shown
from topodns.dns.name import BadName, parse_name
from topodns.files.text import foreign_octet
from topodns.nodecache.settings import FileText
from topodns.plugins.forward.destinations import BadDestination, parse_destination
from topodns.plugins.forward.settings import UpstreamTransport

STUB_DOMAINS: Final = "stubDomains"
UPSTREAM_NAMESERVERS: Final = "upstreamNameservers"
MAX_UPSTREAMS: Final = 3  # kube-dns's limit

_STUB_CACHE: Final = 30  # seconds, as in NodeLocal DNSCache
_EXPECTED: Final = "expected ADDRESS or ADDRESS:PORT, perhaps behind dns:// or tls://"
_DOMAIN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_WORD: Final = re.compile(r"[A-Za-z0-9_.:/%\[\]-]+")  # of a Corefile, without a variable or a comment


@dataclass(frozen=True, slots=True)
class StubDomain:
    """A domain with upstreams of its own."""

    domain: str
    servers: tuple[str, ...]  # at least one, in the syntax of `forward`


def parse_stub_domains(file: FileText) -> tuple[StubDomain, ...]:
    """The stub domains of a `{"DOMAIN": ["SERVER", ...]}`, sorted; none without a file. Raises ConfigError."""
    found = _decode(file, {}, 'an object such as {"example.org": ["192.0.2.53"]}')
    if not isinstance(found, dict):
        raise _wrong(file, f"found {_kind(found)}, expected an object of lists of servers, by domain")
    return tuple(_stub_domain(file, domain, servers) for domain, servers in sorted(found.items()))


def parse_upstream_nameservers(file: FileText) -> tuple[str, ...]:
    """The distinct servers of a `["SERVER", ...]`; none without a file. Raises ConfigError, also over MAX_UPSTREAMS."""
    found = _servers(file, _decode(file, [], 'a list such as ["192.0.2.53"]'), "")
    if len(found) > MAX_UPSTREAMS:
        raise _wrong(file, f"found {len(found)} servers, expected at most {MAX_UPSTREAMS}")
    return found


def stub_block(stub: StubDomain, addresses: Sequence[object], port: int) -> str:
    """The text of the server block that node-cache writes for a stub domain, bound to these addresses."""
    lines = [
        f"\n{stub.domain}:{port} {{",
        "    errors",
        f"    cache {_STUB_CACHE}",
        f"    bind {' '.join(map(str, addresses))}",
        f"    forward . {' '.join(stub.servers)}",
        "}\n",
    ]
    return "\n".join(lines)


def _decode(file: FileText, absent: object, expected: str) -> Any:
    """The JSON value of a file; `absent` without a file, and for null, as in Go. Raises ConfigError."""
    if file.problem:
        raise _wrong(file, file.problem)
    if file.text is None:
        return absent
    if octet := foreign_octet(file.text):
        raise ConfigError(file.path, file.text.count("\n", 0, octet.offset) + 1, octet.problem)
    try:
        found = json.loads(file.text)
    except json.JSONDecodeError as problem:
        where = f"column {problem.colno}"
        raise ConfigError(file.path, problem.lineno, f"found no JSON at {where}, expected {expected}") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, lists thousands deep
        raise _wrong(file, f"found JSON that is no configuration, expected {expected}") from None
    return absent if found is None else found


def _stub_domain(file: FileText, domain: str, servers: object) -> StubDomain:
    if not _DOMAIN.fullmatch(domain) or not _is_name(domain):
        raise _wrong(file, f"found the domain {shown(domain)}, expected a DNS name")
    found = _servers(file, servers, f" of {shown(domain)}")
    if not found:
        raise _wrong(file, f"found no server of {shown(domain)}, expected at least one")
    return StubDomain(domain, found)


def _is_name(domain: str) -> bool:
    try:
        return bool(parse_name(domain))
    except BadName:
        return False


def _servers(file: FileText, found: object, owner: str) -> tuple[str, ...]:
    if not isinstance(found, list):
        raise _wrong(file, f"found {_kind(found)}, expected a list of servers{owner}")
    for server in found:
        if not isinstance(server, str):
            raise _wrong(file, f"found {_kind(server)} among the servers{owner}, expected texts")
        if not _is_server(server):
            raise _wrong(file, f"found the server {shown(server)}{owner}, {_EXPECTED}; names are not looked up")
    return tuple(dict.fromkeys(found))


def _is_server(text: str) -> bool:
    try:
        address = parse_destination(text) if _WORD.fullmatch(text) else None
    except BadDestination:
        return False
    return address is not None and address.transport is not UpstreamTransport.HTTPS  # as in NodeLocal DNSCache


def _wrong(file: FileText, problem: str) -> ConfigError:
    return ConfigError(file.path, 0, problem)


def _kind(found: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(found), "a number")
