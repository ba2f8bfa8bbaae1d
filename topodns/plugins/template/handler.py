"""The `template` plugin: of a block's directives, the first that applies to a query and matches its name answers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from topodns.dns.message import Ede, EdeCode, Query, Response, RRset
from topodns.dns.name import Name, wire_labels
from topodns.dns.rrtype import ADDRESS_TYPES, Rcode, RRClass, RRType
from topodns.dns.text_fields import BadRecord
from topodns.plugins.template.engine.values import RenderFailed, Struct
from topodns.plugins.template.rule import Matched, RecordTemplate, TemplateRule, template_data
from topodns.plugins.template.settings import Template
from topodns.query.cname import Chase, follow
from topodns.query.counters import TemplateMatch
from topodns.query.plugin import Answered, Client, Resolution, Scope

PLUGIN: Final = "template"


class FailureKey(NamedTuple):
    """CoreDNS's labels of template failures, beside `server` and `view`."""

    origin: str
    qclass: str
    qtype: str
    section: str  # answer, additional or authority
    template: str  # the text of the template


@dataclass(slots=True)
class TemplateCounts:
    """Template failures. Matches are counted with the answers: see `TemplateMatch`.

    The counts outlive a reload: the plugins of the new generation get the same object.
    """

    render_failures: Counter[FailureKey] = field(default_factory=Counter)
    record_failures: Counter[FailureKey] = field(default_factory=Counter)


class Templates:
    """All `template` directives of one server block, in order."""

    def __init__(
        self, directives: Sequence[Template], chase: Chase | None = None, counts: TemplateCounts | None = None
    ) -> None:
        """Raises BadTemplate or BadPattern, but not for settings from `parse_template`."""
        self._rules = [TemplateRule(directive) for directive in directives]
        self._chase = chase
        self.counts = counts or TemplateCounts()

    def __call__(self, query: Query, client: Client) -> Answered | None:
        """The answer, with AA; a CNAME at its end is resolved for queries of type A and AAAA.

        SERVFAIL if a directive applies to the query, none of its patterns matches and its `fallthrough` does not cover
        the name, if a template fails to give a record, and with `rcode SERVFAIL`. None if no directive answers.
        """
        for rule in self._rules:
            origin = rule.origin_of(query)
            if origin is None:
                continue
            matched = rule.match(query, origin)
            if matched is not None:
                return self._answer(rule, matched, query, client)
            if not rule.falls_through(query.qname):
                return _failed(Ede(EdeCode.OTHER, "template: no pattern matches the name, and no fallthrough"))
        return None

    def _answer(self, rule: TemplateRule, matched: Matched, query: Query, client: Client) -> Answered:
        ede = None if rule.ede is None else Ede(*rule.ede)
        scope = Scope.CLIENT if rule.client_dependent else Scope.EVERYONE
        if rule.rcode == Rcode.SERVFAIL:  # without records, as in CoreDNS
            response = Response(Rcode.SERVFAIL, flags=0, ede=ede or Ede(EdeCode.OTHER, "template: rcode SERVFAIL"))
            return Resolution(response, PLUGIN, detail=matched.detail)
        try:
            response = self._response(rule, matched, query, template_data(matched, query, client))
        except (RenderFailed, BadRecord) as problem:
            return _failed(Ede(EdeCode.OTHER, f"template: {problem}"), matched.detail)
        response.ede = ede
        resolution = Resolution(response, PLUGIN, scope, detail=matched.detail)
        target = _open_end(query, response)
        return resolution if target is None else follow(target, resolution, query, client, self._chase)

    def _response(self, rule: TemplateRule, matched: Matched, query: Query, data: Struct) -> Response:
        sections = (
            _gathered(query, (self._record(template, matched, data) for template in templates))
            for templates in (rule.answer, rule.additional, rule.authority)
        )
        answer, additional, authority = sections
        return Response(rule.rcode, answer, authority, additional)

    def _record(self, template: RecordTemplate, matched: Matched, data: Struct) -> RRset:
        key = FailureKey(matched.origin, matched.qclass, matched.qtype, template.section, template.text)
        try:
            return template.record(data)
        except RenderFailed as problem:
            self.counts.render_failures[key] += 1
            raise RenderFailed(f"{template.section}: {problem}") from None
        except BadRecord as problem:
            self.counts.record_failures[key] += 1
            raise BadRecord(f"{template.section}: {problem}") from None


def _failed(ede: Ede, detail: TemplateMatch | None = None) -> Resolution:
    """A SERVFAIL with Scope.CLIENT (not shared between queries), so that the `errors` directive logs each."""
    return Resolution(Response(Rcode.SERVFAIL, flags=0, ede=ede), PLUGIN, Scope.CLIENT, detail=detail)


def _gathered(query: Query, records: Iterable[RRset]) -> tuple[RRset, ...]:
    """RRsets of the records in order: adjacent records of one RRset are merged, without duplicates.

    An owner equal to the queried name is b"".
    """
    asked = query.spelling.lower()
    rrsets: list[RRset] = []
    for record in records:
        rrset = record._replace(owner=b"") if record.owner.lower() == asked else record
        if rrsets and rrsets[-1]._replace(rdatas=()) == rrset._replace(rdatas=()):
            rrsets[-1] = rrset._replace(rdatas=tuple(dict.fromkeys(rrsets[-1].rdatas + rrset.rdatas)))
        else:
            rrsets.append(rrset)
    return tuple(rrsets)


def _open_end(query: Query, response: Response) -> Name | None:
    """The target, in lower case, of a CNAME at the end of the answer to a query for A or AAAA (IN); else None."""
    if not response.answer or query.qtype not in ADDRESS_TYPES or query.qclass != RRClass.IN:
        return None
    last = response.answer[-1]
    return wire_labels(last.rdatas[-1].lower()) if last.rtype == RRType.CNAME else None
