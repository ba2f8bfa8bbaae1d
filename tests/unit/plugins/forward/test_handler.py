"""A question where upstreams work: the upstream that gets it, the message, and the client's answer."""

import struct

import pytest
from dnslib import DNSRecord

from tests.support.dns_messages import ECS, KEEPALIVE, NODE_IDENTITY, Opt
from tests.support.forward_with_upstreams import ForwardScene
from tests.support.query_builders import ask, client
from tests.support.rrset_text import lines
from tests.support.scripted_upstream import Behaviour, says
from topodns.dns.message import Ede, Edns, Flag, Option, Query
from topodns.dns.name import parse_name
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.plugins.forward.flight import has_edns, without_edns
from topodns.plugins.forward.handler import Outgoing
from topodns.plugins.forward.settings import HealthCheck
from topodns.plugins.forward.upstreams import probe_message
from topodns.query.plugin import Client, ForwardedOption, Scope
from topodns.query.upstream import QUESTION_AT, Transport

AA, TC, RA, AD = Flag.AA, Flag.TC, Flag.RA, Flag.AD
UDP, TCP, TLS = Transport.UDP, Transport.TCP, Transport.TLS
WWW = says("www.example.org. 300 IN A 192.0.2.7")
EDNS = Edns(4096, 0, False)


def test_the_answer_is_the_upstream_s() -> None:
    found = ForwardScene(WWW).asked_and_answered(ask("WWW.example.org")).resolution
    assert lines(found.response.answer, "WWW.example.org.") == ["WWW.example.org. 300 IN A 192.0.2.7"]
    assert (found.plugin, found.scope, found.upstream) == ("forward", Scope.CLIENT, "192.0.2.1:53")


@pytest.mark.parametrize("rcode", [Rcode.NXDOMAIN, Rcode.REFUSED, Rcode.SERVFAIL, Rcode.NOTIMP, 9])
def test_any_rcode_of_an_upstream_is_an_answer(rcode: int) -> None:
    scene = ForwardScene(says(rcode=rcode), WWW)
    found = scene.asked_and_answered(ask("www.example.org"))
    assert (found.rcode, found.resolution.upstream, scene.asked) == (rcode, "192.0.2.1:53", [1, 0])


@pytest.mark.parametrize("flags", [0, RA, AA | RA, RA | AD, RA | TC])
def test_the_upstream_s_aa_ra_ad_and_tc_are_passed_on(flags: int) -> None:
    found = ForwardScene(says("www.example.org. 300 IN A 192.0.2.7", flags=flags | 0x40)).asked_and_answered(
        ask("www.example.org")
    )
    assert found.resolution.response.flags == flags


def test_the_upstream_s_edns_stays_with_us_but_for_its_reason() -> None:
    options = [(Option.COOKIE, b"12345678"), (ECS, b"\0\1\x18\0\xc0\0\2"), (Option.EXTENDED_ERROR, b"\0\x09no DNSKEY")]
    found = ForwardScene(says(rcode=Rcode.SERVFAIL, opt=Opt(options=options))).asked_and_answered(
        ask("www.example.org", edns=EDNS)
    )
    assert (found.ede, found.resolution.response.options) == (Ede(9, "no DNSKEY"), ())


FROM = {
    "the root takes all": ([""], [], "www.example.org", True),
    "FROM itself": (["example.org"], [], "example.org", True),
    "below FROM": (["example.org"], [], "a.b.example.org", True),
    "beside FROM": (["example.org"], [], "example.com", False),
    "a name that only ends alike": (["example.org"], [], "an-example.org", False),
    "one of several": (["a.example", "b.example"], [], "x.b.example", True),
    "excepted": (["."], ["example.org"], "example.org", False),
    "below what is excepted": (["."], ["example.com", "example.org"], "www.example.org", False),
    "not excepted": (["."], ["example.org"], "example.com", True),
    "FROM, although it is excepted": (["example.org"], ["example.org"], "example.org", True),
    "below FROM that is excepted": (["example.org"], ["example.org"], "www.example.org", False),
}


@pytest.mark.parametrize(("origins", "excepted", "name", "taken"), FROM.values(), ids=FROM)
def test_names_are_forwarded_that_from_covers_and_except_does_not(
    origins: list[str], excepted: list[str], name: str, taken: bool
) -> None:
    scene = ForwardScene(says(), origins=tuple(map(parse_name, origins)), excepted=tuple(map(parse_name, excepted)))
    assert scene.asked_and_answered(ask(name)).passed_on is not taken
    assert scene.asked == [int(taken)]


BY_UDP, BY_TCP = client(transport="udp"), client(transport="tcp")
TRAVELS: dict[str, tuple[dict[str, bool], Client, list[Transport]]] = {
    "as the client's": ({}, BY_UDP, [UDP]),
    "as the client's, by TCP": ({}, BY_TCP, [TCP]),
    "force_tcp": ({"force_tcp": True}, BY_UDP, [TCP]),
    "prefer_udp": ({"prefer_udp": True}, BY_TCP, [UDP]),
    "both, of which force_tcp counts": ({"force_tcp": True, "prefer_udp": True}, BY_UDP, [TCP]),
    "to a TLS server": ({"tls": True}, BY_UDP, [TLS]),
    "to a TLS server, whatever else is said": ({"tls": True, "prefer_udp": True}, BY_TCP, [TLS]),
}


@pytest.mark.parametrize(("settings", "asker", "transports"), TRAVELS.values(), ids=TRAVELS)
def test_a_question_travels(settings: dict[str, bool], asker: Client, transports: list[Transport]) -> None:
    scene = ForwardScene(WWW, **settings)  # type: ignore[arg-type]  # tls is one of the scene's own
    assert scene.asked_and_answered(ask("www.example.org"), asker).rcode == Rcode.NOERROR
    assert [asked.transport for asked in scene.upstreams[0].asked] == transports


