"""The question to explain, parsed from the arguments of /explain or of the command line."""

from collections.abc import Mapping
from dataclasses import dataclass

from topodns.dns.addresses import packed_address
from topodns.dns.name import BadName, Name, parse_name
from topodns.dns.rrtype import parse_qtype


class Unexplained(ValueError):
    """A question that cannot be explained; the message says why."""


@dataclass(frozen=True, slots=True)
class ExplainQuestion:
    """A name and type, and the client: either its address, or the name of its Node."""

    qname: Name
    qtype: int
    address: bytes | None  # packed
    node: str  # "" with an address


def parse_question(arguments: Mapping[str, str]) -> ExplainQuestion:
    """The question of `name`, `type` (default A), and `client` (an address) or `node`. Raises Unexplained."""
    qname, qtype = _parse_name(arguments.get("name", "")), _parse_type(arguments.get("type", "A"))
    address, node = arguments.get("client", ""), arguments.get("node", "")
    if bool(address) == bool(node):
        raise Unexplained("found both or none of client and node, expected one of them")
    return ExplainQuestion(qname, qtype, parse_address(address) if address else None, node)


def _parse_name(text: str) -> Name:
    try:
        qname = parse_name(text)
    except BadName as problem:
        raise Unexplained(str(problem)) from None
    if not qname:
        raise Unexplained("no name is given")
    return qname


def _parse_type(text: str) -> int:
    qtype = parse_qtype(text)
    if qtype is None:
        raise Unexplained(f"{text!r} is no type; expected one such as A, AAAA, SRV, PTR, CNAME or TYPE65")
    return qtype


def parse_address(text: str) -> bytes:
    """The packed address of a client. Raises Unexplained."""
    try:
        return packed_address(text)
    except ValueError:
        raise Unexplained(f"{text!r} is no IP address") from None
