"""Answers of a zone: questions and answers as dig shows them, sections behind `;; AUTHORITY` and `;; ADDITIONAL`."""

from collections.abc import Iterator

import pytest

from tests.support.cluster_dig import ZoneText, cases, query_of
from topodns.dns.dnslib_text import record_lines
from topodns.dns.message import Flag, Response, RRset
from topodns.dns.name import name_text, parse_name, wire_labels
from topodns.dns.rrtype import RCODE_NAMES, Rcode, RRType
from topodns.dns.zonefile import parse_zone
from topodns.plugins.file.lookup import ZoneAnswer, look_up
from topodns.plugins.file.zone import TableBuilder, ZoneTable
from topodns.query.cname import MAX_CHAIN

DNAME = 39
TEXT = """
$TTL 300
@            SOA  ns host 2017042745 7200 3600 1209600 60
             NS   ns
             NS   ns.Elsewhere.net.
             MX   10 mail
             MX   20 MAIL
             MX   30 mx.elsewhere.net.
ns           A    192.0.2.1
             AAAA 2001:db8::1
mail         A    192.0.2.2
www          A    192.0.2.3
             A    192.0.2.4
alias        CNAME www
alias2       CNAME alias
out          CNAME www.elsewhere.net.
to-nowhere   CNAME nowhere
to-text      CNAME www
round        CNAME about
about        CNAME round
to-sub       CNAME a.sub
to-wild      CNAME some.wild
a.b.c        TXT  deep
*.wild       A    192.0.2.9
             MX   10 mail
named.wild   TXT  own
x.ent.wild   TXT  deep
*.aliases    CNAME www
sub          NS   ns.sub
             NS   ns2.sub
             NS   ns
             DS   1 8 2 ABCD
ns.sub       A    192.0.2.20
_web._tcp    SRV  0 100 80 www
_out._tcp    SRV  0 100 80 www.elsewhere.net.
old          DNAME new
www.new      A    192.0.2.30
gone         DNAME gone.elsewhere.net.
y.*.star     TXT  under
"""
ZONE = ZoneText("example.org.", ttl=300)
NS = (";; AUTHORITY", "@ NS ns", "@ NS ns.Elsewhere.net.")
SOA = (
    ";; AUTHORITY",
    "example.org. 60 IN SOA ns.example.org. host.example.org. 2017042745 7200 3600 1209600 60",
)
REFERRAL = (
    *(";; AUTHORITY", "sub NS ns.sub", "sub NS ns2.sub", "sub NS ns"),
    *(";; ADDITIONAL", "ns.sub A 192.0.2.20"),
)


def table(text: str = TEXT, origin: str = "example.org") -> ZoneTable:
    builder = TableBuilder(parse_name(origin))
    for record in filter(None, parse_zone(text, parse_name(origin))):
        builder.add(record)
    return builder.done()


TABLE = table()


def find(question: str) -> ZoneAnswer:
    return look_up(TABLE, query_of(question))


def got(question: str) -> str:
    finding = find(question)
    response, spelling = finding.response, query_of(question).spelling
    words = [RCODE_NAMES[response.rcode]] if response.rcode else []
    if not response.flags & Flag.AA:
        words.append("referral")
    lines = [*words, *answer_lines(response.answer, spelling)]
    lines += section("AUTHORITY", response.authority, spelling) + section("ADDITIONAL", response.additional, spelling)
    if finding.elsewhere is not None:
        lines.append(f"-> {name_text(finding.elsewhere)}")
    return "\n".join(lines)


def answer_lines(rrsets: tuple[RRset, ...], spelling: bytes) -> Iterator[str]:
    """DNAME, which dnslib does not know, has the RDATA of a CNAME."""
    for rrset in rrsets:
        if rrset.rtype == DNAME:
            rewritten = record_lines([rrset._replace(rtype=RRType.CNAME)], spelling)
            yield from (line.replace(" CNAME ", " DNAME ") for line in rewritten)
        else:
            yield from record_lines([rrset], spelling)


def section(title: str, rrsets: tuple[RRset, ...], spelling: bytes) -> list[str]:
    return [f";; {title}", *record_lines(rrsets, spelling)] if rrsets else []


