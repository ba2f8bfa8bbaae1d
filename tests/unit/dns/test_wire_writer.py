import struct
from itertools import pairwise

import pytest

from tests.support.dns_messages import Reply
from tests.support.model_builders import packed
from tests.support.query_builders import ask
from tests.support.rrset_text import lines
from topodns.dns.message import Ede, EdeCode, Edns, Flag, Option, Query, Response, RRset
from topodns.dns.name import name_wire, parse_name
from topodns.dns.rrtype import RCODE_NAMES, Rcode, RRType
from topodns.dns.wire_format import HEADER_SIZE, MAX_MESSAGE, MIN_UDP_PAYLOAD
from topodns.dns.wire_writer import write_error, write_response

PLAIN_EDNS = Edns(1232, 0, False)
LONGEST = ".".join(["a" * 63] * 3 + ["b" * 61])
AA, TC, RD, CD = Flag.AA, Flag.TC, Flag.RD, Flag.CD


def sent(query: Query, response: Response, limit: int = 1232) -> bytes:
    return write_response(query, response, limit, 1232)


def reply_to(query: Query, response: Response, limit: int = 1232) -> Reply:
    return Reply(sent(query, response, limit))


def a_records(*addresses: str, owner: bytes = b"") -> RRset:
    return RRset(owner, RRType.A, 5, tuple(map(packed, addresses)))


def many_a(count: int) -> RRset:
    return RRset(b"", RRType.A, 5, tuple(struct.pack("!I", 0x0A000000 + number) for number in range(count)))


def srv(*targets: str) -> RRset:
    rdatas = tuple(struct.pack("!HHH", 0, 50, 80) + name_wire(parse_name(target)) for target in targets)
    return RRset(b"", RRType.SRV, 5, rdatas)


def soa(owner: bytes) -> RRset:
    return RRset(owner, RRType.SOA, 5, (b"\x02ns" + owner + b"\x0ahostmaster" + owner + bytes(20),))


@pytest.mark.parametrize(
    ("asked", "got"),
    [
        (0, ["aa", "qr"]),
        (RD, ["aa", "qr", "rd"]),
        (CD, ["aa", "cd", "qr"]),
        (RD | CD, ["aa", "cd", "qr", "rd"]),
        (Flag.AD, ["aa", "qr"]),
        (AA | TC | Flag.RA | 0x0040, ["aa", "qr"]),
        (0x000F, ["aa", "qr"]),  # an RCODE in a query means nothing
    ],
)
def test_of_the_querys_flags_rd_and_cd_come_back(asked: int, got: list[str]) -> None:
    reply = reply_to(ask("example.", flags=asked), Response())
    assert sorted(reply.flag_names) == got
    assert reply.flags & 0x0040 == 0
    assert reply.rcode == "NOERROR"


@pytest.mark.parametrize(
    ("response", "got"),
    [
        (Response(), ["aa", "qr", "rd"]),
        (Response(flags=0), ["qr", "rd"]),
        (Response(flags=AA | Flag.RA), ["aa", "qr", "ra", "rd"]),
        (Response(flags=TC), ["qr", "rd", "tc"]),
        (Response(cleared=RD), ["aa", "qr"]),
        (Response(cleared=RD | AA), ["qr"]),
    ],
)
def test_flags_are_those_that_the_response_sets_and_clears(response: Response, got: list[str]) -> None:
    assert sorted(reply_to(ask("example.", flags=RD), response).flag_names) == got


@pytest.mark.parametrize("rcode", [Rcode.NOERROR, Rcode.FORMERR, Rcode.SERVFAIL, Rcode.NXDOMAIN, Rcode.REFUSED])
def test_the_rcode_is_in_the_header(rcode: int) -> None:
    assert reply_to(ask("example."), Response(rcode)).rcode == RCODE_NAMES[rcode]
    assert reply_to(ask("example.", edns=PLAIN_EDNS), Response(rcode)).rcode == RCODE_NAMES[rcode]


def test_id_and_question_come_back_bit_for_bit() -> None:
    query = ask("SvC1.tEsTnS.svc.cluster.local.", RRType.AAAA, qclass=3)
    data = sent(query, Response())
    assert data[:2] == query.id.to_bytes(2, "big")
    assert data[HEADER_SIZE:] == query.spelling + struct.pack("!HH", RRType.AAAA, 3)


