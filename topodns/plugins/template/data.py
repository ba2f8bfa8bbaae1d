"""The data of a query that templates can use: CoreDNS's fields, under CoreDNS's names."""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final, NamedTuple

from topodns.dns.message import Flag, Query
from topodns.dns.name import name_text, wire_labels
from topodns.dns.rrtype import CLASS_NAMES, TYPE_NAMES, RRClass
from topodns.plugins.template.engine.values import Struct, Value
from topodns.query.counters import TemplateMatch
from topodns.query.plugin import Client

QUESTION: Final = frozenset({"Name", "Qtype", "Qclass"})
_FLAGS: Final[Mapping[str, int]] = {
    "Response": Flag.QR,
    "Authoritative": Flag.AA,
    "Truncated": Flag.TC,
    "RecursionDesired": Flag.RD,
    "RecursionAvailable": Flag.RA,
    "Zero": 0x0040,
    "AuthenticatedData": Flag.AD,
    "CheckingDisabled": Flag.CD,
}
MESSAGE: Final = frozenset({"Id", "Opcode", "Rcode", "Question", *_FLAGS})

FIELDS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("Zone", "Name", "Regex", "Class", "Type", "Match", "Group", "Remote"), frozenset[str]()),
    "Question": QUESTION,
    "Message": MESSAGE,
}
"""The fields of the data, with the subfields of those that are structures."""

CLIENT_FIELDS: Final = frozenset({"Remote", "Message"})
"""The fields that can differ between two clients with the same question."""


class Matched(NamedTuple):
    """The match of a query with a directive. Texts are as in CoreDNS's templates and metrics."""

    origin: str  # the longest origin that contains the name, with final dot
    qclass: str
    qtype: str  # "" without a mnemonic
    name: str  # lower-case, with final dot
    pattern: str
    groups: tuple[str, ...]  # the whole match first
    named: Mapping[str, str]  # the named groups, and all groups by their numbers

    @property
    def detail(self) -> TemplateMatch:
        return TemplateMatch(self.origin, self.qclass, self.qtype)


def class_text(qclass: int, of_directive: int) -> str:
    """The mnemonic of the class queried, or of the directive's class in a query for class ANY; "" without one."""
    return CLASS_NAMES.get(of_directive if qclass == RRClass.ANY else qclass, "")


def type_text(rtype: int) -> str:
    """The mnemonic of a type, "" without one."""
    return TYPE_NAMES.get(rtype, "")


def template_data(matched: Matched, query: Query, client: Client) -> Struct:
    question = Struct(
        {"Name": name_text(wire_labels(query.spelling)), "Qtype": query.qtype, "Qclass": query.qclass},
    )
    return Struct(
        {
            "Zone": matched.origin,
            "Name": matched.name,
            "Regex": matched.pattern,
            "Class": matched.qclass,
            "Type": matched.qtype,
            "Match": matched.groups,
            "Group": matched.named,
            "Remote": str(ip_address(client.address)),
            "Question": question,
            "Message": Struct(_message(query, question)),
        }
    )


def _message(query: Query, question: Struct) -> Mapping[str, Value]:
    flags = {name: bool(query.flags & bit) for name, bit in _FLAGS.items()}
    opcode, rcode = query.flags >> 11 & 0xF, query.flags & 0xF
    return {**flags, "Id": query.id, "Opcode": opcode, "Rcode": rcode, "Question": (question,)}
