"""One `template`: the queries that it is for, its match, and its records."""

import pytest

from tests.support.query_builders import ask, client
from tests.support.rrset_text import lines
from topodns.dns.message import Flag
from topodns.dns.name import ROOT
from topodns.dns.rrtype import RRType
from topodns.plugins.template.engine.lexer import BadTemplate
from topodns.plugins.template.engine.values import Struct
from topodns.plugins.template.rule import (
    FIELDS,
    MESSAGE,
    QUESTION,
    Matched,
    RecordTemplate,
    TemplateRule,
    class_text,
    template_data,
    type_text,
)
from topodns.plugins.template.settings import ANY_TYPE, Template

ORG, EXAMPLE = ("org",), ("example", "org")


def rule(**options: object) -> TemplateRule:
    """For A queries of class IN below org. and example.org."""
    return TemplateRule(Template(**{"qclass": 1, "qtype": 1, "origins": (ORG, EXAMPLE), **options}))  # type: ignore[arg-type]  # the fields' own types


def test_the_longest_origin_of_a_query_of_its_type_and_class_is_found() -> None:
    found = rule()
    assert found.origin_of(ask("www.example.org")) == EXAMPLE
    assert found.origin_of(ask("www.org")) == ORG
    assert found.origin_of(ask("www.example.com")) is None
    assert found.origin_of(ask("www.org", RRType.AAAA)) is None
    assert found.origin_of(ask("www.org", ANY_TYPE)) == ORG
    assert found.origin_of(ask("www.org", qclass=3)) is None


def test_the_first_pattern_that_matches_counts() -> None:
    matched = rule(patterns=(r"^(?P<a>\w+)\.none", r"^(?P<b>\w+)(x)?\.org\.$", ".*")).match(ask("www.org"), ORG)
    assert matched is not None
    assert (matched.origin, matched.qtype, matched.groups) == ("org.", "A", ("www.org.", "www", ""))
    assert matched.named == {"0": "www.org.", "1": "www", "2": "", "b": "www"}
    assert rule(patterns=("none",)).match(ask("www.org"), ORG) is None


def test_a_record_that_depends_on_the_client_is_known() -> None:
    dependent = [rule(answer=(f"{{{{ .Name }}}} 5 IN A {address}",)) for address in ("{{ .Remote }}", "10.0.0.1")]
    assert [each.client_dependent for each in dependent] == [True, False]


def test_a_record_is_made_of_the_data_of_the_query() -> None:
    template = RecordTemplate("answer", "{{ .Name }} 5 IN A {{ .Remote }}")
    for source in ("10.0.0.1", "10.0.0.1", "10.0.0.2"):
        query = ask("www.org")
        matched = rule().match(query, ROOT)
        assert matched is not None
        assert lines([template.record(template_data(matched, query, client(source)))], "") == [
            f"www.org. 5 IN A {source}"
        ]


@pytest.mark.parametrize(
    "text",
    [
        "www.org. 5 IN A ten",
        "{{ .Name }} 5 IN A ten",
        "{{ .Name }} 5 IN CNAME {{ .Zone }} more",
        'www.{{ .Zone }} 5 IN HTTPS 1 . alpn="h2" alpn="h3"',
        "{{ .Name }} 5 IN A {{ .Name }}",
    ],
)
def test_text_that_is_no_record_for_any_name_is_refused_at_the_start(text: str) -> None:
    with pytest.raises(BadTemplate, match="the text is no record"):
        RecordTemplate("answer", text)


@pytest.mark.parametrize(
    "text",
    [
        "{{ .Name }} 5 IN A {{ .Remote }}",
        "{{ .Name }} {{ if 1 }}5{{ end }} IN A 192.0.2.1",
        '{{ printf "%s 5 IN A" .Name }} 192.0.2.1',
        "{{ .Name }} 5 IN {{ .Type }} ten",
    ],
)
def test_text_that_a_query_makes_a_record_is_left_to_it(text: str) -> None:
    RecordTemplate("answer", text)


def test_names_below_its_zones_fall_through() -> None:
    found = rule(fallthrough=(EXAMPLE,))
    assert (found.falls_through(("www", *EXAMPLE)), found.falls_through(ORG)) == (True, False)


MATCHED = Matched("example.", "IN", "A", "www.example.", r"(\w+)\.example\.", ("www.example.", "www"), {"1": "www"})


def test_every_field_that_templates_may_name_is_there() -> None:
    data = template_data(MATCHED, ask("WWW.example"), client("2001:db8::1"))
    assert data.fields.keys() == FIELDS.keys()
    question, message = data.fields["Question"], data.fields["Message"]
    assert isinstance(question, Struct)
    assert isinstance(message, Struct)
    assert set(question.fields) == QUESTION
    assert set(message.fields) == MESSAGE
    assert (data.fields["Zone"], data.fields["Name"], data.fields["Remote"]) == (
        "example.",
        "www.example.",
        "2001:db8::1",
    )


def test_the_message_is_the_client_s_as_spelled() -> None:
    data = template_data(MATCHED, ask("WWW.example", RRType.AAAA, flags=Flag.RD | Flag.CD | 4 << 11), client())
    question, message = data.fields["Question"], data.fields["Message"]
    assert question == Struct({"Name": "WWW.example.", "Qtype": 28, "Qclass": 1})
    assert isinstance(message, Struct)
    flags = {name for name, value in message.fields.items() if value is True}
    assert (flags, message.fields["Opcode"]) == ({"RecursionDesired", "CheckingDisabled"}, 4)


@pytest.mark.parametrize(
    ("qclass", "of_directive", "text"), [(1, 1, "IN"), (3, 255, "CH"), (255, 1, "IN"), (77, 1, "")]
)
def test_the_class_is_the_query_s_unless_it_asks_for_any(qclass: int, of_directive: int, text: str) -> None:
    assert class_text(qclass, of_directive) == text


@pytest.mark.parametrize(("rtype", "text"), [(1, "A"), (255, "ANY"), (44, "SSHFP"), (65534, "")])
def test_a_type_without_a_mnemonic_has_no_text(rtype: int, text: str) -> None:
    assert type_text(rtype) == text
