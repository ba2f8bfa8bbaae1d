"""AAAA records made from A records. The answer below is written as records; `!RCODE` is an error."""

from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address, ip_network

import pytest

from tests.support.cluster_dig import expected, query_of
from tests.support.corefile_settings import only_directive
from tests.support.deferred_results import at_once
from tests.support.plugin_metrics import shown
from tests.support.query_builders import client
from tests.support.rrset_text import lines
from topodns.corefile.errors import ConfigError
from topodns.dependency import service_fact
from topodns.dns.message import Flag, Query, Response, RRset
from topodns.dns.name import name_wire, parse_name
from topodns.dns.record_text import parse_record
from topodns.dns.rrtype import RCODE_NAMES, RCODES, TYPE_NAMES, Rcode, RRType
from topodns.plugins.context import Context
from topodns.plugins.dns64 import WELL_KNOWN_PREFIX, Dns64, Dns64Counts, Translator, embed, parse_dns64
from topodns.plugins.setup import Shared
from topodns.query.deferred import Outcome
from topodns.query.plugin import Client, Resolution, Scope

ASKED = "example.com."
IPV6, IPV4 = "2001:db8::1", "10.0.0.1"
SOA = "example.com. 70 IN SOA ns. host. 1 1 1 1 1"
TWO = "example.com. 60 IN A 192.0.2.42\nexample.com. 5000 IN A 192.0.2.43"
OWN = "example.com. 60 IN AAAA ::1"
# Python 3.13 writes the last 32 bits with dots.
MAPPED = "\n".join(f"example.com. 60 IN AAAA {IPv6Address(text)}" for text in ("::ffff:192.0.2.1", "::ffff:0.0.0.0"))

Texts = Mapping[str, str]


class Below:
    """Says for each type what its text says, now or later."""

    def __init__(self, texts: Texts, late: bool = False) -> None:
        self._texts = texts
        self._late = late
        self.asked: list[str] = []

    def __call__(self, query: Query, client: Client) -> Resolution:
        rtype = TYPE_NAMES[query.qtype]
        self.asked.append(rtype)
        facts = (service_fact("default", rtype),)
        valid_until = {"A": 1010.0, "AAAA": 1020.0}.get(rtype)
        return Resolution(response_of(self._texts.get(rtype, "")), "forward", facts=facts, valid_until=valid_until)

    async def later(self, query: Query, client: Client) -> Resolution:
        outcome: Outcome[Resolution] = Outcome()
        outcome.settle(self(query, client))
        return await outcome


def response_of(text: str) -> Response:
    if text.startswith("!"):
        return Response(RCODES[text[1:]], flags=0)
    records = [parse_record(line) for line in text.splitlines()]
    return Response(
        answer=tuple(own_name(each) for each in records if each.rtype != RRType.SOA),
        authority=tuple(each for each in records if each.rtype == RRType.SOA),
        flags=Flag.RA | Flag.AD,
    )


def own_name(rrset: RRset) -> RRset:
    return rrset._replace(owner=b"") if rrset.owner == name_wire(parse_name(ASKED)) else rrset


def ask(texts: Texts, settings: Dns64, source: str, qtype: str = "AAAA", late: bool = False) -> Resolution:
    below = Below(texts)
    translator = Translator(settings)
    question = query_of(f"{ASKED} {qtype}")
    return at_once(translator(question, client(source), below.later if late else below))


def got(resolution: Resolution) -> str:
    response = resolution.response
    rcode = [] if response.rcode == Rcode.NOERROR else [RCODE_NAMES[response.rcode]]
    return "\n".join([*rcode, *lines((*response.answer, *response.authority), ASKED)])


