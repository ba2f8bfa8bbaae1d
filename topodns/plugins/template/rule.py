"""One compiled `template` directive: the queries it applies to, its patterns, and the templates of its records.

The data of a query that templates can use has CoreDNS's fields, under CoreDNS's names.
"""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Final, NamedTuple

from topodns.dns.message import Flag, Query, RRset
from topodns.dns.name import Name, is_below_any, is_subdomain, name_text, wire_labels
from topodns.dns.record_text import parse_record
from topodns.dns.rrtype import CLASS_NAMES, TYPE_NAMES, RRClass
from topodns.dns.text_fields import BadRecord
from topodns.plugins.template.engine.execute import render
from topodns.plugins.template.engine.lexer import BadTemplate
from topodns.plugins.template.engine.parser import compile_template
from topodns.plugins.template.engine.values import Struct, Value
from topodns.plugins.template.settings import ANY_CLASS, ANY_TYPE, Template
from topodns.query.counters import TemplateMatch
from topodns.query.plugin import Client
from topodns.query.regex import Pattern, compile_pattern

_MATCHES_ALL: Final = ".*"
# The fields that are always a name with its final dot: a text that is no record with this one is none with another.
_ANY_NAME: Final = {"Name": "name.", "Zone": "name."}


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


class RecordTemplate:
    """A template of one record. The latest text is cached with its record, as many templates always give the same."""

    def __init__(self, section: str, text: str) -> None:
        """Raises BadTemplate, also for text that is no record whatever name is asked for."""
        compiled = compile_template(text, FIELDS)
        self.section = section
        self.text = text
        self.client_dependent = not CLIENT_FIELDS.isdisjoint(compiled.fields)
        self._compiled = compiled
        self._last: tuple[str, RRset] | None = None
        trial = compiled.filled(_ANY_NAME)
        if trial is not None:
            self._last = trial, _read_trial(trial)

    def record(self, data: Struct) -> RRset:
        """The record, its owner in full, never b"". Raises RenderFailed, or BadRecord if the text is not a record."""
        text = render(self._compiled, data)
        if self._last is None or self._last[0] != text:
            self._last = text, parse_record(text)
        return self._last[1]


def _read_trial(text: str) -> RRset:
    try:
        return parse_record(text)
    except BadRecord as problem:
        raise BadTemplate(f"the text is no record: {problem}") from None


class TemplateRule:
    def __init__(self, settings: Template) -> None:
        """Raises BadTemplate or BadPattern."""
        self.rcode = settings.rcode
        self.ede = settings.ede
        self.answer = _compiled("answer", settings.answer)
        self.additional = _compiled("additional", settings.additional)
        self.authority = _compiled("authority", settings.authority)
        records = (*self.answer, *self.additional, *self.authority)
        self.client_dependent = any(record.client_dependent for record in records)
        self._qclass = settings.qclass
        self._qtype = settings.qtype
        self._origins = sorted(settings.origins, key=len, reverse=True)
        self._fallthrough = settings.fallthrough
        self._patterns: list[Pattern] = [compile_pattern(pattern) for pattern in settings.patterns]

    def origin_of(self, query: Query) -> Name | None:
        """The directive's longest origin that contains the queried name; None if it does not apply to the query."""
        if query.qclass != self._qclass and ANY_CLASS not in (query.qclass, self._qclass):
            return None
        if query.qtype != self._qtype and ANY_TYPE not in (query.qtype, self._qtype):
            return None
        return next((origin for origin in self._origins if is_subdomain(query.qname, origin)), None)

    def falls_through(self, qname: Name) -> bool:
        return is_below_any(qname, self._fallthrough)

    def match(self, query: Query, origin: Name) -> Matched | None:
        """The match of the name with the first pattern that matches; None if none does. Without patterns, all match."""
        name = name_text(query.qname)
        if not self._patterns:
            return self._matched(query, origin, name, _MATCHES_ALL, (name,), {})
        for pattern in self._patterns:
            if (found := pattern.search(name)) is not None:
                groups = (found.group() or "", *(group or "" for group in found.groups()))
                named = {group: text or "" for group, text in found.groupdict().items()}
                return self._matched(query, origin, name, pattern.pattern, groups, named)
        return None

    def _matched(
        self,
        query: Query,
        origin: Name,
        name: str,
        pattern: str,
        groups: tuple[str, ...],
        named: dict[str, str],
    ) -> Matched:
        return Matched(
            origin=name_text(origin),
            qclass=class_text(query.qclass, self._qclass),
            qtype=type_text(self._qtype if query.qtype == ANY_TYPE else query.qtype),
            name=name,
            pattern=pattern,
            groups=groups,
            named={str(number): group for number, group in enumerate(groups)} | named,
        )


def _compiled(section: str, texts: Sequence[str]) -> tuple[RecordTemplate, ...]:
    return tuple(RecordTemplate(section, text) for text in texts)