def test_records_of_the_qname_are_owned_by_its_spelling() -> None:
    reply = reply_to(ask("SvC1.example."), Response(answer=(a_records("10.0.0.1", "10.0.0.2"),)))
    assert reply.answer == ["SvC1.example. 5 IN A 10.0.0.1", "SvC1.example. 5 IN A 10.0.0.2"]


def test_records_keep_their_order_in_every_section() -> None:
    response = Response(
        answer=(RRset(b"", RRType.CNAME, 5, (b"\x01b\0",)), a_records("10.0.0.2", "10.0.0.1", owner=b"\x01b\0")),
        authority=(RRset(b"\x01b\0", RRType.NS, 5, (b"\x02n1\0", b"\x02n2\0")),),
        additional=(a_records("10.0.0.9", owner=b"\x02n2\0"), a_records("10.0.0.8", owner=b"\x02n1\0")),
    )
    reply = reply_to(ask("a."), response)
    assert reply.answer == ["a. 5 IN CNAME b.", "b. 5 IN A 10.0.0.2", "b. 5 IN A 10.0.0.1"]
    assert reply.authority == ["b. 5 IN NS n1.", "b. 5 IN NS n2."]
    assert reply.additional == ["n2. 5 IN A 10.0.0.9", "n1. 5 IN A 10.0.0.8"]


def test_the_class_of_a_record_is_its_own() -> None:
    response = Response(answer=(RRset(b"", RRType.TXT, 0, (b"\x02hi",), 3),))
    assert reply_to(ask("version.bind.", RRType.TXT, qclass=3), response).answer == ['version.bind. 0 CH TXT "hi"']


def owner_octets(data: bytes, query: Query) -> bytes:
    """Where the first record behind the question begins: two octets are a whole owner if it is a pointer."""
    at = HEADER_SIZE + len(query.spelling) + 4
    return data[at : at + 2]


@pytest.mark.parametrize(
    ("qname", "owner", "pointer"),
    [
        ("svc1.cluster.local.", b"\x07cluster\x05local\0", 12 + 5),
        ("svc1.cluster.local.", b"\x04svc1\x07cluster\x05local\0", 12),
        ("svc1.cluster.local.", b"\x05local\0", 12 + 13),
        ("svc1.cLuStEr.LoCaL.", b"\x07cLuStEr\x05LoCaL\0", 12 + 5),
    ],
)
def test_an_owner_that_the_question_ends_in_is_a_pointer_to_it(qname: str, owner: bytes, pointer: int) -> None:
    query = ask(qname)
    assert owner_octets(sent(query, Response(authority=(soa(owner),))), query) == struct.pack("!H", 0xC000 | pointer)


def test_an_owner_spelled_otherwise_than_the_question_keeps_its_own_spelling() -> None:
    reply = reply_to(ask("svc1.cLuStEr.LoCaL."), Response(authority=(soa(b"\x07cluster\x05local\0"),)))
    assert reply.authority[0].startswith("cluster.local. 5 IN SOA ns.cluster.local.")


def test_the_root_as_owner_is_its_one_octet() -> None:
    query = ask("example.")
    assert owner_octets(sent(query, Response(authority=(soa(b"\0"),))), query) == b"\0\0"


def test_an_owner_shares_the_end_that_an_earlier_name_has() -> None:
    query = ask("svc1.example.")
    alias = b"\x05other\x07example\0"
    response = Response(answer=(a_records("10.0.0.1", owner=alias), a_records("10.0.0.2", owner=b"\x01x" + alias)))
    data = sent(query, response)
    assert Reply(data).answer == ["other.example. 5 IN A 10.0.0.1", "x.other.example. 5 IN A 10.0.0.2"]
    question_end = HEADER_SIZE + len(query.spelling) + 4
    first = b"\x05other" + struct.pack("!H", 0xC000 | HEADER_SIZE + 5)
    assert data[question_end:].startswith(first)
    second_at = question_end + len(first) + 14
    assert data[second_at:].startswith(b"\x01x" + struct.pack("!H", 0xC000 | question_end))


