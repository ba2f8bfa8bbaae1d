"""The ladder of refusals, from silence to SERVFAIL, in the words of dig; blocks have real steps, mostly `whoami`."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.deferred_results import at_once
from tests.support.dns_messages import DO, RD, Opt
from tests.support.in_memory_server import CLIENT, PORT, Addresses, block, counted, dig, handler, send
from topodns.dns.message import Flag, Query, Response, RRset
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.plugins.whoami import whoami
from topodns.query.counters import ReplyKind, size_bucket
from topodns.query.deferred import Deferred
from topodns.query.plugin import BadOption, Client, Dropped, Resolution, Step, Stepped


def fails(query: Query, client: Client) -> Resolution:
    raise ZeroDivisionError("as bugs do")


def drops(query: Query, client: Client) -> Resolution:
    raise Dropped("acl")


def finds_a_bad_option(query: Query, client: Client) -> Resolution:
    raise BadOption("ECS of 1 octets, at least 4 expected")


def makes_a_record_that_cannot_be(query: Query, client: Client) -> Resolution:
    return Resolution(Response(answer=(RRset(b"", RRType.A, -1, (CLIENT,)),)), "kubernetes")


@pytest.mark.parametrize(
    ("data", "port"),
    [
        pytest.param(b"", PORT, id="nothing"),
        pytest.param(dig("example. A")[:11], PORT, id="less than a header"),
        pytest.param(dig("example. A", flags=Flag.QR | RD), PORT, id="a response (CVE-2024-2169)"),
        pytest.param(dig("example. A", flags=Flag.QR | 0x7800), PORT, id="a response of an unknown opcode"),
        pytest.param(dig("example. A", flags=Flag.QR)[:15], PORT, id="a response that is cut off"),
        pytest.param(dig("example. A"), 0, id="from port 0"),
    ],
)
@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_a_message_that_must_not_be_answered_is_dropped(transport: str, data: bytes, port: int) -> None:
    answering = handler(block(".", whoami), transport=transport)
    assert answering.answer(data, CLIENT, port) is None
    assert counted(answering) == {}


@pytest.mark.parametrize("opcode", range(1, 16))
@pytest.mark.parametrize("flags", [0, RD])
def test_opcodes_but_query_are_notimp_with_a_bare_header_and_no_aa(opcode: int, flags: int) -> None:
    question = dig("example. SOA", flags=opcode << 11 | flags)
    for data in (question, question[:12], question + b"garbage"):  # RFC 8906 8.1.4 sends a header alone
        reply = send(handler(block(".", whoami)), data)
        assert reply.flags == Flag.QR | opcode << 11 | flags | Rcode.NOTIMP
        assert reply.wire[4:] == bytes(8)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(dig("example. A")[:12], id="no question where one is promised"),
        pytest.param(dig("example. A")[:-1], id="cut off"),
        pytest.param(dig("example. A") + b"\0", id="octets left over"),
        pytest.param(dig("example. A", Opt(options=[(10, b"")]))[:-1], id="option cut off"),
        pytest.param(struct.pack("!HHHHHH", 7, RD, 0, 0, 0, 0), id="no question"),
        pytest.param(struct.pack("!HHHHHH", 7, RD, 1, 0, 0, 0) + b"\xc0\x0c\0\1\0\1", id="question points at itself"),
    ],
)
def test_an_unreadable_message_is_formerr_with_a_bare_header(data: bytes) -> None:
    answering = handler(block(".", whoami))
    reply = send(answering, data)
    assert reply.flags == Flag.QR | RD | Rcode.FORMERR
    assert reply.wire[4:] == bytes(8)
    assert counted(answering) == {
        ReplyKind("dropped", "other", "FORMERR", "", False, "", "", size_bucket(len(data)), 1): 1
    }


# The servers' part of RFC 8906 section 8. `whoami` is authoritative for all there is, and has nothing for SOA.
@pytest.mark.parametrize(
    ("asked", "data", "flags", "rcode", "edns_flags"),
    [
        ("+noedns +noad +norec soa", dig("example. SOA", flags=0), {"qr", "aa"}, "NOERROR", None),
        ("+noedns +noad +norec type1000", dig("example. TYPE1000", flags=0), {"qr", "aa"}, "NOERROR", None),
        ("+noedns +noad +norec +cd soa", dig("example. SOA", flags=0x10), {"qr", "aa", "cd"}, "NOERROR", None),
        ("+noedns +noad +norec +ad soa", dig("example. SOA", flags=0x20), {"qr", "aa"}, "NOERROR", None),
        ("+noedns +noad +norec +zflag soa", dig("example. SOA", flags=0x40), {"qr", "aa"}, "NOERROR", None),
        ("+noedns +noad +rec soa", dig("example. SOA"), {"qr", "aa", "rd"}, "NOERROR", None),
        ("+edns=0 soa", dig("example. SOA", Opt(), 0), {"qr", "aa"}, "NOERROR", 0),
        ("+edns=0 +bufsize=0 soa", dig("example. SOA", Opt(0), 0), {"qr", "aa"}, "NOERROR", 0),
        ("+edns=1 +noednsneg soa", dig("example. SOA", Opt(version=1), 0), {"qr"}, "BADVERS", 0),
        ("+edns=0 +ednsopt=100 soa", dig("example. SOA", Opt(9, [(100, b"")]), 0), {"qr", "aa"}, "NOERROR", 0),
        ("+edns=0 +ednsflags=0x40 soa", dig("example. SOA", Opt(flags=0x40), 0), {"qr", "aa"}, "NOERROR", 0),
        ("+edns=1 +ednsopt=100 soa", dig("example. SOA", Opt(9, [(100, b"")], 1), 0), {"qr"}, "BADVERS", 0),
        ("+edns=1 +ednsflags=0x40 soa", dig("example. SOA", Opt(9, (), 1, 0x40), 0), {"qr"}, "BADVERS", 0),
        ("+edns=0 +dnssec soa", dig("example. SOA", Opt(flags=DO), 0), {"qr", "aa"}, "NOERROR", DO),
        ("+edns=1 +dnssec soa", dig("example. SOA", Opt(version=1, flags=DO), 0), {"qr"}, "BADVERS", DO),
        (
            "+edns=0 +cookie +nsid +expire +subnet=0.0.0.0/0 soa",
            dig("example. SOA", Opt(9, [(10, b"8 octets"), (3, b""), (9, b""), (8, b"\0\1\0\0")]), 0),
            {"qr", "aa"},
            "NOERROR",
            0,
        ),
    ],
)
@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_rfc_8906_section_8(
    transport: str, asked: str, data: bytes, flags: set[str], rcode: str, edns_flags: int | None
) -> None:
    reply = send(handler(block(".", whoami), transport=transport), data)
    assert (reply.rcode, reply.flag_names) == (rcode, flags)
    assert reply.flags & 0x40 == 0
    assert reply.answer == []
    if edns_flags is None:
        assert reply.options is None
    else:
        assert (reply.options, reply.edns_version, reply.edns_flags) == ({}, 0, edns_flags)


@pytest.mark.parametrize("qtype", ["AXFR", "IXFR"])
@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_transfers_are_refused(transport: str, qtype: str) -> None:
    step = Addresses()
    reply = send(handler(block(".", step), transport=transport), dig(f"cluster.local. {qtype}"))
    assert (reply.rcode, reply.flag_names, step.asked) == ("REFUSED", {"qr", "rd"}, 0)


def of_class(qclass: int, name: str) -> bytes:
    return dig(f"{name} TXT")[:-2] + struct.pack("!H", qclass)


@pytest.mark.parametrize("qclass", [RRClass.CH, RRClass.HS, RRClass.ANY, 254, 0, 65535])
def test_classes_that_no_block_takes_are_refused(qclass: int) -> None:
    step = Addresses()
    reply = send(handler(block(".", step)), of_class(qclass, "version.bind."))
    assert (reply.rcode, reply.flag_names, step.asked) == ("REFUSED", {"qr", "rd"}, 0)


def test_a_class_that_some_block_takes_reaches_the_steps_of_all() -> None:
    classes = frozenset({RRClass.IN, RRClass.CH})
    answering = handler(block("bind.", Addresses()), block(".", whoami), classes=classes)
    assert send(answering, of_class(RRClass.CH, "version.bind.")).rcode == "NOERROR"
    assert (
        send(answering, of_class(RRClass.CH, "example.")).rcode == "SERVFAIL"
    )  # `whoami` passes; no plugin is behind it
    assert send(answering, of_class(RRClass.HS, "version.bind.")).rcode == "REFUSED"


@pytest.mark.parametrize("origins", [(), ("cluster.local.",), ("www.www.example.", "com.")])
def test_a_name_that_no_block_answers_for_is_refused(origins: tuple[str, ...]) -> None:
    answering = handler(*(block(origin, whoami) for origin in origins))
    reply = send(answering, dig("www.example. A", Opt()))
    assert (reply.rcode, reply.flag_names, reply.options) == ("REFUSED", {"qr", "rd"}, {})
    assert [kind.origin for kind in counted(answering)] == ["dropped"]


@pytest.mark.parametrize(
    ("question", "origin"),
    [
        ("svc1.default.svc.cluster.local. A", "cluster.local."),
        ("CLUSTER.LOCAL. A", "cluster.local."),
        ("www.local. A", "local."),
        ("notcluster.local. A", "local."),
        ("example. A", "."),
        (". NS", "."),
        ("cluster.local. DS", "local."),
        ("local. DS", "local."),
        ("example. DS", "."),
    ],
)
def test_the_block_with_the_longest_origin_answers_but_ds_is_the_parents(question: str, origin: str) -> None:
    answering = handler(*(block(each, Addresses(len(each))) for each in (".", "cluster.local.", "local.")))
    assert len(send(answering, dig(question)).answer) == len(origin)
    assert [kind.origin for kind in counted(answering)] == [origin]


@pytest.mark.parametrize("step", [fails, makes_a_record_that_cannot_be])
def test_a_bug_is_servfail_a_traceback_and_a_count(step: Step, caplog: pytest.LogCaptureFixture) -> None:
    answering = handler(block("broken.", step), block(".", whoami))
    reply = send(answering, dig("www.broken. A", Opt()))
    assert (reply.rcode, reply.flag_names, reply.questions, reply.options) == ("SERVFAIL", {"qr", "rd"}, 1, {})
    assert answering.socket_counters.panics == 1
    [record] = caplog.records
    assert record.getMessage() == "bug: www.broken. A over udp"
    assert record.exc_info is not None
    assert send(answering, dig("example. A")).rcode == "NOERROR"


def test_a_bug_after_the_answer_does_not_raise_either(caplog: pytest.LogCaptureFixture) -> None:
    def breaks(*exchange: object) -> bool:
        raise KeyError("as bugs do")

    answering = handler(block(".", whoami, log=breaks))
    assert send(answering, dig("example. A")).flags == Flag.QR | RD | Rcode.SERVFAIL
    assert answering.socket_counters.panics == 1
    assert caplog.records[0].getMessage() == "bug: a message of 25 octets over udp"


def test_a_malformed_claim_is_formerr_and_no_bug() -> None:
    answering = handler(block(".", finds_a_bad_option))
    reply = send(answering, dig("example. A", Opt(options=[(8, b"\0")])))
    assert (reply.rcode, reply.questions, reply.options) == ("FORMERR", 1, {})
    assert answering.socket_counters.panics == 0


def drops_later(query: Query, client: Client) -> Deferred[Stepped]:
    async def give_up() -> Stepped:
        raise Dropped("forward")

    return give_up()


@pytest.mark.parametrize(("step", "plugin"), [(drops, "acl"), (drops_later, "forward")])
def test_a_dropped_query_meets_silence_and_is_counted_without_rcode(step: Step, plugin: str) -> None:
    answering = handler(block("example.", step))
    data = dig("www.example. A", Opt(flags=DO))
    assert at_once(answering.answer(data, CLIENT, PORT)) is None
    assert counted(answering) == {ReplyKind("example.", "A", "", plugin, True, "", "", size_bucket(len(data)), 0): 1}


@given(st.binary(max_size=300), st.booleans())
def test_any_octets_meet_silence_or_a_response_with_their_id(data: bytes, good_header: bool) -> None:
    if good_header:
        data = struct.pack("!HHHHHH", 7, RD, 1, 0, 0, 0) + data
    for transport in ("udp", "tcp"):
        reply = at_once(handler(block(".", whoami), transport=transport).answer(data, CLIENT, PORT))
        if len(data) < 12 or data[2] & 0x80:
            assert reply is None
        else:
            assert reply is not None
            assert reply[:2] == data[:2]
            assert reply[2] & 0x80
            assert len(reply) <= 512


def test_a_question_for_an_instance_by_its_name_is_neither_refused_nor_counted() -> None:
    answering = handler(block(".", whoami), own_name=("0123abcd",))
    question = dig("0123abcd. TXT")[:-2] + (0xFF00).to_bytes(2, "big")
    assert send(answering, question).rcode == "NOERROR"
    assert counted(answering) == {}


def test_to_other_servers_the_private_class_is_unknown() -> None:
    question = dig("0123abcd. TXT")[:-2] + (0xFF00).to_bytes(2, "big")
    for own_name in (None, ("4567ef01",)):
        assert send(handler(block(".", whoami), own_name=own_name), question).rcode == "REFUSED"
