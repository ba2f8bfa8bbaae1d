"""Corefile text, question, answer."""

from ipaddress import ip_address

import pytest

from tests.support.corefile_settings import only_block
from tests.support.query_builders import ask, client
from tests.support.rrset_text import lines
from topodns.dns.message import Flag
from topodns.dns.rrtype import QTYPES, RRClass, RRType
from topodns.plugins.hosts.handler import HostNames, hosts_fact
from topodns.plugins.hosts.table import HostTable, parse_hosts_line
from topodns.query.plugin import FellThrough, Resolution, Scope, Stepped

INLINE = """hosts /lists/hosts {
    10.0.0.1 a.example b.example
    10.0.0.2 a.example
    fd00::1 a.example
    10.0.0.9 *.apps.example
    %s
}"""
FALLTHROUGH = INLINE % "fallthrough"
NO_FALLTHROUGH = INLINE % ""
UNSUPPORTED = INLINE % "fallthrough\nfallthrough_unsupported"
SOME = INLINE % "fallthrough example ip6.arpa"
SHORT = INLINE % "ttl 60"
NO_REVERSE = INLINE % "no_reverse"
EMPTY = HostTable()


def step(corefile: str, table: HostTable = EMPTY) -> HostNames:
    settings = only_block(corefile).settings.get("hosts")
    assert settings is not None
    return HostNames(settings, lambda: table)


def answer(stepped: Stepped, name: str) -> list[str] | str:
    """The records, or a word for an outcome without records."""
    match stepped:
        case None:
            return "not mine"
        case FellThrough():
            return "fell through"
        case Resolution(response) if response.rcode:
            return "SERVFAIL"
        case Resolution(response):
            return lines(response.answer, name) or "NODATA"


@pytest.mark.parametrize(
    ("corefile", "name", "qtype", "expected"),
    [
        (
            NO_FALLTHROUGH,
            "A.Example.",
            "A",
            ["A.Example. 3600 IN A 10.0.0.1", "A.Example. 3600 IN A 10.0.0.2"],
        ),
        (NO_FALLTHROUGH, "a.example.", "AAAA", ["a.example. 3600 IN AAAA fd00::1"]),
        (SHORT, "b.example.", "A", ["b.example. 60 IN A 10.0.0.1"]),
        (NO_FALLTHROUGH, "web.apps.example.", "A", ["web.apps.example. 3600 IN A 10.0.0.9"]),
        (NO_FALLTHROUGH, "b.example.", "AAAA", "NODATA"),
        (NO_FALLTHROUGH, "b.example.", "TXT", "NODATA"),
        (NO_FALLTHROUGH, "b.example.", "ANY", "NODATA"),
        (NO_FALLTHROUGH, "c.example.", "A", "SERVFAIL"),
        (NO_FALLTHROUGH, "c.example.", "TXT", "SERVFAIL"),
        (FALLTHROUGH, "c.example.", "A", "fell through"),
        (FALLTHROUGH, "c.example.", "TXT", "fell through"),
        (FALLTHROUGH, "b.example.", "AAAA", "NODATA"),
        (FALLTHROUGH, "b.example.", "TXT", "NODATA"),
        (UNSUPPORTED, "b.example.", "TXT", "fell through"),
        (UNSUPPORTED, "b.example.", "AAAA", "NODATA"),
        (SOME, "c.example.", "A", "fell through"),
        (SOME, "c.test.", "A", "SERVFAIL"),
        ("hosts /lists/hosts example {\n10.0.0.1 a.example\n}", "a.test.", "A", "not mine"),
        ("hosts /lists/hosts example {\n10.0.0.1 a.test\n}", "a.example.", "A", "SERVFAIL"),
        ("hosts /lists/hosts example {\n10.0.0.1 a.test\n}", "1.0.0.10.in-addr.arpa.", "PTR", "fell through"),
        (
            "hosts /lists/hosts example {\n10.0.0.1 a.example a.test\n}",
            "1.0.0.10.in-addr.arpa.",
            "PTR",
            ["1.0.0.10.in-addr.arpa. 3600 IN PTR a.example."],
        ),
        (
            NO_FALLTHROUGH,
            "1.0.0.10.in-addr.arpa.",
            "PTR",
            ["1.0.0.10.in-addr.arpa. 3600 IN PTR a.example.", "1.0.0.10.in-addr.arpa. 3600 IN PTR b.example."],
        ),
        (NO_FALLTHROUGH, "9.0.0.10.in-addr.arpa.", "PTR", "fell through"),
        (NO_FALLTHROUGH, "0.0.10.in-addr.arpa.", "PTR", "fell through"),
        (NO_FALLTHROUGH, "a.example.", "PTR", "fell through"),
        (NO_REVERSE, "1.0.0.10.in-addr.arpa.", "PTR", "fell through"),
    ],
)
def test_a_question_gets(corefile: str, name: str, qtype: str, expected: list[str] | str) -> None:
    number = QTYPES[qtype]
    assert answer(step(corefile)(ask(name, number), client()), name) == expected


def test_an_ipv4_address_is_the_same_in_its_ipv6_form() -> None:
    name = ip_address("::ffff:10.0.0.2").reverse_pointer + "."
    assert answer(step(NO_FALLTHROUGH)(ask(name, RRType.PTR), client()), name) == [f"{name} 3600 IN PTR a.example."]


def test_another_class_is_not_its_business() -> None:
    assert step(NO_FALLTHROUGH)(ask("a.example.", RRType.A, RRClass.CH), client()) is None


def test_entries_of_the_file_come_first_and_none_comes_twice() -> None:
    table = HostTable()
    for line in (b"10.0.0.7 a.example", b"10.0.0.2 a.example"):
        entry = parse_hosts_line(line)
        assert entry is not None
        table.add(entry)
    both = step(NO_FALLTHROUGH, table)
    assert answer(both(ask("a.example."), client()), "a.") == [
        "a. 3600 IN A 10.0.0.7",
        "a. 3600 IN A 10.0.0.2",
        "a. 3600 IN A 10.0.0.1",
    ]
    assert both.entries == 4 + (4 + 1 + 4)


@pytest.mark.parametrize("name", ["a.example.", "c.example."])
def test_an_answer_and_a_fallthrough_rest_on_the_file(name: str) -> None:
    stepped = step(FALLTHROUGH)(ask(name), client())
    assert stepped is not None
    assert stepped.facts == (hosts_fact("/lists/hosts"),)


def test_an_answer_is_authoritative_and_for_everyone() -> None:
    resolution = step(NO_FALLTHROUGH)(ask("b.example.", RRType.AAAA), client())
    assert isinstance(resolution, Resolution)
    assert (resolution.response.flags, resolution.plugin, resolution.scope) == (Flag.AA, "hosts", Scope.EVERYONE)
    assert resolution.response.authority == ()


def test_a_missing_name_is_not_authoritative_and_not_cached() -> None:
    resolution = step(NO_FALLTHROUGH)(ask("c.example."), client())
    assert isinstance(resolution, Resolution)
    assert (resolution.response.flags, resolution.scope) == (0, Scope.CLIENT)
    assert resolution.response.ede is not None