@pytest.mark.parametrize("targets", [("a.svc1.example.",), ("a.svc1.example.", "b.svc1.example.")])
def test_glue_is_owned_by_pointers_into_the_srv_records(targets: tuple[str, ...]) -> None:
    query = ask("_http._tcp.svc1.example.", RRType.SRV)
    glue = tuple(a_records("10.0.0.1", owner=name_wire(parse_name(target))) for target in targets)
    data = sent(query, Response(answer=(srv(*targets),), additional=glue))
    assert Reply(data).additional == [f"{target} 5 IN A 10.0.0.1" for target in targets]
    glue_size = 2 + 10 + 4
    assert len(data) == len(sent(query, Response(answer=(srv(*targets),)))) + glue_size * len(targets)


def test_srv_targets_themselves_are_never_compressed() -> None:
    data = sent(ask("svc1.example.", RRType.SRV), Response(answer=(srv("svc1.example."),)))
    assert data.endswith(b"\x04svc1\x07example\0")  # RFC 2782


HOST = name_wire(parse_name("web.svc1.example."))
UNDER_THE_QUESTION = b"\x03web\xc0\x0c"


@pytest.mark.parametrize(
    ("rtype", "rdata", "compressed"),
    [
        (RRType.CNAME, HOST, UNDER_THE_QUESTION),
        (RRType.NS, HOST, UNDER_THE_QUESTION),
        (RRType.PTR, HOST, UNDER_THE_QUESTION),
        (RRType.MB, HOST, UNDER_THE_QUESTION),
        (RRType.MX, b"\0\x0a" + HOST, b"\0\x0a" + UNDER_THE_QUESTION),
        (RRType.SOA, HOST + HOST + bytes(20), UNDER_THE_QUESTION + b"\xc0\x2a" + bytes(20)),
        (RRType.MINFO, HOST + b"\0", UNDER_THE_QUESTION + b"\0"),
        (RRType.SRV, bytes(6) + HOST, bytes(6) + HOST),
        (RRType.DNAME, HOST, HOST),
        (RRType.AFSDB, b"\0\1" + HOST, b"\0\1" + HOST),
        (RRType.HTTPS, b"\0\1" + HOST, b"\0\1" + HOST),
    ],
)
def test_names_in_rdata_are_compressed_in_the_types_of_rfc_1035_alone(
    rtype: int, rdata: bytes, compressed: bytes
) -> None:
    """RFC 3597 section 4: receivers need not know the layout of later types."""
    query = ask("svc1.example.", rtype)
    data = sent(query, Response(answer=(RRset(b"", rtype, 5, (rdata,)),)))
    head = struct.pack("!HHHIH", 0xC00C, rtype, 1, 5, len(compressed))
    assert data[HEADER_SIZE + len(query.spelling) + 4 :] == head + compressed


def test_a_chain_of_eight_aliases_and_its_address_fit_in_512_octets() -> None:
    """coredns/coredns#6149: musl takes no address from a reply with TC."""
    hosts = [b""] + [name_wire(parse_name(f"a{number}.edge.content-delivery.example.net.")) for number in range(8)]
    chain = tuple(RRset(owner, RRType.CNAME, 60, (target,)) for owner, target in pairwise(hosts))
    response = Response(answer=(*chain, a_records("192.0.2.1", owner=hosts[-1])))
    reply = reply_to(ask("www.example.com."), response, 512)
    assert len(reply.wire) < 250
    assert "tc" not in reply.flag_names
    assert reply.answer[-1] == "a7.edge.content-delivery.example.net. 5 IN A 192.0.2.1"


def test_a_reply_full_of_names_of_a_hundred_labels_is_compressed_in_part() -> None:
    """To look for each of their labels would take a hostile upstream's reply 14 ms."""
    names = [name_wire((*["a"] * 100, f"{number:04x}", "example")) for number in range(120)]
    pointers = RRset(b"", RRType.PTR, 5, tuple(names))
    reply = reply_to(ask("x.example.", RRType.PTR), Response(answer=(pointers,)), MAX_MESSAGE)
    assert reply.answer == lines((pointers,), "x.example.")
    whole = HEADER_SIZE + len("?x?example?") + 4 + sum(12 + len(name) for name in names)
    saved = len(b"\x07example\0") - 2
    assert 70 < (whole - len(reply.wire)) / saved < 90


