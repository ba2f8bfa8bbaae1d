"""Replies of other servers, read from bytes: names uncompressed, records grouped, WireError for all that is broken."""

import struct

import dnslib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.dnslib_records import NAMES, dnslib_record, records, rrsets
from topodns.dns.message import Edns, RRset
from topodns.dns.name import name_wire, parse_name
from topodns.dns.response_reader import UpstreamReply, read_plain, read_reply
from topodns.dns.rrtype import RRType
from topodns.dns.wire_reader import WireError

QUESTION = name_wire(parse_name("www.example.com")) + b"\0\1\0\1"
HEADER = struct.Struct("!HHHHHH")


def wire(text: str) -> bytes:
    return name_wire(parse_name(text))


def packed_reply(answer: str = "", authority: str = "", additional: str = "", qname: str = "www.example.com") -> bytes:
    """A response as dnslib writes it, names compressed."""
    record = dnslib.DNSRecord.question(qname, "A").reply()
    for text, add in ((answer, record.add_answer), (authority, record.add_auth), (additional, record.add_ar)):
        add(*dnslib.RR.fromZone(text))
    return bytes(record.pack())


def message(records: bytes, ancount: int = 1, nscount: int = 0, arcount: int = 0) -> bytes:
    return HEADER.pack(0, 0x8180, 1, ancount, nscount, arcount) + QUESTION + records


def test_a_chain_of_cnames_comes_uncompressed_and_the_qname_is_nameless() -> None:
    data = packed_reply(
        "www.example.com 60 CNAME web.example.com\nweb.example.com 30 A 192.0.2.1\nweb.example.com 30 A 192.0.2.2"
    )
    reply = read_reply(data)
    assert reply.answer == (
        RRset(b"", RRType.CNAME, 60, (wire("web.example.com"),)),
        RRset(wire("web.example.com"), RRType.A, 30, (b"\xc0\0\2\1", b"\xc0\0\2\2")),
    )
    assert (reply.rcode, reply.qname, reply.qtype, reply.qclass) == (0, wire("www.example.com"), RRType.A, 1)


@pytest.mark.parametrize(
    ("text", "rtype", "rdata"),
    [
        ("example.com 5 NS ns.example.com", 2, wire("ns.example.com")),
        ("example.com 5 MX 10 mx.example.com", 15, b"\0\x0a" + wire("mx.example.com")),
        ("example.com 5 SRV 1 2 53 ns.example.com", 33, b"\0\1\0\2\0\x35" + wire("ns.example.com")),
        (
            "example.com 5 SOA ns.example.com root.example.com 1 2 3 4 5",
            6,
            wire("ns.example.com") + wire("root.example.com") + struct.pack("!5I", 1, 2, 3, 4, 5),
        ),
        ("example.com 5 TXT abc", 16, b"\3abc"),
        (
            'example.com 5 NAPTR 1 2 "u" "" "!a!b!" ns.example.com',
            35,
            b"\0\1\0\2\1u\0\5!a!b!" + wire("ns.example.com"),
        ),
    ],
)
def test_names_in_rdata_are_uncompressed(text: str, rtype: int, rdata: bytes) -> None:
    reply = read_reply(packed_reply(authority=text))
    assert reply.authority == (RRset(wire("example.com"), rtype, 5, (rdata,)),)


def test_a_question_in_another_case_owns_its_records_all_the_same() -> None:
    data = bytearray(packed_reply("www.example.com 60 A 192.0.2.1"))
    data[13:16] = b"WwW"
    reply = read_reply(bytes(data))
    assert reply.qname == b"\3WwW\7example\3com\0"
    assert [rrset.owner for rrset in reply.answer] == [b""]


def test_opt_is_no_record_and_gives_the_upper_bits_of_the_rcode() -> None:
    opt = struct.pack("!BHHIH", 0, 41, 1232, 1 << 24 | 0x8000, 6) + struct.pack("!HHH", 15, 2, 22)
    reply = read_reply(message(opt, 0, 0, 1))
    assert reply.rcode == 16
    assert reply.edns == Edns(1232, 0, True, ((15, b"\0\x16"),))
    assert reply.additional == ()


def test_records_that_differ_in_ttl_are_not_one_rrset() -> None:
    reply = read_reply(packed_reply("www.example.com 60 A 192.0.2.1\nwww.example.com 61 A 192.0.2.2"))
    assert [rrset.ttl for rrset in reply.answer] == [60, 61]


def record_of(rtype: int, rdata: bytes) -> bytes:
    """At the question's name."""
    return b"\xc0\x0c" + struct.pack("!HHIH", rtype, 1, 5, len(rdata)) + rdata


