"""Corefile text, question, answer."""

import pytest

from tests.support.corefile_settings import only_block
from tests.support.deferred_results import at_once
from tests.support.query_builders import ask, client
from topodns.dns.dnslib_text import record_lines
from topodns.dns.message import Ede, EdeCode, Edns, Flag, Query, Response, RRset
from topodns.dns.name import Name, name_wire, parse_name
from topodns.dns.rrtype import QCLASSES, QTYPES, RCODE_NAMES, Rcode, RRClass, RRType
from topodns.plugins.template.handler import FailureKey, Templates
from topodns.query.cname import Chase
from topodns.query.counters import TemplateMatch
from topodns.query.plugin import Answered, Client, Resolution, Scope

ADDRESSES = r"""
    # ip-a-b-c-d.example A a.b.c.d
    template IN A example {
      match (^|[.])ip-(?P<a>[0-9]*)-(?P<b>[0-9]*)-(?P<c>[0-9]*)-(?P<d>[0-9]*)[.]example[.]$
      answer "{{ .Name }} 60 IN A {{ .Group.a }}.{{ .Group.b }}.{{ .Group.c }}.{{ .Group.d }}"
      fallthrough
    }
    # d.c.b.a.in-addr.arpa PTR ip-a-b-c-d.example
    template IN PTR in-addr.arpa {
      match ^(?P<d>[0-9]*)[.](?P<c>[0-9]*)[.](?P<b>[0-9]*)[.](?P<a>[0-9]*)[.]in-addr[.]arpa[.]$
      answer "{{ .Name }} 60 IN PTR ip-{{ .Group.a }}-{{ .Group.b }}-{{ .Group.c }}-{{ .Group.d }}.example."
    }
"""
HEXADECIMAL = r"""
    template IN A example {
      match "^ip0a(?P<b>[a-f0-9]{2})(?P<c>[a-f0-9]{2})(?P<d>[a-f0-9]{2})[.]example[.]$"
      answer "{{ .Name }} 60 IN A 10.{{ parseInt .Group.b 16 8 }}.{{ parseInt .Group.c 16 8 }}.{{ .Group.d | len }}"
      fallthrough
    }
"""
EXCHANGES = r"""
    template IN MX example {
      match ^ip-10-(?P<b>[0-9]*)-(?P<c>[0-9]*)-(?P<d>[0-9]*)[.]example[.]$
      answer "{{ .Name }} 60 IN MX 10 {{ .Name }}"
      additional "{{ .Name }} 60 IN A 10.{{ .Group.b }}.{{ .Group.c }}.{{ .Group.d }}" "ns0.example. 60 A 203.0.113.8"
      authority  "example. 60 IN NS ns0.example."
      authority  "example. 60 IN NS ns1.example."
    }
"""
NO_IPV6_SOA = """
    template IN AAAA . {
      authority ". 60 IN SOA ns.invalid. hostmaster.invalid. (1 60 60 60 60)"
    }
"""
INVALID = """
    template ANY ANY invalid {
      rcode NXDOMAIN
      authority "invalid. 60 {{ .Class }} SOA ns.invalid. hostmaster.invalid. (1 60 60 60 60)"
      ederror 21 "Blocked according to RFC2606"
    }
"""
COMPLETIONS = r"""
    template IN ANY example.com {
      match "example\.com\.(dc1\.example\.com\.)$"
      rcode NXDOMAIN
      authority "{{ index .Match 1 }} 60 IN SOA ns.{{ index .Match 1 }} hostmaster.{{ index .Match 1 }} (1 60 60 60 60)"
      fallthrough
    }
"""
SEVERAL_PATTERNS = r"""
    template IN A example {
      match "^ip-(?P<a>10)-(?P<b>[0-9]*)-(?P<c>[0-9]*)-(?P<d>[0-9]*)[.]dc[.]example[.]$"
      match "^(?P<a>[0-9]*)[.](?P<b>[0-9]*)[.](?P<c>[0-9]*)[.](?P<d>[0-9]*)[.]ext[.]example[.]$"
      answer "{{ .Name }} 60 IN A {{ .Group.a}}.{{ .Group.b }}.{{ .Group.c }}.{{ .Group.d }}"
      fallthrough
    }
"""
SERVICES = r"""
    template IN ANY svc {
      match ^(?P<name>[^.]+)[.](?P<namespace>[^.]+)[.]svc[.]$
      answer "{{ .Name }} 5 IN CNAME {{ .Group.name }}.{{ .Group.namespace }}.svc.cluster.local."
    }
"""
PORTS = r"""
    template IN SRV example {
      match ^_(?P<port>[a-z]+)[.]_tcp[.](?P<host>[^.]+)[.]example[.]$
      answer "{{ .Name }} 30 SRV 0 9 {{ if eq .Group.port `https` }}443{{ else }}80{{ end }} {{ .Group.host }}.example."
    }
"""
FOUR_DIRECTIVES = r"""
    template IN A test {
      rcode REFUSED
    }
    template IN TXT test {
      match "$^"
      rcode SERVFAIL
      fallthrough
    }
    template CH TXT coredns.invalid {
      answer "{{ .Name }} 60 CH TXT \"test\""
    }
    template IN MX example {
      match ^ip-
      answer "{{ .Name }} 60 IN MX 10 {{ .Name }}"
      fallthrough other.example
    }
"""