def test_names_in_rdata_that_are_spelled_otherwise_keep_their_spelling() -> None:
    reply = reply_to(
        ask("svc1.example.", RRType.PTR), Response(answer=(RRset(b"", RRType.PTR, 5, (b"\x03web\x07EXAMPLE\0",)),))
    )
    assert reply.answer == ["svc1.example. 5 IN PTR web.EXAMPLE."]


def test_no_pointer_reaches_beyond_its_14_bits() -> None:
    targets = [f"t{number}.{LONGEST[:120]}.example." for number in range(200)]  # over 0x3FFF octets of names
    glue = tuple(a_records("10.0.0.1", owner=name_wire(parse_name(target))) for target in targets)
    response = Response(answer=(srv(*targets),), additional=glue)
    data = sent(ask("svc1.", RRType.SRV), response, MAX_MESSAGE)
    assert len(data) > 2 * 0x3FFF
    assert Reply(data).additional == [f"{target} 5 IN A 10.0.0.1" for target in targets]


RECORD = 16  # octets of an A record whose owner is a pointer


@pytest.mark.parametrize(
    ("records", "limit", "kept"),
    [
        (29, 512, 29),
        (30, 512, 29),
        (30, 515, 30),
        (30, 514, 29),
        (200, 512, 29),
        (200, 1232, 74),
        (200, MAX_MESSAGE, 200),
        (5000, MAX_MESSAGE, 4093),
    ],
)
def test_records_that_do_not_fit_are_dropped_from_the_end_and_tc_is_set(records: int, limit: int, kept: int) -> None:
    query = ask("web.cluster.local.")
    answer = many_a(records)
    data = sent(query, Response(answer=(answer,)), limit)
    reply = Reply(data)
    assert reply.answer == lines((many_a(kept),), "web.cluster.local.")
    assert ("tc" in reply.flag_names) is (kept < records)
    assert limit - RECORD < len(data) <= limit or kept == records


@pytest.mark.parametrize(
    ("limit", "answer", "additional", "flags"),
    [
        (1232, 14, 14, set()),
        (741, 14, 14, set()),
        (740, 14, 13, {"tc"}),
        (532, 14, 0, {"tc"}),
        (516, 13, 0, {"tc"}),
    ],
)
def test_additional_is_dropped_first_then_the_answer_and_tc_is_set_for_either(
    limit: int, answer: int, additional: int, flags: set[str]
) -> None:
    targets = tuple(f"{letter}.svc1.example." for letter in "abcdefghijklmn")
    glue = tuple(a_records("10.0.0.1", owner=name_wire(parse_name(target))) for target in targets)
    response = Response(answer=(srv(*targets),), additional=glue)
    reply = reply_to(ask("_http._tcp.svc1.example.", RRType.SRV), response, limit)
    assert (len(reply.answer), len(reply.additional)) == (answer, additional)
    assert reply.flag_names & {"tc"} == flags


def test_behind_a_record_that_does_not_fit_no_smaller_one_is_taken() -> None:
    big = RRset(b"", RRType.TXT, 5, (b"\xff" + b"x" * 255,) * 2)
    reply = reply_to(ask("example."), Response(answer=(big, a_records("10.0.0.1"))), 512)
    assert len(reply.answer) == 1
    assert "tc" in reply.flag_names


def test_tc_may_be_cleared_by_the_operator() -> None:
    assert "tc" not in reply_to(ask("example."), Response(answer=(many_a(99),), cleared=TC), 512).flag_names


def test_an_opt_record_is_there_only_if_asked_for() -> None:
    assert reply_to(ask("example."), Response()).options is None
    reply = reply_to(ask("example.", edns=PLAIN_EDNS), Response())
    assert (reply.options, reply.edns_version, reply.edns_size, reply.edns_flags) == ({}, 0, 1232, 0)


def test_of_the_edns_flags_do_comes_back() -> None:
    assert reply_to(ask("example.", edns=Edns(512, 0, True)), Response()).edns_flags == 0x8000