ANSWERS = {
    "an RRset": ("www A", "A 192.0.2.3", "A 192.0.2.4", *NS),
    "in the query's spelling": ("WWW.Example.org. A", "A 192.0.2.3", "A 192.0.2.4", *NS),
    "the SOA": (
        "@ SOA",
        "example.org. 300 IN SOA ns.example.org. host.example.org. 2017042745 7200 3600 1209600 60",
        *NS,
    ),
    "the name servers, with the addresses of those inside": (
        "@ NS",
        "NS ns",
        "NS ns.Elsewhere.net.",
        ";; ADDITIONAL",
        "ns A 192.0.2.1",
        "ns AAAA 2001:db8::1",
    ),
    "hosts inside bring their addresses, once": (
        "@ MX",
        "MX 10 mail",
        "MX 20 MAIL",
        "MX 30 mx.elsewhere.net.",
        *NS,
        ";; ADDITIONAL",
        "MAIL A 192.0.2.2",
    ),
    "an SRV record, with its host": (
        "_web._tcp SRV",
        "SRV 0 100 80 www",
        *NS,
        ";; ADDITIONAL",
        "www A 192.0.2.3",
        "www A 192.0.2.4",
    ),
    "an SRV record of a host elsewhere": ("_out._tcp SRV", "SRV 0 100 80 www.elsewhere.net.", *NS),
    "another type": ("www AAAA", *SOA),
    "another type at the apex": ("@ A", *SOA),
    "no such name": ("nowhere A", "NXDOMAIN", *SOA),
    "no such name, below one that is": ("a.www A", "NXDOMAIN", *SOA),
    "an empty non-terminal": ("b.c A", *SOA),
    "a type by which all are meant": ("www ANY", *SOA),
}
WILDCARDS = {
    "a name for which it stands": ("some.wild A", "A 192.0.2.9", *NS),
    "a name further down": ("x.y.wild A", "A 192.0.2.9", *NS),
    "another type": ("some.wild TXT", *SOA),
    "a name that is there": ("named.wild A", *SOA),
    "a name below one that is there": ("x.named.wild A", "NXDOMAIN", *SOA),
    "an empty non-terminal": ("ent.wild A", *SOA),
    "a name below an empty non-terminal": ("y.ent.wild A", "NXDOMAIN", *SOA),
    "itself": ("*.wild A", "A 192.0.2.9", *NS),
    "the name above it": ("wild A", *SOA),
    "one without records": ("x.star TXT", *SOA),
    "a CNAME": ("any.aliases A", "CNAME www", "www A 192.0.2.3", "www A 192.0.2.4", *NS),
    "with hosts": ("some.wild MX", "MX 10 mail", *NS, ";; ADDITIONAL", "mail A 192.0.2.2"),
}
ALIASES = {
    "inside, one after the other": (
        "Alias2 A",
        "CNAME alias",
        "alias CNAME www",
        "www A 192.0.2.3",
        "www A 192.0.2.4",
        *NS,
    ),
    "asked for": ("alias2 CNAME", "CNAME alias", *NS),
    "to another type": ("to-text TXT", "CNAME www", *SOA),
    "to nowhere": ("to-nowhere A", "NXDOMAIN", "CNAME nowhere", *SOA),
    "outside": ("out A", "CNAME www.elsewhere.net.", *NS, "-> www.elsewhere.net."),
    "in a circle": ("round A", "CNAME about", "about CNAME round", *NS),
    "to a wildcard": ("to-wild A", "CNAME some.wild", "some.wild A 192.0.2.9", *NS),
    "to a delegated name": ("to-sub A", "CNAME a.sub", *REFERRAL),
    "a DNAME": ("www.old A", "old DNAME new", "CNAME www.new", "www.new A 192.0.2.30", *NS),
    "a DNAME to outside": (
        "a.gone A",
        "gone DNAME gone.elsewhere.net.",
        "CNAME a.gone.elsewhere.net.",
        *NS,
        "-> a.gone.elsewhere.net.",
    ),
    "the owner of a DNAME": ("old A", *SOA),
    "the CNAME that a DNAME makes": ("www.old CNAME", "old DNAME new", "CNAME www.new", *NS),
}
DELEGATIONS = {
    "a name below": ("a.b.sub A", "referral", *REFERRAL),
    "the name itself": ("sub A", "referral", *REFERRAL),
    "its name servers": ("sub NS", "referral", *REFERRAL),
    "its glue": ("ns.sub A", "referral", *REFERRAL),
    "its DS, which is the parent's": ("sub DS", "DS 1 8 2 ABCD", *NS),
    "the DS of a name below": ("a.sub DS", "referral", *REFERRAL),
}


@cases(ANSWERS)
def test_answers(question: str, records: list[str]) -> None:
    assert got(ZONE.absolute(question)) == ZONE.answer(question, *records)