def step(corefile: str, chase: Chase | None = None) -> Templates:
    return Templates(only_block(corefile).settings["template"], chase)


def resolved(corefile: str, question: str, chase: Chase | None = None, source: str = "10.240.0.1") -> Resolution | None:
    """The resolution of `NAME [CLASS] TYPE`."""
    return at_once(step(corefile, chase)(query(question), client(source)))


def answered(corefile: str, question: str, chase: Chase | None = None) -> Resolution:
    resolution = resolved(corefile, question, chase)
    assert resolution is not None
    return resolution


def query(question: str) -> Query:
    name, *qclass, qtype = question.split()
    return ask(name, QTYPES[qtype], QCLASSES[qclass[0]] if qclass else RRClass.IN)


def shown(question: str, resolution: Resolution | None) -> list[str]:
    """Rcode and records, each behind its section where that is not the answer; `-` where the question passes."""
    if resolution is None:
        return ["-"]
    qname = query(question).spelling
    response = resolution.response
    lines = [RCODE_NAMES[response.rcode], *record_lines(response.answer, qname)]
    lines += [f"authority {line}" for line in record_lines(response.authority, qname)]
    return lines + [f"additional {line}" for line in record_lines(response.additional, qname)]


INVALID_SOA = "authority invalid. 60 IN SOA ns.invalid. hostmaster.invalid. 1 60 60 60 60"