def test_the_opt_record_offers_our_payload_size_not_the_clients() -> None:
    query = ask("example.", edns=Edns(4096, 0, False))
    assert Reply(write_response(query, Response(), 4096, 1400)).edns_size == 1400


def test_badvers_is_an_extended_rcode_and_names_version_0() -> None:
    reply = reply_to(ask("example.", edns=Edns(1232, 1, False)), Response(Rcode.BADVERS, flags=0))
    assert (reply.rcode, reply.edns_version) == ("BADVERS", 0)
    assert reply.flags & 0x000F == 0


@pytest.mark.parametrize("records", [0, 10, 200])
def test_records_make_room_for_the_opt_record(records: int) -> None:
    query = ask("example.", edns=PLAIN_EDNS)
    for limit in range(512, 530):
        data = sent(query, Response(answer=(many_a(records),)), limit)
        assert Reply(data).options == {}
        assert len(data) <= limit


def test_an_extended_error_is_sent_only_to_clients_with_edns() -> None:
    response = Response(ede=Ede(EdeCode.NOT_READY, "not yet"))
    assert reply_to(ask("example.", edns=PLAIN_EDNS), response).options == {Option.EXTENDED_ERROR: b"\0\x0enot yet"}
    assert reply_to(ask("example."), response).options is None


def test_options_of_the_response_come_in_its_order() -> None:
    query = ask("example.", edns=PLAIN_EDNS)
    response = Response(options=((3, b"host"), (8, b"\0\1\x18\x18\x0a\0\0")), ede=Ede(EdeCode.OTHER, ""))
    assert list((reply_to(query, response).options or {}).items()) == [
        (3, b"host"),
        (8, b"\0\1\x18\x18\x0a\0\0"),
        (15, b"\0\0"),
    ]


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("x" * 300, "x" * 200),
        ("é" * 150, "é" * 100),
        ("x" + "é" * 150, "x" + "é" * 99),
        ("x" + "😀" * 60, "x" + "😀" * 49),
    ],
)
def test_a_long_extended_error_is_cut_between_characters(text: str, got: str) -> None:
    assert reply_to(ask("example.", edns=PLAIN_EDNS), Response(ede=Ede(0, text))).ede == got


def test_options_that_leave_the_opt_record_no_room_are_left_out() -> None:
    query = ask(LONGEST, edns=PLAIN_EDNS)
    response = Response(options=((3, b"x" * 200), (8, b"\0\1\x18\x18\x0a\0\0")), ede=Ede(0, "y" * 100))
    data = sent(query, response, MIN_UDP_PAYLOAD)
    assert list(Reply(data).options or {}) == [3, 8]
    assert len(data) <= MIN_UDP_PAYLOAD


@pytest.mark.parametrize(
    ("header", "rcode", "reply"),
    [
        ("12340100 0001 0000 0000 0000", Rcode.FORMERR, "12348101 0000 0000 0000 0000"),
        ("12340000 0001 0000 0000 0000", Rcode.SERVFAIL, "12348002 0000 0000 0000 0000"),
        ("ffff7800 0000 0000 0000 0000", Rcode.NOTIMP, "fffff804 0000 0000 0000 0000"),
        ("0000ffff ffff ffff ffff ffff", Rcode.FORMERR, "0000f901 0000 0000 0000 0000"),
        ("12340730 0001 0001 0001 0001", Rcode.FORMERR, "12348101 0000 0000 0000 0000"),
    ],
)
def test_an_error_without_question_is_a_bare_header_with_id_opcode_and_rd(header: str, rcode: int, reply: str) -> None:
    assert write_error(bytes.fromhex(header) + b"whatever follows", rcode) == bytes.fromhex(reply)


def test_an_rcode_that_needs_edns_is_servfail_to_a_client_without_it() -> None:
    """Its lower four bits are another rcode: those of BADVERS are NOERROR."""
    for rcode in (16, 22, 23):
        assert sent(ask("example."), Response(rcode))[3] & 0x0F == Rcode.SERVFAIL
        assert reply_to(ask("example.", edns=PLAIN_EDNS), Response(rcode)).wire[3] & 0x0F == rcode & 0x0F