@cases(WILDCARDS)
def test_a_wildcard_matches_names_that_do_not_exist(question: str, records: list[str]) -> None:
    assert got(ZONE.absolute(question)) == ZONE.answer(question, *records)


@cases(ALIASES)
def test_aliases_are_followed(question: str, records: list[str]) -> None:
    assert got(ZONE.absolute(question)) == ZONE.answer(question, *records)


@cases(DELEGATIONS)
def test_names_of_others_are_referred_to_them(question: str, records: list[str]) -> None:
    assert got(ZONE.absolute(question)) == ZONE.answer(question, *records)


@pytest.mark.parametrize(
    ("qtype", "types"),
    [
        ("SOA", [RRType.SOA]),
        ("NS", [RRType.NS]),
        ("CNAME", [RRType.CNAME]),
        ("MX", [RRType.CNAME]),
        ("A", [RRType.CNAME, RRType.A]),
    ],
)
def test_a_cname_at_the_apex_hides_neither_soa_nor_ns(qtype: str, types: list[int]) -> None:
    served = table("@ 5 SOA ns host 1 1 1 1 1\n@ NS ns\n@ MX 1 mail\n@ CNAME www\nwww A 192.0.2.1")
    answer = look_up(served, query_of(f"example.org. {qtype}")).response.answer
    assert [rrset.rtype for rrset in answer] == types


def test_a_name_that_a_dname_makes_too_long_does_not_exist() -> None:
    long = ".".join(["a" * 63] * 3)
    served = table(f"@ 5 SOA ns host 1 1 1 1 1\nd 5 DNAME {'b' * 60}.example.net.")
    response = look_up(served, query_of(f"{long}.d.example.org. A")).response
    assert response.rcode == 6  # YXDOMAIN, RFC 6672 section 2.2


ENDLESS = """
@ 5 SOA ns host 1 1 1 1 1
self DNAME self
grow DNAME grow.grow
a DNAME b
b DNAME a
mixed DNAME turn
x.turn CNAME x.mixed
*.wild CNAME any.wild
*.to CNAME l1
l1 CNAME l2
l2 CNAME l1
"""


@pytest.mark.parametrize("name", ["x.self", "x.grow", "x.a", "x.mixed", "any.wild", "other.wild"])
def test_an_endless_alias_of_a_dname_or_a_wildcard_is_servfail(name: str) -> None:
    response = look_up(table(ENDLESS), query_of(f"{name}.example.org. A")).response
    assert (response.rcode, response.answer, response.authority) == (Rcode.SERVFAIL, (), ())


@pytest.mark.parametrize(("name", "aliases"), [("l1", 2), ("any.to", 3)])
def test_a_circle_of_cnames_is_answered_once(name: str, aliases: int) -> None:
    response = look_up(table(ENDLESS), query_of(f"{name}.example.org. A")).response
    assert (response.rcode, len(response.answer)) == (Rcode.NOERROR, aliases)


@pytest.mark.parametrize(
    ("first", "types"),
    [(1, [RRType.CNAME] * MAX_CHAIN + [RRType.A]), (0, [RRType.CNAME] * (MAX_CHAIN + 1))],
)
def test_sixteen_aliases_of_a_chain_are_followed(first: int, types: list[int]) -> None:
    chain = "\n".join(f"c{n} 5 CNAME c{n + 1}" for n in range(MAX_CHAIN + 1))
    served = table(f"@ 5 SOA ns host 1 1 1 1 1\n{chain}\nc{MAX_CHAIN + 1} 5 A 192.0.2.9")
    response: Response = look_up(served, query_of(f"c{first}.example.org. A")).response
    assert [rrset.rtype for rrset in response.answer] == types
    assert response.rcode == Rcode.NOERROR


@pytest.mark.parametrize(
    ("question", "absent"),
    [
        ("nowhere.example.org. A", True),
        ("b.c.example.org. A", True),
        ("www.example.org. AAAA", False),
        ("to-nowhere.example.org. A", False),
        ("sub.example.org. A", False),
    ],
)
def test_only_a_name_without_records_is_absent(question: str, absent: bool) -> None:
    assert find(question).absent is absent


def test_the_root_may_be_served() -> None:
    root = table("@ 5 SOA ns host 1 1 1 1 1\norg 5 NS ns.org\nnet 5 A 192.0.2.1", ".")
    assert not look_up(root, query_of("example.org. A")).response.flags & Flag.AA
    answer = look_up(root, query_of("net. A")).response.answer
    assert [wire_labels(rrset.owner or b"\0") for rrset in answer] == [()]
