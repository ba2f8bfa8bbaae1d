"""The names, the format and the classes of `log`."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.corefile_settings import block_problem, only_block
from tests.support.query_builders import ask, client
from topodns.dns.message import Edns, Flag, Query, Response, RRset
from topodns.dns.name import label_wire, parse_name
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.plugins.log import Exchange, LogRule, QueryLog, compile_format
from topodns.query.plugin import Client, Resolution
from topodns.query.response_type import ResponseType

QR, AA, RD = Flag.QR, Flag.AA, Flag.RD
ALL = frozenset({"all"})
COMMON = (
    '{remote}:{port} - {>id} "{type} {class} {name} {proto} {size} {>do} {>bufsize}" '
    "{rcode} {>rflags} {rsize} {duration}"
)
SOA = (RRset(b"", RRType.SOA, 5, (b"\0\0" + bytes(20),)),)


def exchange(
    query: Query | None = None,
    asking: Client | None = None,
    rcode: int | None = Rcode.NOERROR,
    flags: int = QR | AA | RD,
    duration: float = 0.037990251,
    kind: ResponseType = ResponseType.NOERROR,
    upstream: str = "",
) -> Exchange:
    return Exchange(
        query or ask("example.org."), asking or client(), rcode, flags, 68, duration, kind, "10.96.0.10", upstream
    )


@pytest.mark.parametrize(
    ("format", "line"),
    [
        (COMMON, '10.240.0.1:40212 - 29008 "A IN example.org. udp 29 false 512" NOERROR qr,aa,rd 68 0.037990251s'),
        ("{type}|{class}|{name}|{proto}|{size}", "A|IN|example.org.|udp|29"),
        ("{remote} {port} {local}", "10.240.0.1 40212 10.96.0.10"),
        ("{>id} {>opcode} {>do} {>bufsize}", "29008 0 false 512"),
        ("{rcode} {rsize} {>rflags} {duration}", "NOERROR 68 qr,aa,rd 0.037990251s"),
        ("{/log/class} {/log/type} {/kubernetes/service}", "success NOERROR -"),
        ("{/forward/upstream}", "-"),
        ("{ {name} }", "{ example.org. }"),
        ("} {name} {unknown} {", "} example.org. {unknown} {"),
        ("{Name} {>ID}", "{Name} {>ID}"),
        ("{{type}}", "{A}"),
    ],
)
def test_a_format_is_filled_in(format: str, line: str) -> None:
    assert compile_format(format)(exchange()) == line


@pytest.mark.parametrize(
    ("format", "logged", "line"),
    [
        ("{/forward/upstream}", exchange(upstream="192.0.2.53:53"), "192.0.2.53:53"),
        ("{type} {class}", exchange(ask("x.", 65280, 65281)), "TYPE65280 CLASS65281"),
        ("{type} {class}", exchange(ask("x.", 257, 254)), "CAA NONE"),
        ("{type} {class}", exchange(ask("x.", RRType.TXT, RRClass.CH)), "TXT CH"),
        ("{name}", exchange(ask("Www.Example.ORG.")), "www.example.org."),
        ("{remote}:{port}", exchange(asking=client("2001:db8::1", 5)), "[2001:db8::1]:5"),
        ("{>do} {>bufsize}", exchange(ask("x.", edns=Edns(1232, 0, True))), "true 1232"),
        ("{>bufsize}", exchange(ask("x.", edns=Edns(100, 0, True))), "512"),
        ("{proto} {>bufsize}", exchange(asking=client(transport="tcp")), "tcp 65535"),
        ("{>opcode}", exchange(ask("x.", flags=4 << 11)), "4"),
        ("{rcode}", exchange(rcode=Rcode.NXDOMAIN), "NXDOMAIN"),
        ("{rcode}", exchange(rcode=3841), "3841"),
        ("{>rflags}", exchange(flags=0x87B0 | Rcode.NXDOMAIN), "qr,aa,tc,rd,ra,ad,cd"),
        ("<{>rflags}>", exchange(flags=0), "<>"),
        ("{duration}", exchange(duration=0.0000071234567), "0.000007123s"),
        ("{duration}", exchange(duration=2.5), "2.5s"),
        ("{duration}", exchange(duration=0.0), "0s"),
        ("{rcode} {>rflags}", exchange(rcode=None), "- -"),
    ],
)
def test_values_read_as_coredns_writes_them(format: str, logged: Exchange, line: str) -> None:
    assert compile_format(format)(logged) == line


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ('a" noerror', 'a\\"\\032noerror.'),
        ("a\nb", "a\\010b."),
        ("a.b", "a\\.b."),
        ("\x1b[31m", "\\027[31m."),
    ],
)
def test_a_name_cannot_forge_a_line(label: str, text: str) -> None:
    query = ask("x.")._replace(qname=(label,), spelling=label_wire(label) + b"\0")
    assert compile_format("{name}")(exchange(query)) == text


@settings(max_examples=100)
@given(st.text(st.characters(max_codepoint=255), min_size=1, max_size=63))
def test_whatever_is_asked_for_the_line_is_one_line_of_printable_ascii(label: str) -> None:
    line = compile_format(COMMON)(exchange(ask("x.")._replace(qname=(label,))))
    assert line.isascii()
    assert line.isprintable()
    assert len(line.split(" ")) == 14


def lines_of(rules: list[LogRule], query: Query, response: Response | None) -> list[str]:
    lines: list[str] = []
    log = QueryLog(rules, lines.append, "10.96.0.10")
    resolution = None if response is None else Resolution(response, "kubernetes")
    reply = None if response is None else query.id.to_bytes(2, "big") + bytes((0x85, response.rcode)) + bytes(30)
    logged = log(query, client(), resolution, reply, 0.001)
    assert logged == bool(lines)
    return lines


def rule(origin: str, format: str = "{name} {rcode} {>rflags} {rsize}", classes: frozenset[str] = ALL) -> LogRule:
    return LogRule((parse_name(origin),), format, classes)


def test_an_exchange_is_logged_as_it_was_sent() -> None:
    assert lines_of([rule(".")], ask("www.example."), Response(Rcode.REFUSED)) == [
        "www.example. REFUSED qr,aa,rd 34",
    ]


def test_a_query_that_got_no_reply_is_logged_without_one() -> None:
    assert lines_of([rule(".")], ask("www.example."), None) == ["www.example. - - 0"]


@pytest.mark.parametrize(
    ("classes", "logged"),
    [
        ({"all"}, "success denial error"),
        ({"success"}, "success"),
        ({"denial"}, "denial"),
        ({"error"}, "error"),
        ({"denial", "error"}, "denial error"),
        ({"success", "all"}, "success denial error"),
    ],
)
def test_only_the_classes_asked_for_are_logged(classes: set[str], logged: str) -> None:
    responses = (Response(), Response(authority=SOA), Response(Rcode.SERVFAIL))
    rules = [rule(".", "{/log/class}", frozenset(classes))]
    lines = [line for response in responses for line in lines_of(rules, ask("www.example."), response)]
    assert " ".join(lines) == logged


@pytest.mark.parametrize(
    ("name", "logged"),
    [
        ("a.example.", ["first"]),
        ("www.A.example.", ["first"]),
        ("b.example.", ["second"]),
        ("quiet.b.example.", []),
        ("c.example.", []),
    ],
)
def test_the_first_rule_that_covers_the_name_decides(name: str, logged: list[str]) -> None:
    rules = [
        rule("a.example", "first"),
        rule("quiet.b.example", "never", frozenset({"error"})),
        LogRule((parse_name("a.example"), parse_name("b.example")), "second", ALL),
    ]
    assert lines_of(rules, ask(name), Response()) == logged


def test_the_local_address_of_a_server_that_listens_everywhere_is_the_unspecified_one() -> None:
    lines: list[str] = []
    QueryLog([rule(".", "{local}")], lines.append)(ask("x."), client(), None, None, 0.0)
    assert lines == ["[::]"]


COMBINED = COMMON + ' "{>opcode}"'


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ("log", LogRule(((),), COMMON, ALL)),
        ("log example.org", LogRule((("example", "org"),), COMMON, ALL)),
        ("log a.org B.org", LogRule((("a", "org"), ("b", "org")), COMMON, ALL)),
        ("log . {common}", LogRule(((),), COMMON, ALL)),
        ("log . {combined}", LogRule(((),), COMBINED, ALL)),
        ('log a.org b.org "{type} \\"{name}\\""', LogRule((("a", "org"), ("b", "org")), '{type} "{name}"', ALL)),
        ('log . "{combined} {/kubernetes/endpoint}"', LogRule(((),), COMBINED + " {/kubernetes/endpoint}", ALL)),
        ("log {\n class denial error\n}", LogRule(((),), COMMON, frozenset({"denial", "error"}))),
        ("log {\n class denial\n class success\n}", LogRule(((),), COMMON, frozenset({"denial", "success"}))),
        ("log . {combined} {\n class all\n}", LogRule(((),), COMBINED, ALL)),
    ],
)
def test_log(lines: str, rule: LogRule) -> None:
    assert only_block(lines).settings.get("log") == (rule,)


def test_several_logs_add_up_in_order() -> None:
    rules = only_block("log a.org\nerrors\nlog b.org {\n class error\n}").settings["log"]
    assert [rule.origins for rule in rules] == [(("a", "org"),), (("b", "org"),)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("log {combined}", "2: 'log' has '{combined}', expected names and then one format: log . '{combined}'"),
        (
            "log {type} . {name}",
            "2: 'log' has '{type}', expected names and then one format: log . '{type}'",
        ),
        ("log a..b", "2: found no zone's name: empty label in 'a..b'"),
        ("log {\n class\n}", "3: 'class' has no argument, expected success, denial, error or all"),
        ("log {\n class errors\n}", "3: 'class' has 'errors', did you mean 'error'?"),
        ("log {\n clas all\n}", "3: unknown option 'clas' of 'log', did you mean 'class'?"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"
