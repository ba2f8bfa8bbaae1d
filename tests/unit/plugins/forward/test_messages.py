"""Messages to an upstream: the question, and nothing else that a client sent."""

import struct

import pytest
from dnslib import DNSRecord

from tests.support.dns_messages import ECS, KEEPALIVE, NODE_IDENTITY
from tests.support.query_builders import ask
from topodns.dns.message import Edns, Flag, Option, Query
from topodns.dns.rrtype import RRClass, RRType
from topodns.plugins.forward.messages import QUESTION_AT, Outgoing, has_edns, probe_message, without_edns
from topodns.plugins.forward.settings import HealthCheck
from topodns.query.forwarded_options import ForwardedOption

RD, AD, CD, AA, TC, RA = Flag.RD, Flag.AD, Flag.CD, Flag.AA, Flag.TC, Flag.RA


def test_the_question_leaves_in_lower_case_and_its_id_is_the_transport_s() -> None:
    message = Outgoing().question_message(ask("WWW.Example.ORG", RRType.AAAA))
    assert message == b"\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03org\0\0\x1c\0\x01"


@pytest.mark.parametrize(
    ("asked", "sent"),
    [(0, 0), (RD, RD), (AD, AD), (CD, CD), (RD | AD | CD, RD | AD | CD), (RD | AA | TC | RA | 0x40, RD)],
)
def test_of_the_header_only_rd_ad_and_cd_are_copied(asked: int, sent: int) -> None:
    assert struct.unpack_from("!H", Outgoing().question_message(ask("a.example", flags=asked))) == (sent,)


def opt(query: Query, *options: tuple[int, bytes]) -> tuple[int, int, list[tuple[int, bytes]]] | None:
    """Payload size, TTL field and options of the OPT record that leaves."""
    records = DNSRecord.parse(b"id" + Outgoing(options).question_message(query)).ar
    if not records:
        return None
    (record,) = records
    return record.rclass, record.ttl, [(each.code, bytes(each.data)) for each in record.rdata]


FOREIGN = tuple(
    (code, b"\0\1\x20\0\xc0\0\2\1") for code in (ECS, Option.COOKIE, KEEPALIVE, NODE_IDENTITY, Option.NSID, 65001)
)


@pytest.mark.parametrize(
    ("edns", "sent"),
    [
        (None, None),
        (Edns(4096, 0, False), (1232, 0, [])),
        (Edns(512, 0, True), (1232, 0x8000, [])),
        (Edns(1232, 0, True, FOREIGN), (1232, 0x8000, [])),
    ],
    ids=["none", "without DO", "with DO", "with options of a client"],
)
def test_edns_is_made_anew_where_the_client_had_it(
    edns: Edns | None, sent: tuple[int, int, list[tuple[int, bytes]]] | None
) -> None:
    assert opt(ask("a.example", edns=edns)) == sent


@pytest.mark.parametrize("edns", [None, Edns(4096, 0, False, FOREIGN)])
def test_options_of_our_own_leave_also_for_a_client_without_edns(edns: Edns | None) -> None:
    mine = (NODE_IDENTITY, b"node-1")
    assert opt(ask("a.example", edns=edns), mine) == (1232, 0, [mine])


def test_forwarded_options_leave_besides_those_of_our_own() -> None:
    mine, ecs = (NODE_IDENTITY, b"node-1"), ForwardedOption(ECS, b"\0\1\x08\0\x0a")
    edns = Edns(4096, 0, True, (*FOREIGN, ecs))
    assert opt(ask("a.example", edns=edns)) == (1232, 0x8000, [ecs])
    assert opt(ask("a.example", edns=edns), mine) == (1232, 0x8000, [mine, ecs])


def test_a_node_cache_sends_its_own_node_identity_and_no_other() -> None:
    mine, other = (NODE_IDENTITY, b"node-1"), ForwardedOption(NODE_IDENTITY, b"node-2")
    query = ask("a.example", edns=Edns(4096, 0, False, (other,)))
    assert opt(query) == (1232, 0, [other])
    assert opt(query, mine) == (1232, 0, [mine])


def test_a_message_has_1232_octets_at_most_and_options_that_do_not_fit_are_left_out() -> None:
    options = tuple(ForwardedOption(65001 + number, bytes(500)) for number in range(3))
    query = ask("a.example", edns=Edns(4096, 0, False, (*options, ForwardedOption(65010, b"small"))))
    assert opt(query) == (1232, 0, [*options[:2], (65010, b"small")])
    longest = ForwardedOption(65001, bytes(1232 - len(Outgoing().question_message(ask("a.example"))) - 2 - 11 - 4))
    whole = Outgoing().question_message(ask("a.example", edns=Edns(4096, 0, False, (longest,))))
    assert len(b"id" + whole) == 1232
    longer = longest._replace(data=longest.data + b"x")
    assert opt(ask("a.example", edns=Edns(4096, 0, False, (longer,)))) == (1232, 0, [])


@pytest.mark.parametrize("options", [(), ((NODE_IDENTITY, b"node-1"),)])
def test_without_edns_the_message_is_as_if_the_client_had_none(options: tuple[tuple[int, bytes], ...]) -> None:
    query = ask("a.example", edns=Edns(1232, 0, True))
    plain = Outgoing().question_message(ask("a.example"))
    assert without_edns(Outgoing(options).question_message(query), plain[QUESTION_AT:]) == plain
    assert has_edns(Outgoing(options).question_message(query))
    assert not has_edns(plain)


def test_equal_questions_are_equal_messages_however_they_are_spelled() -> None:
    one = ask("A.example", edns=Edns(512, 0, False, FOREIGN))
    assert Outgoing().question_message(one) == Outgoing().question_message(ask("a.EXAMPLE", edns=Edns(4096, 0, False)))


@pytest.mark.parametrize(
    "other",
    [
        ask("b.example"),
        ask("a.example", RRType.AAAA),
        ask("a.example", qclass=RRClass.CH),
        ask("a.example", flags=0),
        ask("a.example", flags=RD | CD),
        ask("a.example", flags=RD | AD),
        ask("a.example", edns=Edns(1232, 0, False)),
        ask("a.example", edns=Edns(1232, 0, True)),
        ask("a.example", edns=Edns(1232, 0, False, (ForwardedOption(9, b""),))),
    ],
    ids=["name", "type", "class", "RD", "CD", "AD", "EDNS", "DO", "a forwarded option"],
)
def test_a_field_that_can_change_an_answer_changes_the_message(other: Query) -> None:
    assert Outgoing().question_message(ask("a.example")) != Outgoing().question_message(other)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (HealthCheck(), b"\x01\0\0\x01\0\0\0\0\0\0\0\0\x02\0\x01"),
        (HealthCheck(recursion_desired=False), b"\0\0\0\x01\0\0\0\0\0\0\0\0\x02\0\x01"),
        (HealthCheck(domain=("a", "example")), b"\x01\0\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x02\0\x01"),
    ],
)
def test_a_probe_asks_for_the_ns_of_a_name(check: HealthCheck, message: bytes) -> None:
    assert probe_message(check) == message
