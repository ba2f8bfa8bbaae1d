"""One `template` directive, compiled: which questions it is about, which of them it answers, with what records."""

from collections.abc import Sequence
from typing import Final

from topodns.dns.message import Query, RRset
from topodns.dns.names import Name, is_subdomain, name_text
from topodns.dns.record_text import BadRecord, parse_record
from topodns.resolve.template.parser import compile_template
from topodns.resolve.template.pieces import BadTemplate
from topodns.resolve.template.question import CLIENT_FIELDS, FIELDS, Matched, class_text, type_text
from topodns.resolve.template.render import render
from topodns.resolve.template.values import Struct
from topodns.settings.pattern import Pattern, compile_pattern
from topodns.settings.template import ANY_CLASS, ANY_TYPE, Template

_MATCHES_ALL: Final = ".*"


class RecordTemplate:
    """A template that is to give one record. The last text is kept with its record: many say the same each time."""

    def __init__(self, section: str, text: str) -> None:
        """Raises BadTemplate, also for a text that looks at nothing and is no record."""
        compiled = compile_template(text, FIELDS)
        self.section = section
        self.text = text
        self.client_dependent = not CLIENT_FIELDS.isdisjoint(compiled.fields)
        self._compiled = compiled
        self._last: tuple[str, RRset] | None = None
        if compiled.constant is not None:
            self._last = compiled.constant, _read_constant(compiled.constant)

    def record(self, data: Struct) -> RRset:
        """The record, which spells its owner. Raises RenderFailed, or BadRecord for a text that is none."""
        text = render(self._compiled, data)
        if self._last is None or self._last[0] != text:
            self._last = text, parse_record(text)
        return self._last[1]


def _read_constant(text: str) -> RRset:
    try:
        return parse_record(text)
    except BadRecord as problem:
        raise BadTemplate(f"the text is no record: {problem}") from None


class Rule:
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
        """The longest of its origins that the question is under; None where the directive is not about it at all."""
        if query.qclass != self._qclass and ANY_CLASS not in (query.qclass, self._qclass):
            return None
        if query.qtype != self._qtype and ANY_TYPE not in (query.qtype, self._qtype):
            return None
        return next((origin for origin in self._origins if is_subdomain(query.qname, origin)), None)

    def falls_through(self, qname: Name) -> bool:
        return any(is_subdomain(qname, origin) for origin in self._fallthrough)

    def match(self, query: Query, origin: Name) -> Matched | None:
        """How the name matches the first pattern that it does; None where it matches none."""
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
            name_text(origin),
            class_text(query.qclass, self._qclass),
            type_text(self._qtype if query.qtype == ANY_TYPE else query.qtype),
            name,
            pattern,
            groups,
            {str(number): group for number, group in enumerate(groups)} | named,
        )


def _compiled(section: str, texts: Sequence[str]) -> tuple[RecordTemplate, ...]:
    return tuple(RecordTemplate(section, text) for text in texts)