A_RECORD = b"\xc0\x0c\0\1\0\1\0\0\0\5\0\4\1\2\3\4"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (HEADER.pack(0, 0x8180, 0, 0, 0, 0), "QDCOUNT"),
        (message(A_RECORD, 2), "ends too early"),
        (message(A_RECORD[:-1]), "runs past the end"),
        (message(b"\xc0\x0c\0\1\0\1\0\0\0\5\0\3\1\2\3"), "address of a wrong length"),
        (message(b"\xc0\x0c\0\1\0\1\0\0\0\5\0\0"), "address of a wrong length"),
        (message(record_of(16, b"")), "RDATA without octets"),
        (message(record_of(16, b"\1x") + record_of(16, b""), 2), "RDATA without octets"),
        (message(record_of(64, b"")), "RDATA without octets"),
        (message(record_of(65, b"")), "RDATA without octets"),
        (message(b"\xc0\x21" + A_RECORD[2:]), "backwards"),
        (message(b"\xff\xff" + A_RECORD[2:]), "backwards"),
        (message(b"\xc0\x02" + A_RECORD[2:]), "backwards"),
        (message(b"\x80\x0c" + A_RECORD[2:]), "backwards"),
        (message(b"\xc0\x0c\0\5\0\1\0\0\0\5\0\3\xc0\x0c\0"), "longer or shorter"),
        (message(b"\xc0\x0c\0\5\0\1\0\0\0\5\0\1\xc0\x0c"), "longer or shorter"),
        (message(b"\xc0\x0c\0\x23\0\1\0\0\0\5\0\7\0\1\0\2\0\0\0\0"), "longer or shorter"),
        (message(b"\xc0\x0c\0\x23\0\1\0\0\0\5\0\5\0\1\0\2\x09"), "ends too early"),
        (message((b"\x3f" + b"a" * 63) * 4 + A_RECORD), "255 octets"),
        (message((b"\x3f" + b"a" * 63) * 3 + b"\x30" + b"a" * 48 + A_RECORD), "255 octets"),
        (message(b"\0\0\x29\4\xd0\0\0\0\0\0\0", 1), "OPT"),
        (message(b"\0\0\x29\4\xd0\0\0\0\0\0\0" * 2, 0, 0, 2), "OPT"),
    ],
)
def test_a_response_that_is_not_wholly_readable_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(WireError, match=problem):
        read_reply(data)


@pytest.mark.parametrize("rtype", [16, 64, 65])
def test_a_record_without_rdata_makes_no_plain_reply(rtype: int) -> None:
    question = QUESTION[:-4] + struct.pack("!HH", rtype, 1)
    head, whole, empty = HEADER.pack(0, 0x8180, 1, 2, 0, 0) + question, record_of(rtype, b"\1x"), record_of(rtype, b"")
    assert read_plain(head + whole + whole, question) == (0x8180, RRset(b"", rtype, 5, (b"\1x",) * 2))
    assert read_plain(head + whole + empty, question) is None
    assert read_plain(head + empty + whole, question) is None


def test_octets_after_the_last_record_are_nobodys_business() -> None:
    assert read_reply(message(A_RECORD + b"rest")) == read_reply(message(A_RECORD))


def test_pointers_to_pointers_are_followed_only_so_far() -> None:
    """Each name of a TXT's octets is a pointer to the one before it."""
    start = 12 + len(QUESTION) + 12
    chain = b"".join(struct.pack("!H", 0xC000 | (start + 2 * each - 2)) for each in range(1, 200))
    txt = b"\xc0\x0c\0\x10\0\1\0\0\0\5" + struct.pack("!H", 2 + len(chain)) + b"\xc0\x0c" + chain
    last = struct.pack("!H", 0xC000 | (start + 2 * 199)) + A_RECORD[2:]
    with pytest.raises(WireError, match="too many compression pointers"):
        read_reply(message(txt + last, 2))


sections = st.lists(rrsets(NAMES, 3), max_size=3).map(tuple)


@given(st.tuples(sections, sections, sections))
def test_the_records_that_dnslib_writes_compressed_are_read_back(written: tuple[tuple[RRset, ...], ...]) -> None:
    """Messages of more than 16,383 octets have pointers that dnslib writes wrongly: these are far shorter."""
    message = dnslib.DNSRecord.question("www.example.com", "A").reply()
    for section, add in zip(written, (message.add_answer, message.add_auth, message.add_ar), strict=True):
        add(*map(dnslib_record, records(section, b"")))
    reply = read_reply(bytes(message.pack()))
    read = [records(section, reply.qname) for section in (reply.answer, reply.authority, reply.additional)]
    assert read == [records(section, b"") for section in written]


@given(st.binary(max_size=200), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
def test_any_octets_are_read_or_refused(records: bytes, ancount: int, nscount: int, arcount: int) -> None:
    try:
        reply = read_reply(message(records, ancount, nscount, arcount))
    except WireError:
        return
    assert isinstance(reply, UpstreamReply)
    assert all(rrset.rdatas for rrset in (*reply.answer, *reply.authority, *reply.additional))
