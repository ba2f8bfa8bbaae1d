"""What an expression may ask about a query: CoreDNS's functions, with what CoreDNS's give."""

from collections.abc import Callable, Mapping
from enum import Enum
from ipaddress import ip_address
from typing import Final, NamedTuple

from topodns.dns.message import TYPE_NAMES, Query, RRClass
from topodns.dns.names import name_text
from topodns.resolve.step import Client
from topodns.resolve.view.nodes import Value

_MIN_UDP_SIZE: Final = 512  # RFC 6891 section 6.2.3
_MAX_TCP_SIZE: Final = 65535
_CLASSES: Final[Mapping[int, str]] = {int(known): known.name for known in RRClass} | {2: "CS", 254: "NONE"}


class Kind(Enum):
    """The types of values. Each says how a message names it."""

    STRING = "a string"
    INTEGER = "an integer"
    FLOAT = "a number"
    BOOLEAN = "a boolean"
    NIL = "nil"


class Question(NamedTuple):
    """One query, who sent it, and the address that it was sent to as far as that is known."""

    query: Query
    client: Client
    server_ip: str


class Function(NamedTuple):
    """Has no arguments. `of_client`: can differ between two messages that are the same but for their ids."""

    result: Kind
    call: Callable[[Question], Value]
    of_client: bool = False


def client_ip(question: Question) -> str:
    """Without brackets, whatever the version."""
    return str(ip_address(question.client.address))


def _type(question: Question) -> str:
    qtype = question.query.qtype
    return TYPE_NAMES.get(qtype) or _rare_type(qtype) or f"TYPE{qtype}"


def _rare_type(qtype: int) -> str | None:
    from topodns.dns.presentation import type_name  # here, because dnslib takes memory that most need not spend

    return type_name(qtype)


def _class(question: Question) -> str:
    qclass = question.query.qclass
    return _CLASSES.get(qclass) or f"CLASS{qclass}"


def _dnssec_ok(question: Question) -> bool:
    edns = question.query.edns
    return edns is not None and edns.dnssec_ok


def _bufsize(question: Question) -> int:
    if question.client.transport == "tcp":
        return _MAX_TCP_SIZE
    edns = question.query.edns
    return max(_MIN_UDP_SIZE, edns.udp_payload_size if edns is not None else 0)


FUNCTIONS: Final[Mapping[str, Function]] = {
    "type": Function(Kind.STRING, _type),
    "name": Function(Kind.STRING, lambda question: name_text(question.query.qname)),
    "class": Function(Kind.STRING, _class),
    "proto": Function(Kind.STRING, lambda question: question.client.transport),
    "size": Function(Kind.INTEGER, lambda question: question.query.size),
    "client_ip": Function(Kind.STRING, client_ip, of_client=True),
    "port": Function(Kind.STRING, lambda question: str(question.client.port), of_client=True),
    "id": Function(Kind.INTEGER, lambda question: question.query.id, of_client=True),
    "opcode": Function(Kind.INTEGER, lambda question: question.query.flags >> 11 & 15),
    "do": Function(Kind.BOOLEAN, _dnssec_ok),
    "bufsize": Function(Kind.INTEGER, _bufsize),
    "server_ip": Function(Kind.STRING, lambda question: question.server_ip),
    "server_port": Function(Kind.STRING, lambda question: str(question.client.local_port)),
}