TRANSLATED = """
    example.com. 60 IN AAAA 64:ff9b::c000:22a
    example.com. 600 IN AAAA 64:ff9b::c000:22b
"""
PLAIN, ALL, EVEN_IPV4 = Dns64(), Dns64(translate_all=True), Dns64(allow_ipv4=True)
# What AAAA and A are, with which settings, from where, and what becomes of it.
CASES = {
    "no AAAA record": ({"A": TWO}, PLAIN, IPV6, TRANSLATED),
    "the TTL is the SOA's at most": (
        {"AAAA": SOA, "A": TWO},
        PLAIN,
        IPV6,
        """
        example.com. 60 IN AAAA 64:ff9b::c000:22a
        example.com. 70 IN AAAA 64:ff9b::c000:22b
        """,
    ),
    "neither": ({"AAAA": SOA, "A": SOA}, PLAIN, IPV6, SOA),
    "an error for AAAA": ({"AAAA": "!REFUSED", "A": TWO}, PLAIN, IPV6, TRANSLATED),
    "an error for both": ({"AAAA": "!SERVFAIL", "A": "!SERVFAIL"}, PLAIN, IPV6, "SERVFAIL"),
    "no such name": ({"AAAA": "!NXDOMAIN", "A": TWO}, PLAIN, IPV6, "NXDOMAIN"),
    "an AAAA record": ({"AAAA": OWN, "A": TWO}, PLAIN, IPV6, OWN),
    "an AAAA record, translate_all": ({"AAAA": OWN, "A": TWO}, ALL, IPV6, TRANSLATED),
    "an AAAA record alone, translate_all": ({"AAAA": OWN, "A": SOA}, ALL, IPV6, OWN),
    "IPv4-mapped AAAA records": ({"AAAA": MAPPED, "A": TWO}, PLAIN, IPV6, TRANSLATED),
    "IPv4-mapped AAAA records alone": ({"AAAA": MAPPED, "A": SOA}, PLAIN, IPV6, SOA),
    "IPv4-mapped AAAA records alone, translate_all": ({"AAAA": MAPPED, "A": SOA}, ALL, IPV6, SOA),
    "IPv4-mapped AAAA records beside others": (
        {"AAAA": f"{MAPPED}\n{OWN}\nexample.com. 60 IN AAAA ::fffe:0:1", "A": TWO},
        PLAIN,
        IPV6,
        f"{OWN}\nexample.com. 60 IN AAAA ::fffe:0:1",
    ),
    "IPv4-mapped AAAA records beside others, translate_all": (
        {"AAAA": f"{MAPPED}\n{OWN}", "A": SOA},
        ALL,
        IPV6,
        OWN,
    ),
    "IPv4-mapped AAAA records, a client over IPv4": ({"AAAA": MAPPED, "A": TWO}, PLAIN, IPV4, MAPPED),
    "an IPv4-mapped AAAA record behind a CNAME": (
        {
            "AAAA": "example.com. 9 IN CNAME a.net.\na.net. 8 IN AAAA ::ffff:192.0.2.1",
            "A": "example.com. 9 IN CNAME a.net.\na.net. 8 IN A 192.0.2.1",
        },
        PLAIN,
        IPV6,
        """
        example.com. 9 IN CNAME a.net.
        a.net. 8 IN AAAA 64:ff9b::c000:201
        """,
    ),
    "a client over IPv4": ({"AAAA": SOA, "A": TWO}, PLAIN, IPV4, SOA),
    "a client over IPv4, allow_ipv4": ({"A": TWO}, EVEN_IPV4, IPV4, TRANSLATED),
    "a CNAME": (
        {"AAAA": "example.com. 9 IN CNAME a.net.", "A": "example.com. 9 IN CNAME a.net.\na.net. 8 IN A 192.0.2.1"},
        PLAIN,
        IPV6,
        """
        example.com. 9 IN CNAME a.net.
        a.net. 8 IN AAAA 64:ff9b::c000:201
        """,
    ),
}


@pytest.mark.parametrize(("texts", "settings", "source", "answer"), CASES.values(), ids=CASES)
def test_answers_to_an_aaaa_query(texts: Texts, settings: Dns64, source: str, answer: str) -> None:
    assert got(ask(texts, settings, source)) == expected(answer)
    assert got(ask(texts, settings, source, late=True)) == expected(answer)


def test_other_types_are_left_alone() -> None:
    assert got(ask({"A": TWO}, ALL, IPV6, "A")) == TWO


def test_a_second_question_is_asked_only_where_it_matters() -> None:
    below = Below({"AAAA": OWN, "A": TWO})
    Translator(PLAIN)(query_of(f"{ASKED} AAAA"), client(IPV6), below)
    assert below.asked == ["AAAA"]


def test_the_answer_rests_on_both_and_is_not_authenticated() -> None:
    resolution = ask({"A": TWO}, PLAIN, IPV6)
    assert set(resolution.facts) == {service_fact("default", "A"), service_fact("default", "AAAA")}
    assert resolution.valid_until == 1010.0
    assert resolution.scope is Scope.EVERYONE
    assert resolution.response.flags == Flag.RA


