"""Records that a table takes, and records that it refuses."""

import pytest

from topodns.dns.message import RRset
from topodns.dns.name import parse_name
from topodns.dns.rrtype import RRType
from topodns.dns.zonefile import BadZone, parse_zone
from topodns.plugins.file.zone import MAX_RECORDS, TableBuilder, ZoneTable

ORIGIN = parse_name("example.org")
SOA = "@ 300 SOA ns host 2017 7200 1800 86400 30\n"


def table(text: str) -> ZoneTable:
    builder = TableBuilder(ORIGIN)
    for record in filter(None, parse_zone(text, ORIGIN)):
        builder.add(record)
    return builder.done()


def test_records_of_one_name_and_type_are_one_rrset_with_the_least_ttl() -> None:
    rrset = table(f"{SOA}WWW 60 A 192.0.2.1\nwww 30 A 192.0.2.2\nwww 90 A 192.0.2.1").rrsets(("www", *ORIGIN))[RRType.A]
    assert (rrset.ttl, len(rrset.rdatas)) == (30, 2)


def test_names_between_others_exist_without_records() -> None:
    nodes = table(f"{SOA}a.b.c 5 A 192.0.2.1").nodes
    assert nodes[("b", "c", *ORIGIN)] == {} == nodes[("c", *ORIGIN)]


def test_records_outside_of_the_zone_are_left_out() -> None:
    assert list(table(f"{SOA}www.example.net. 5 A 192.0.2.1").nodes) == [ORIGIN]


def test_the_serial_is_the_soa_s() -> None:
    assert table(SOA).serial == 2017


REFUSED = {
    "nothing": ("", "no SOA record for example.org."),
    "the SOA of another zone": (
        "$ORIGIN example.net.\n" + SOA,
        "no SOA record for example.org., found one for example.net.",
    ),
    "an SOA further down": (f"{SOA}sub 5 SOA ns host 1 1 1 1 1", "line 2: an SOA record for sub.example.org. inside"),
    "two SOA records": (SOA + SOA.replace("2017", "2018"), "line 2: a second SOA record for example.org."),
    "two CNAME records": (f"{SOA}a 5 CNAME b\na 5 CNAME c", "line 3: a second CNAME record for a.example.org."),
    "a signed zone": (f"{SOA}@ 5 TYPE46 \\# 19 {'00' * 19}", "line 2: a signed zone"),
    "one too many": (
        SOA + "www 5 A 192.0.2.1\n" * MAX_RECORDS,
        f"line {MAX_RECORDS + 1}: more than {MAX_RECORDS} records",
    ),
}


@pytest.mark.parametrize(("text", "problem"), REFUSED.values(), ids=REFUSED)
def test_refuses(text: str, problem: str) -> None:
    with pytest.raises(BadZone) as refused:
        table(text)
    assert str(refused.value).startswith(problem)


SAME = {
    "CNAME": (f"{SOA}a 5 CNAME b\na 5 CNAME b", "a", RRType.CNAME),
    "SOA, as a zone transfer has it, first and last": (f"{SOA}a 5 A 192.0.2.1\n{SOA}", "", RRType.SOA),
}


@pytest.mark.parametrize(("text", "label", "rtype"), SAME.values(), ids=SAME)
def test_the_same_record_twice_is_one(text: str, label: str, rtype: int) -> None:
    rrset: RRset = table(text).rrsets((label, *ORIGIN) if label else ORIGIN)[rtype]
    assert len(rrset.rdatas) == 1