@pytest.mark.parametrize(
    ("corefile", "question", "expected"),
    [
        (ADDRESSES, "ip-10-95-12-8.example. A", ["NOERROR", "ip-10-95-12-8.example. 60 IN A 10.95.12.8"]),
        (ADDRESSES, "a.ip-10-0-0-1.Example. A", ["NOERROR", "a.ip-10-0-0-1.Example. 60 IN A 10.0.0.1"]),
        (ADDRESSES, "web.example. A", ["-"]),
        (ADDRESSES, "ip-10-95-12-8.example. AAAA", ["-"]),
        (ADDRESSES, "ip-10-95-12-999.example. A", ["SERVFAIL"]),
        (
            ADDRESSES,
            "8.12.95.10.in-addr.arpa. PTR",
            ["NOERROR", "8.12.95.10.in-addr.arpa. 60 IN PTR ip-10-95-12-8.example."],
        ),
        (ADDRESSES, "12.95.10.in-addr.arpa. PTR", ["SERVFAIL"]),
        (HEXADECIMAL, "ip0a5f0c09.example. A", ["NOERROR", "ip0a5f0c09.example. 60 IN A 10.95.12.2"]),
        (HEXADECIMAL, "ip0a5f0c.example. A", ["-"]),
        (
            EXCHANGES,
            "ip-10-1-2-3.example. MX",
            [
                "NOERROR",
                "ip-10-1-2-3.example. 60 IN MX 10 ip-10-1-2-3.example.",
                "authority example. 60 IN NS ns0.example.",
                "authority example. 60 IN NS ns1.example.",
                "additional ip-10-1-2-3.example. 60 IN A 10.1.2.3",
                "additional ns0.example. 60 IN A 203.0.113.8",
            ],
        ),
        ("template IN AAAA . {\n rcode NXDOMAIN\n}", "web.example. AAAA", ["NXDOMAIN"]),
        ("template IN AAAA . {\n rcode NXDOMAIN\n}", "web.example. A", ["-"]),
        ("template ANY AAAA {\n rcode NOERROR\n}", "web.example. AAAA", ["NOERROR"]),
        (
            NO_IPV6_SOA,
            "web.example. AAAA",
            ["NOERROR", "authority . 60 IN SOA ns.invalid. hostmaster.invalid. 1 60 60 60 60"],
        ),
        (INVALID, "x.invalid. MX", ["NXDOMAIN", INVALID_SOA]),
        (INVALID, "invalid. ANY", ["NXDOMAIN", INVALID_SOA]),
        (INVALID, "valid. A", ["-"]),
        (
            COMPLETIONS,
            "www.example.com.dc1.example.com. A",
            [
                "NXDOMAIN",
                "authority dc1.example.com. 60 IN SOA ns.dc1.example.com. hostmaster.dc1.example.com. 1 60 60 60 60",
            ],
        ),
        (COMPLETIONS, "www.dc1.example.com. A", ["-"]),
        (SEVERAL_PATTERNS, "ip-10-1-2-3.dc.example. A", ["NOERROR", "ip-10-1-2-3.dc.example. 60 IN A 10.1.2.3"]),
        (SEVERAL_PATTERNS, "10.1.2.3.ext.example. A", ["NOERROR", "10.1.2.3.ext.example. 60 IN A 10.1.2.3"]),
        (SERVICES, "web.shop.svc. TXT", ["NOERROR", "web.shop.svc. 5 IN CNAME web.shop.svc.cluster.local."]),
        (
            PORTS,
            "_https._tcp.web.example. SRV",
            ["NOERROR", "_https._tcp.web.example. 30 IN SRV 0 9 443 web.example."],
        ),
        (
            PORTS,
            "_http._tcp.web.example. SRV",
            ["NOERROR", "_http._tcp.web.example. 30 IN SRV 0 9 80 web.example."],
        ),
        (FOUR_DIRECTIVES, "some.test. A", ["REFUSED"]),
        (FOUR_DIRECTIVES, "some.test. TXT", ["-"]),
        (FOUR_DIRECTIVES, "coredns.invalid. TXT", ["-"]),
        (FOUR_DIRECTIVES, "ip-1.example. MX", ["NOERROR", "ip-1.example. 60 IN MX 10 ip-1.example."]),
        (FOUR_DIRECTIVES, "web.example. MX", ["SERVFAIL"]),
        (FOUR_DIRECTIVES, "web.other.example. MX", ["-"]),
    ],
)
def test_a_question_gets_the_records_of_the_first_directive_that_matches(
    corefile: str, question: str, expected: list[str]
) -> None:
    assert shown(question, resolved(corefile, question)) == expected


def test_another_class_is_answered_in_that_class() -> None:
    resolution = answered(FOUR_DIRECTIVES, "coredns.invalid. CH TXT")
    assert resolution.response.answer == (RRset(b"", RRType.TXT, 60, (b"\x04test",), RRClass.CH),)


def test_an_answer_is_authoritative_counted_and_for_everyone() -> None:
    resolution = answered(ADDRESSES, "ip-10-0-0-1.example. A")
    assert (resolution.response.flags, resolution.plugin, resolution.scope) == (Flag.AA, "template", Scope.EVERYONE)
    assert resolution.detail == TemplateMatch("example.", "IN", "A")


def test_the_longest_of_its_zones_is_the_one_that_counts() -> None:
    corefile = 'template IN A example a.example {\n answer "{{ .Zone }} 60 A 10.0.0.1"\n}'
    assert shown("x.a.example. A", resolved(corefile, "x.a.example. A")) == ["NOERROR", "a.example. 60 IN A 10.0.0.1"]