TRUNCATED = says("www.example.org. 300 IN A 192.0.2.6", flags=RA | TC)


def test_with_prefer_udp_a_truncated_reply_is_asked_for_over_tcp() -> None:
    scene = ForwardScene(TRUNCATED, prefer_udp=True)
    scene.upstreams[0].behave(TRUNCATED, WWW)
    found = scene.asked_and_answered(ask("www.example.org")).resolution.response
    assert [asked.transport for asked in scene.upstreams[0].asked] == [UDP, TCP]
    assert (found.flags, found.answer[0].rdatas) == (RA, (b"\xc0\0\2\7",))


def test_without_it_the_client_learns_that_it_is_truncated() -> None:
    scene = ForwardScene(TRUNCATED)
    assert scene.asked_and_answered(ask("www.example.org")).resolution.response.flags == RA | TC
    assert scene.asked == [1]


def test_a_reply_truncated_over_tcp_is_not_asked_for_again() -> None:
    scene = ForwardScene(TRUNCATED, prefer_udp=True, force_tcp=True)
    assert scene.asked_and_answered(ask("www.example.org")).resolution.response.flags == RA | TC
    assert scene.asked == [1]


def bad_version(message: bytes) -> bytes:
    reply = bytearray(says(opt=Opt())(message))
    reply[-6] = Rcode.BADVERS >> 4
    return bytes(reply)


def bare_header(message: bytes) -> bytes:
    return message[:2] + b"\x81\x81" + bytes(8)


@pytest.mark.parametrize(
    "first",
    [says(rcode=Rcode.FORMERR), says(rcode=Rcode.FORMERR, opt=Opt()), bad_version, bare_header],
    ids=["FORMERR", "FORMERR with EDNS", "BADVERS", "FORMERR without a question"],
)
def test_an_upstream_that_cannot_take_edns_is_asked_without(first: Behaviour) -> None:
    scene = ForwardScene(WWW)
    scene.upstreams[0].behave(first, WWW)
    assert scene.asked_and_answered(ask("www.example.org", edns=EDNS)).rcode == Rcode.NOERROR
    assert [asked.message[11] for asked in scene.upstreams[0].asked] == [1, 0]


def test_formerr_to_a_question_without_edns_is_the_answer() -> None:
    scene = ForwardScene(says(rcode=Rcode.FORMERR))
    assert scene.asked_and_answered(ask("www.example.org")).rcode == Rcode.FORMERR
    assert scene.asked == [1]


def test_the_setup_may_add_edns_options_to_each_query() -> None:
    scene = ForwardScene(WWW, options=((NODE_IDENTITY, b"node-a"),))
    scene.asked_and_answered(ask("www.example.org"))
    assert scene.upstreams[0].asked[0].message.endswith(b"\xff\xee\0\6node-a")


PASSES: dict[str, tuple[dict[str, object], Behaviour, bool]] = {
    "next, and the code is one": ({"next_rcodes": frozenset({3})}, says(rcode=3), True),
    "next, and another code": ({"next_rcodes": frozenset({3})}, says(rcode=2), False),
    "next_on_nodata, and no answer": ({"next_on_nodata": True}, says(), True),
    "next_on_nodata, and an answer": ({"next_on_nodata": True}, WWW, False),
    "next_on_nodata, and no such name": ({"next_on_nodata": True}, says(rcode=3), False),
    "neither": ({}, says(rcode=3), False),
}


@pytest.mark.parametrize(("settings", "behave", "passed"), PASSES.values(), ids=PASSES)
def test_the_next_forward_is_asked_after_some_answers(
    settings: dict[str, object], behave: Behaviour, passed: bool
) -> None:
    scene = ForwardScene(behave, followed=True, **settings)  # type: ignore[arg-type]  # only settings
    assert scene.asked_and_answered(ask("www.example.org")).passed_on is passed


def test_without_a_next_forward_next_means_nothing() -> None:
    scene = ForwardScene(says(rcode=Rcode.NXDOMAIN), next_rcodes=frozenset({3}))
    assert scene.asked_and_answered(ask("www.example.org")).rcode == Rcode.NXDOMAIN


@pytest.mark.parametrize(
    ("edns", "kept"), [(None, 1), (Edns(1232, 0, False), 1), (Edns(1232, 0, True), 2)], ids=["plain", "EDNS", "DO"]
)
def test_signatures_come_to_clients_that_want_them(edns: Edns | None, kept: int) -> None:
    signature = "www.example.org. 300 IN RRSIG A 13 3 300 20260101000000 20250101000000 1 example.org. AAAA"
    scene = ForwardScene(says("www.example.org. 300 IN A 192.0.2.7", signature))
    found = scene.asked_and_answered(ask("www.example.org", edns=edns))
    assert len(found.resolution.response.answer) == kept


def test_any_type_is_forwarded() -> None:
    query: Query = ask("www.example.org", 65280)
    scene = ForwardScene(says())
    assert scene.asked_and_answered(query).rcode == Rcode.NOERROR
    assert scene.upstreams[0].asked[0].message[-4:-2] == b"\xff\0"


def test_each_waiting_query_gets_a_response_of_its_own() -> None:
    scene = ForwardScene(WWW)
    scene.upstreams[0].delay = 0.1
    one, other = scene.ask(ask("www.example.org")), scene.ask(ask("WWW.EXAMPLE.ORG"), client("10.240.0.2"))
    scene.timers.advance(0.1)
    one.resolution.response.answer = ()
    assert other.resolution.response.answer[0].rtype == RRType.A


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
