"""What a template may say about a query: CoreDNS's predefined data, under CoreDNS's names."""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final, NamedTuple

from topodns.dns.message import TYPE_NAMES, Flag, Query, RRClass
from topodns.dns.names import name_text, wire_labels
from topodns.resolve.step import Client
from topodns.resolve.template.values import Struct, Value

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
"""The fields of the data, and of each that is a structure its own."""

CLIENT_FIELDS: Final = frozenset({"Remote", "Message"})
"""Those that differ between two clients that ask the same."""

_CLASS_NAMES: Final = {1: "IN", 2: "CS", 3: "CH", 4: "HS", 254: "NONE", 255: "ANY"}


class Matched(NamedTuple):
    """Why a directive is the one that answers. Texts are as CoreDNS has them in templates and metrics."""

    origin: str  # the directive's longest that the name is under, with final dot
    qclass: str
    qtype: str  # "" where it has no mnemonic
    name: str  # lower-case, with final dot
    pattern: str
    groups: tuple[str, ...]  # the whole match first
    named: Mapping[str, str]  # the named groups, and all groups by their numbers

    @property
    def note(self) -> str:
        """The three labels of coredns_template_matches_total that no tally has, with a space between."""
        return f"{self.origin} {self.qclass} {self.qtype}"


def class_text(qclass: int, of_directive: int) -> str:
    """The class asked for, or that of the directive where any is."""
    return _CLASS_NAMES.get(of_directive if qclass == RRClass.ANY else qclass, "")


def type_text(rtype: int) -> str:
    """The mnemonic of a type, "" where it has none."""
    name = TYPE_NAMES.get(rtype)
    if name is not None:
        return name
    from topodns.dns.presentation import type_name  # here, because dnslib takes memory that most need not spend

    return type_name(rtype) or ""


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