def test_the_records_of_one_name_and_type_are_one_rrset() -> None:
    corefile = 'template IN A {\n answer "{{ .Name }} 60 A 10.0.0.1" "{{ .Name }} 60 A 10.0.0.2"\n}'
    resolution = answered(corefile, "web.example. A")
    assert resolution.response.answer == (RRset(b"", RRType.A, 60, (b"\n\0\0\1", b"\n\0\0\2")),)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ .Remote }}", "10.240.0.1"),
        ("{{ .Message.Id }}", "29008"),
        ("{{ .Message.RecursionDesired }}", "true"),
    ],
)
def test_an_answer_that_names_the_client_is_for_that_client_only(template: str, text: str) -> None:
    resolution = answered(f'template IN TXT {{\n answer "{{{{ .Name }}}} 60 TXT {template}"\n}}', "x. TXT")
    assert resolution.scope == Scope.CLIENT
    assert resolution.response.answer[0].rdatas == (bytes((len(text),)) + text.encode(),)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ .Question.Name }}", "Web.Example."),
        ("{{ .Question.Qtype }}", "16"),
        ("{{ (index .Message.Question 0).Qclass }}", "1"),
        ("{{ .Class }}/{{ .Type }}", "IN/TXT"),
        ("{{ .Regex }}", ".*"),
        ("{{ index .Match 0 }}", "web.example."),
        ("{{ .Group.missing }}", "<no value>"),
        ('{{ index .Group \\"missing\\" }}', ""),
        ('{{ .Meta \\"kubernetes/client-namespace\\" }}', ""),
    ],
)
def test_fields_of_the_question_that_a_template_may_use(template: str, text: str) -> None:
    resolution = answered(f'template IN TXT {{\n answer "{{{{ .Name }}}} TXT \\"{template}\\""\n}}', "Web.Example. TXT")
    assert resolution.response.answer[0].rdatas == (bytes((len(text),)) + text.encode(),)


def test_the_extended_error_goes_with_the_answer() -> None:
    resolution = answered(INVALID, "x.invalid. A")
    assert resolution.response.ede == Ede(21, "Blocked according to RFC2606")


@pytest.mark.parametrize(
    ("record", "question", "rdata"),
    [
        (r"HTTPS 1 . alpn=\"h2,dot\" port=\"853\"", "x.example. HTTPS", "0001000001000702683203646f74000300020355"),
        ("OPENPGPKEY aGVs bG8=", "x.example. OPENPGPKEY", b"hello".hex()),
        (r"TYPE257 \# 8 000569737375653b", "x.example. CAA", "000569737375653b"),
        (rf"TXT \"{'a' * 256}\"", "x.example. TXT", (b"\xff" + b"a" * 255 + b"\1a").hex()),
    ],
    ids=["HTTPS", "OPENPGPKEY", "TYPE257", "TXT"],
)
def test_a_record_of_any_type_is_answered(record: str, question: str, rdata: str) -> None:
    rtype = question.split()[1]
    resolution = answered(f'template IN {rtype} example {{\n answer "{{{{ .Name }}}} 60 IN {record}"\n}}', question)
    assert [each.hex() for rrset in resolution.response.answer for each in rrset.rdatas] == [rdata]


def test_rcode_servfail_is_bare() -> None:
    corefile = 'template IN A {\n rcode SERVFAIL\n answer "{{ .Name }} A 10.0.0.1"\n}'
    resolution = answered(corefile, "x. A")
    assert resolution.response == Response(2, flags=0, ede=Ede(EdeCode.OTHER, "template: rcode SERVFAIL"))


