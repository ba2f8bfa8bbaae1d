"""Queries and their clients, from text."""

from ipaddress import ip_address

from topodns.dns.message import Edns, Flag, Query
from topodns.dns.name import label_wire, parse_name
from topodns.dns.rrtype import RRClass, RRType
from topodns.query.plugin import Client


def ask(
    name: str,
    qtype: int = RRType.A,
    qclass: int = RRClass.IN,
    edns: Edns | None = None,
    flags: int = Flag.RD,
) -> Query:
    """The query for this name, spelled as written (no escapes)."""
    labels = [label for label in name.split(".") if label]
    spelling = b"".join(label_wire(label) for label in labels) + b"\0"
    return Query(29008, flags, parse_name(name), spelling, qtype, qclass, edns, 12 + len(spelling) + 4)


def client(address: str = "10.240.0.1", port: int = 40212, transport: str = "udp") -> Client:
    return Client(ip_address(address).packed, port, transport)
