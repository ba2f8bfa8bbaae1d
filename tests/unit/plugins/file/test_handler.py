"""The `file` step among others: whose names are its own, what goes on, where aliases lead."""

from types import SimpleNamespace
from typing import Any

from tests.support.cluster_dig import query_of
from tests.support.deferred_results import at_once
from tests.support.query_builders import client
from tests.support.rrset_text import lines
from topodns.dns.message import Query, Response, RRset
from topodns.dns.name import Name, name_text, parse_name
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.zonefile import parse_zone
from topodns.dnsserver.router import Chaser
from topodns.plugins.file.handler import ZoneFileStep
from topodns.plugins.file.settings import ZoneFile
from topodns.plugins.file.zone import TableBuilder, ZoneTable, file_fact
from topodns.query.cname import MAX_CHAIN, MAX_CHASE, Chase
from topodns.query.plugin import Answered, Client, FellThrough, Resolution, Scope, Stepped

TEXT = """
@      5 SOA ns host 1 1 1 1 1
www    5 A 192.0.2.1
out    5 CNAME www.elsewhere.net.
a.b    5 TXT x
"""
PATH = "/etc/zones/db"
ORIGINS = ("example.org", "sub.example.org")


def table(origin: Name, text: str = TEXT) -> ZoneTable:
    builder = TableBuilder(origin)
    for record in filter(None, parse_zone(text, origin)):
        builder.add(record)
    return builder.done()


def elsewhere(target: Name, qtype: int, client: Client) -> Answered | None:
    assert (name_text(target), qtype) == ("www.elsewhere.net.", RRType.A)
    return Resolution(Response(answer=(RRset(b"", RRType.A, 9, (bytes((192, 0, 2, 9)),)),)), "forward")


def step(*fallthrough: str, chase: Chase | None = None) -> ZoneFileStep:
    origins = tuple(map(parse_name, ORIGINS))
    tables = {origin: table(origin) for origin in origins}
    return ZoneFileStep(ZoneFile(PATH, origins, fallthrough=tuple(map(parse_name, fallthrough))), tables.get, chase)


def stepped(question: str, of: ZoneFileStep) -> Stepped:
    asked: Query = query_of(question)
    given = of(asked, client())
    return given if given is None or isinstance(given, FellThrough) else at_once(given)


def resolved(question: str, of: ZoneFileStep) -> Resolution:
    found = stepped(question, of)
    assert isinstance(found, Resolution)
    return found


def test_answers_are_everyone_s_until_the_file_changes() -> None:
    resolution = resolved("www.example.org. A", step())
    assert (resolution.plugin, resolution.scope, resolution.facts) == ("file", Scope.EVERYONE, (file_fact(PATH),))


def test_names_of_others_are_passed_on() -> None:
    assert stepped("www.example.net. A", step()) is None


def test_the_longest_origin_is_the_one() -> None:
    authority = resolved("nowhere.sub.example.org. A", step()).response.authority
    assert lines(authority, "")[0].startswith("sub.example.org. 1 IN SOA")


def test_an_alias_to_outside_is_followed_and_the_answer_is_not_cached() -> None:
    resolution = resolved("out.example.org. A", step(chase=elsewhere))
    assert lines(resolution.response.answer, "out.example.org.") == [
        "out.example.org. 5 IN CNAME www.elsewhere.net.",
        "www.elsewhere.net. 9 IN A 192.0.2.9",
    ]
    assert resolution.scope is Scope.CLIENT


def failing(rcode: int) -> Chase:
    return lambda target, qtype, client: Resolution(Response(rcode), "forward")


def test_an_alias_to_a_name_that_does_not_exist_has_its_rcode_and_a_soa() -> None:
    """RFC 6604 section 3, RFC 2308 section 2.1."""
    response = resolved("out.example.org. A", step(chase=failing(Rcode.NXDOMAIN))).response
    assert response.rcode == Rcode.NXDOMAIN
    assert [rrset.rtype for rrset in response.authority] == [RRType.SOA]


def test_an_alias_to_a_name_that_another_server_refuses_is_answered_alone() -> None:
    """A stub resolver takes REFUSED as this server's."""
    response = resolved("out.example.org. A", step(chase=failing(Rcode.REFUSED))).response
    assert (response.rcode, len(response.answer)) == (Rcode.NOERROR, 1)


def test_an_alias_to_outside_without_another_source_is_answered_alone() -> None:
    assert len(resolved("out.example.org. A", step()).response.answer) == 1


def test_names_without_records_fall_through_where_they_may() -> None:
    of = step("example.org")
    assert stepped("nowhere.example.org. A", of) == FellThrough((file_fact(PATH),))
    assert stepped("b.example.org. A", of) == FellThrough((file_fact(PATH),))
    assert resolved("www.example.org. AAAA", of).response.rcode == Rcode.NOERROR
    assert resolved("nowhere.example.org. A", step("example.net")).response.rcode == Rcode.NXDOMAIN


def test_a_zone_transfer_is_refused() -> None:
    assert resolved("example.org. AXFR", step()).response.rcode == Rcode.REFUSED


def test_before_the_file_could_be_read_nothing_is_known() -> None:
    of = ZoneFileStep(ZoneFile(PATH, (parse_name("example.org"),)), lambda origin: None)
    resolution = resolved("www.example.org. A", of)
    assert (resolution.response.rcode, resolution.facts) == (Rcode.SERVFAIL, (file_fact(PATH),))


def test_a_chain_through_zone_files_has_153_aliases_at_most_and_is_a_failure_then() -> None:
    """17 in a zone, of which the last one leads to another zone, and that 8 times."""
    most = (MAX_CHAIN + 1) * (MAX_CHASE + 1)
    count = most + 10
    zones = [f"{'ab'[number // (MAX_CHAIN + 1) % 2]}.example" for number in range(count + 1)]
    aliases = {
        zone: "".join(f"c{n} CNAME c{n + 1}.{zones[n + 1]}.\n" for n in range(count) if zones[n] == zone)
        for zone in set(zones)
    }
    tables = {
        parse_name(zone): table(parse_name(zone), f"@ 5 SOA ns host 1 1 1 1 1\n{lines}")
        for zone, lines in aliases.items()
    }
    block: Any = SimpleNamespace()
    of = ZoneFileStep(ZoneFile(PATH, tuple(tables)), tables.get, Chaser(lambda *_: block))
    block.chain = SimpleNamespace(resolve=of)
    response = resolved("c0.a.example. A", of).response
    assert [rrset.rtype for rrset in response.answer] == [RRType.CNAME] * most
    assert response.rcode == Rcode.SERVFAIL