@pytest.mark.parametrize(
    ("template", "problem", "counted"),
    [
        ("{{ .Name }} 60 IN TXT {{ index .Match 2 }}", "index out of range: 2", "render"),
        ("{{ .Name }} 60 IN TXT {{ parseInt `gg` 16 8 }}", "parseInt: 'gg' is no number of base 16", "render"),
        ("{{ index .Match 0 }}", "found 'x.example.', expected an owner, a type and its data", "record"),
        ("{{ .Name }} 60 IN A {{ .Group.a }}", "found 2 words of data for A, expected 1", "record"),
    ],
)
@pytest.mark.parametrize("section", ["answer", "additional", "authority"])
def test_a_template_that_gives_no_record_is_servfail_with_its_reason_and_counted(
    section: str, template: str, problem: str, counted: str
) -> None:
    asked = step(f'template IN A example {{\n {section} "{template}"\n}}')
    resolution = at_once(asked(ask("x.example."), client()))
    assert resolution is not None
    ede = Ede(EdeCode.OTHER, f"template: {section}: {problem}")
    assert resolution.response == Response(Rcode.SERVFAIL, flags=0, ede=ede)
    assert (resolution.scope, resolution.detail) == (Scope.CLIENT, TemplateMatch("example.", "IN", "A"))
    key = FailureKey("example.", "IN", "A", section, template)
    expected = ({key: 1}, {}) if counted == "render" else ({}, {key: 1})
    assert (asked.counts.render_failures, asked.counts.record_failures) == expected


@pytest.mark.parametrize("name", ["a b.example.", 'a"b.example.', "a;b.example.", "a(b.example.", "a\\b.example."])
def test_a_hostile_name_stays_one_word_of_the_record(name: str) -> None:
    label = name.split(".")[0].encode()
    spelling = bytes((len(label),)) + label + b"\x07example\0"
    hostile = ask("x.example.")._replace(qname=(label.decode(), "example"), spelling=spelling)
    resolution = at_once(step('template IN A {\n answer "x.{{ .Name }} 60 A 10.0.0.1"\n}')(hostile, client()))
    assert resolution is not None
    assert [rrset.owner for rrset in resolution.response.answer] == [b"\x01x" + spelling]


def chased(target: Name, qtype: int, source: Client) -> Answered:
    addresses = RRset(b"", qtype, 30, (b"\n\0\0\7",))
    assert target == ("web", "shop", "svc", "cluster", "local")
    return Resolution(Response(answer=(addresses,), flags=Flag.AA | Flag.TC), "kubernetes")


def test_a_cname_is_followed_by_the_listener_s_answer_for_its_target() -> None:
    resolution = resolved(SERVICES, "web.shop.svc. A", chased)
    assert shown("web.shop.svc. A", resolution) == [
        "NOERROR",
        "web.shop.svc. 5 IN CNAME web.shop.svc.cluster.local.",
        "web.shop.svc.cluster.local. 30 IN A 10.0.0.7",
    ]
    assert resolution is not None
    assert (resolution.scope, resolution.response.flags) == (Scope.CLIENT, Flag.AA | Flag.TC)


@pytest.mark.parametrize("question", ["web.shop.svc. CNAME", "web.shop.svc. TXT", "web.shop.svc. ANY"])
def test_only_addresses_are_looked_up_behind_a_cname(question: str) -> None:
    resolution = answered(SERVICES, question, chased)
    assert len(resolution.response.answer) == 1


def test_a_type_without_a_mnemonic_has_no_text() -> None:
    odd = Query(1, 0, parse_name("x."), name_wire(parse_name("x.")), 4711, RRClass.IN, Edns(1232, 0, False), 30)
    resolution = at_once(step('template IN ANY {\n answer "{{ .Name }} TXT <{{ .Type }}>"\n}')(odd, client()))
    assert resolution is not None
    assert resolution.response.answer[0].rdatas == (b"\x02<>",)
    assert resolution.detail == TemplateMatch(".", "IN", "")


def test_each_question_gets_its_own_record() -> None:
    asked = step(ADDRESSES)
    names = ["ip-10-0-0-1.example.", "ip-10-0-0-1.example.", "ip-10-0-0-2.example.", "ip-10-0-0-1.example."]
    answers = [at_once(asked(query(f"{name} A"), client())) for name in names]
    assert [shown(f"{name} A", each)[1] for name, each in zip(names, answers, strict=True)] == [
        "ip-10-0-0-1.example. 60 IN A 10.0.0.1",
        "ip-10-0-0-1.example. 60 IN A 10.0.0.1",
        "ip-10-0-0-2.example. 60 IN A 10.0.0.2",
        "ip-10-0-0-1.example. 60 IN A 10.0.0.1",
    ]