def test_of_one_rrset_the_mapped_addresses_alone_are_left_out() -> None:
    rdatas = tuple(IPv6Address(text).packed for text in ("::ffff:192.0.2.1", "::1", "::ffff:192.0.2.2"))
    native = Resolution(Response(answer=(RRset(b"", RRType.AAAA, 60, rdatas),)), "forward")
    answered = Translator(PLAIN)(query_of(f"{ASKED} AAAA"), client(IPV6), lambda query, client: native)
    assert got(at_once(answered)) == OWN


def test_an_answer_without_its_mapped_addresses_is_not_authenticated() -> None:
    assert ask({"AAAA": f"{MAPPED}\n{OWN}"}, PLAIN, IPV6).response.flags == Flag.RA
    assert ask({"AAAA": OWN}, PLAIN, IPV6).response.flags == Flag.RA | Flag.AD


def test_translations_are_counted() -> None:
    translator = Translator(PLAIN)
    for texts in ({"A": TWO}, {"AAAA": OWN}, {"AAAA": SOA}):
        translator(query_of(f"{ASKED} AAAA"), client(IPV6), Below(texts))
    assert translator.counts.translated == 1


EMBEDDED = {  # RFC 6052 section 2.4
    "2001:db8::/32": "2001:db8:c000:221::",
    "2001:db8:100::/40": "2001:db8:1c0:2:21::",
    "2001:db8:122::/48": "2001:db8:122:c000:2:2100::",
    "2001:db8:122:300::/56": "2001:db8:122:3c0:0:221::",
    "2001:db8:122:344::/64": "2001:db8:122:344:c0:2:2100::",
    "2001:db8:122:344::/96": "2001:db8:122:344::192.0.2.33",
    "64:ff9b::/96": "64:ff9b::192.0.2.33",
}


@pytest.mark.parametrize(("prefix", "address"), EMBEDDED.items())
def test_addresses_are_embedded_as_rfc_6052_shows(prefix: str, address: str) -> None:
    network = ip_network(prefix)
    octets = network.network_address.packed[: network.prefixlen // 8]
    assert ip_address(embed(octets, ip_address("192.0.2.33").packed)) == ip_address(address)


def test_translated_answers_are_counted_by_server() -> None:
    shared = Shared()
    shared.get(Dns64Counts, "dns://:53").translated = 4
    assert shown("dns64", "coredns_dns64_requests_translated_total", shared) == {'{server="dns://:53"}': 4}


ORG, NET = ("example", "org"), ("example", "net")


def prefix(text: str, octets: int) -> bytes:
    return IPv6Address(text).packed[:octets]


DNS64 = {
    "dns64": Dns64(),
    "dns64 64:ff9b::/96": Dns64(WELL_KNOWN_PREFIX),
    "dns64 64:1337::/96": Dns64(prefix("64:1337::", 12)),
    "dns64 {\n prefix 64:1337::/96\n}": Dns64(prefix("64:1337::", 12)),
    "dns64 2001:db8::/32 {\n allow_ipv4\n}": Dns64(prefix("2001:db8::", 4), allow_ipv4=True),
    "dns64 {\n translate_all\n}": Dns64(translate_all=True),
}


@pytest.mark.parametrize(("text", "settings"), DNS64.items())
def test_dns64_is_read_as_coredns_reads_it(text: str, settings: Dns64) -> None:
    assert parse_dns64(only_directive(text), Context((ORG,))) == settings


DNS64_REFUSED = {
    "dns64 10.0.0.0/8": "Corefile:1: 'dns64' has the prefix '10.0.0.0/8', expected an IPv6 one",
    "dns64 64:ff9b::/33": "Corefile:1: 'dns64' has the prefix '64:ff9b::/33'",
    "dns64 64:ff9b::": "Corefile:1: 'dns64' has the prefix '64:ff9b::'",
    "dns64 a b": "Corefile:1: 'dns64' has the arguments 'a b', expected one IPv6 prefix",
    "dns64 {\n prefix\n}": "Corefile:2: 'prefix' has no argument, expected one IPv6 prefix",
    "dns64 {\n allow_ipv6\n}": "Corefile:2: unknown option 'allow_ipv6' of 'dns64', did you mean 'allow_ipv4'?",
}


@pytest.mark.parametrize(("text", "problem"), DNS64_REFUSED.items())
def test_dns64_refuses(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_dns64(only_directive(text), Context((ORG,)))
    assert str(refused.value).startswith(problem)
