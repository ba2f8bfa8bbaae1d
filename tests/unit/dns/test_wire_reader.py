import struct
from collections.abc import Callable
from random import Random

import pytest
from dnslib import EDNS0, QTYPE, RR, A, DNSHeader, DNSQuestion, DNSRecord, EDNSOption
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.dns_messages import DO, RD, Opt, query, subnet
from topodns.dns.message import Edns, Query
from topodns.dns.name import name_wire, parse_name
from topodns.dns.rrtype import QTYPES, Rcode, RRClass, RRType
from topodns.dns.wire_format import HEADER_SIZE
from topodns.dns.wire_reader import MAX_OPTIONS, WireError, read_query

IDENT = 0x1234
UNKNOWN = (100, b"")  # an unknown option
STRAY_OPT = "OPT twice, outside ADDITIONAL, or not at the root"
EXAMPLE = b"\x07example\0"
ADDRESS_RECORD = EXAMPLE + struct.pack("!HHIH", RRType.A, RRClass.IN, 30, 4) + bytes((10, 0, 0, 1))
ROOT_A = b"\0" + struct.pack("!HHIH", RRType.A, RRClass.IN, 0, 4) + bytes(4)


def dig(question: str, opt: Opt | None = None, flags: int = RD) -> bytes:
    return query(question, opt, flags, IDENT)


def message(
    question: bytes = EXAMPLE,
    tail: bytes = b"\0\1\0\1",
    rest: bytes = b"",
    counts: tuple[int, int, int, int] = (1, 0, 0, 0),
) -> bytes:
    return struct.pack("!HHHHHH", IDENT, RD, *counts) + question + tail + rest


def with_records(*records: bytes, counts: tuple[int, int, int]) -> bytes:
    return message(rest=b"".join(records), counts=(1, *counts))


def problem_of(data: bytes) -> str:
    """The problem of a message, as its sender reads it: always FORMERR."""
    with pytest.raises(WireError) as error:
        read_query(data)
    assert error.value.rcode == Rcode.FORMERR
    return str(error.value)


def test_a_query_is_read_with_its_spelling_and_its_name_in_lower_case() -> None:
    data = dig("SVC1.testns.svc.cLuStEr.local. SRV")
    assert read_query(data) == Query(
        id=IDENT,
        flags=RD,
        qname=("svc1", "testns", "svc", "cluster", "local"),
        spelling=b"\x04SVC1\x06testns\x03svc\x07cLuStEr\x05local\0",
        qtype=RRType.SRV,
        qclass=RRClass.IN,
        edns=None,
        size=len(data),
    )


# RFC 8906 section 8, in its order and in its terms; each is answered, so each has to be readable.
@pytest.mark.parametrize(
    ("asked", "data", "edns"),
    [
        ("dig +noedns +noad +norec soa", dig("example. SOA", flags=0), None),
        ("dig +noedns +noad +norec type1000", dig("example. TYPE1000", flags=0), None),
        ("dig +noedns +noad +norec +cd soa", dig("example. SOA", flags=0x0010), None),
        ("dig +noedns +noad +norec +ad soa", dig("example. SOA", flags=0x0020), None),
        ("dig +noedns +noad +norec +zflag soa", dig("example. SOA", flags=0x0040), None),
        ("dig +noedns +noad +rec soa", dig("example. SOA"), None),
        ("dig +edns=0 soa", dig("example. SOA", Opt(4096)), Edns(4096, 0, False)),
        ("dig +edns=1 +noednsneg soa", dig("example. SOA", Opt(version=1)), Edns(1232, 1, False)),
        ("dig +edns=0 +ednsopt=100 soa", dig("example. SOA", Opt(options=[UNKNOWN])), Edns(1232, 0, False, (UNKNOWN,))),
        ("dig +edns=0 +ednsflags=0x40 soa", dig("example. SOA", Opt(flags=0x40)), Edns(1232, 0, False)),
        ("dig +edns=1 +ednsopt=100 soa", dig("example. SOA", Opt(9, [UNKNOWN], 1)), Edns(9, 1, False, (UNKNOWN,))),
        ("dig +edns=1 +ednsflags=0x40 soa", dig("example. SOA", Opt(version=1, flags=0x40)), Edns(1232, 1, False)),
        ("dig +edns=0 +dnssec soa", dig("example. SOA", Opt(flags=DO)), Edns(1232, 0, True)),
        ("dig +edns=1 +dnssec soa", dig("example. SOA", Opt(version=1, flags=DO)), Edns(1232, 1, True)),
        (
            "dig +edns=0 +cookie +nsid +expire +subnet=0.0.0.0/0 soa",
            dig("example. SOA", Opt(options=[(10, b"8 octets"), (3, b""), (9, b""), subnet("0.0.0.0/0")])),
            Edns(1232, 0, False, ((10, b"8 octets"), (3, b""), (9, b""), (8, b"\0\1\0\0"))),
        ),
    ],
)  # fmt: skip
def test_the_queries_that_rfc_8906_tests_servers_with_are_read(asked: str, data: bytes, edns: Edns | None) -> None:
    read = read_query(data)
    assert read.edns == edns
    assert (read.qname, read.qtype) == (("example",), 1000 if "type1000" in asked else RRType.SOA)
    assert read.flags == int.from_bytes(data[2:4], "big")


@pytest.mark.parametrize("size", [0, 511, 512, 1232, 65535])
def test_the_udp_payload_size_is_as_sent(size: int) -> None:
    assert read_query(dig("example. A", Opt(size))).edns == Edns(size, 0, False)


def test_an_edns_version_may_be_any_octet() -> None:
    edns = read_query(dig("example. A", Opt(version=255))).edns
    assert edns is not None
    assert edns.version == 255


def test_options_keep_their_order_and_repeats_and_the_first_of_a_code_is_found() -> None:
    options = [(65001, b"b"), (65000, b""), (65001, b"a")]
    edns = read_query(dig("example. A", Opt(options=options))).edns
    assert edns is not None
    assert edns.options == tuple(options)
    assert edns.option(65001) == b"b"
    assert edns.option(65000) == b""
    assert edns.option(3) is None


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(with_records(ADDRESS_RECORD, counts=(1, 0, 0)), id="one in ANSWER"),
        pytest.param(with_records(ADDRESS_RECORD, counts=(0, 1, 0)), id="one in AUTHORITY"),
        pytest.param(with_records(ADDRESS_RECORD, Opt().wire(), counts=(0, 0, 2)), id="one beside OPT"),
        pytest.param(with_records(Opt().wire(), ADDRESS_RECORD, counts=(0, 0, 2)), id="one behind OPT"),
        pytest.param(with_records(b"\xc0\x0c" + ROOT_A[1:], counts=(1, 0, 0)), id="owner points at the question"),
        pytest.param(with_records(b"\x01x\xc0\x0c" + ROOT_A[1:], counts=(1, 0, 0)), id="owner ends in a pointer"),
        pytest.param(
            with_records(b"\x01x\xc0\x0c" + ROOT_A[1:], b"\x01y\xc0\x19" + ROOT_A[1:], counts=(1, 1, 0)),
            id="pointer to a name that ends in a pointer",
        ),
    ],
)
def test_records_in_a_query_are_read_past(data: bytes) -> None:
    assert read_query(data).qname == ("example",)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        # RFC 9619: exactly one question.
        (message(counts=(0, 0, 0, 0)), "QDCOUNT is 0"),
        (message(counts=(2, 0, 0, 0)), "QDCOUNT is 2"),
        (message(rest=EXAMPLE + b"\0\1\0\1", counts=(2, 0, 0, 0)), "QDCOUNT is 2"),
        (message(counts=(65535, 0, 0, 0)), "QDCOUNT is 65535"),
        (bytes(12), "QDCOUNT is 0"),
        # Counts must be true, and no more than a query has reason for.
        (message(counts=(1, 2, 0, 0)), "more records than a query may have"),
        (message(counts=(1, 0, 2, 0)), "more records than a query may have"),
        (message(counts=(1, 0, 0, 3)), "more records than a query may have"),
        (message(counts=(1, 0, 0, 65535)), "more records than a query may have"),
        (message(counts=(1, 1, 0, 0)), "message ends too early"),
        (message(counts=(1, 0, 0, 1)), "message ends too early"),
        (with_records(Opt().wire(), counts=(0, 0, 2)), "message ends too early"),
        (message(rest=b"\0"), "1 octets left over"),
        (message(rest=Opt().wire()), "11 octets left over"),
        (with_records(Opt().wire(), b"tail", counts=(0, 0, 1)), "4 octets left over"),
        # RFC 1035 section 4.1.4, RFC 9267: no pointer has anything before the question to point to.
        (message(b"\xc0\x0c"), "compressed or extended label in the question"),
        (message(b"\x03www\xc0\x0c"), "compressed or extended label in the question"),
        (message(b"\x40" + b"a" * 64 + b"\0"), "compressed or extended label in the question"),
        (message(b"\x80\0"), "compressed or extended label in the question"),
        (message(b"\x07exam"), "message ends too early"),
        # RFC 6891 section 6.1.1.
        (with_records(Opt().wire(), Opt().wire(), counts=(0, 0, 2)), STRAY_OPT),
        (with_records(Opt().wire(), counts=(1, 0, 0)), STRAY_OPT),
        (with_records(Opt().wire(), counts=(0, 1, 0)), STRAY_OPT),
        (with_records(EXAMPLE + Opt().wire()[1:], counts=(0, 0, 1)), STRAY_OPT),
        # Lengths that lie.
        (with_records(ROOT_A[:-5] + b"\5" + bytes(4), counts=(1, 0, 0)), "RDLENGTH runs past the end"),
        (with_records(ROOT_A[:-6] + b"\xff\xff" + bytes(4), counts=(1, 0, 0)), "RDLENGTH runs past the end"),
        (dig("example. A", Opt(options=[(10, b"8 octets")]))[:-1], "RDLENGTH runs past the end"),
    ],
)  # fmt: skip
def test_a_malformed_query_is_refused_with_the_reason(data: bytes, problem: str) -> None:
    assert problem_of(data) == problem


@pytest.mark.parametrize(
    ("rdata", "problem"),
    [
        (b"\0", "EDNS option cut off"),
        (b"\0\x0a\0", "EDNS option cut off"),
        (b"\0\x0a\0\1", "EDNS option runs past its OPT record"),
        (b"\0\x0a\0\x08" + bytes(7), "EDNS option runs past its OPT record"),
        (b"\0\x0a\xff\xff" + bytes(8), "EDNS option runs past its OPT record"),
        (b"\0\x0a\0\1xy", "EDNS option cut off"),
        (b"\xfd\xe8\0\0" * (MAX_OPTIONS + 1), f"more than {MAX_OPTIONS} EDNS options"),
    ],
)
def test_edns_options_with_an_impossible_length_are_refused(rdata: bytes, problem: str) -> None:
    opt = b"\0" + struct.pack("!HHIH", RRType.OPT, 1232, 0, len(rdata)) + rdata
    assert problem_of(with_records(opt, counts=(0, 0, 1))) == problem
    # Behind it stand octets that an option must not reach into.
    assert problem_of(with_records(opt, ROOT_A, counts=(0, 0, 2))) == problem


def test_as_many_options_as_are_allowed_are_read() -> None:
    edns = read_query(dig("example. A", Opt(options=[(65000, b"")] * MAX_OPTIONS))).edns
    assert edns is not None
    assert len(edns.options) == MAX_OPTIONS


FULL = b"".join(b"\x3f" + letter * 63 for letter in (b"a", b"b", b"c"))  # 192 octets


@pytest.mark.parametrize("size", [254, 255])
def test_a_question_of_up_to_255_octets_is_read(size: int) -> None:
    last = size - len(FULL) - 2
    spelling = FULL + bytes((last,)) + b"d" * last + b"\0"
    assert read_query(message(spelling)).spelling == spelling


@pytest.mark.parametrize("size", [256, 257, 300])
def test_a_question_of_more_than_255_octets_is_refused(size: int) -> None:
    rest = size - len(FULL) - 1
    labels = b"\x01d" * (rest // 2) if rest % 2 == 0 else b"\x02dd" + b"\x01d" * ((rest - 3) // 2)
    assert problem_of(message(FULL + labels + b"\0")) == "name of more than 255 octets"


def test_a_question_of_127_labels_is_read_and_one_of_128_refused() -> None:
    assert len(read_query(message(b"\x01a" * 127 + b"\0")).qname) == 127
    assert problem_of(message(b"\x01a" * 128 + b"\0")) == "name of more than 255 octets"


OWNER_AT = len(message())
LONG = FULL + b"\x3f" + b"d" * 63


@pytest.mark.parametrize(
    ("owner", "problem"),
    [
        (b"\xc0" + bytes((OWNER_AT,)), "compression pointer that does not go backwards"),
        (b"\xc0" + bytes((OWNER_AT + 2,)), "compression pointer that does not go backwards"),
        (b"\x01x\xc0" + bytes((OWNER_AT,)), "compression pointer that does not go backwards"),
        (b"\xff\xff", "compression pointer that does not go backwards"),
        (b"\xc0\0", "compression pointer that does not go backwards"),  # into the header
        (b"\xc0\x0b", "compression pointer that does not go backwards"),
        (b"\x40", "or a label type that does not exist"),
        (b"\x80\x0c", "or a label type that does not exist"),
        (LONG + b"\0", "name of more than 255 octets"),
        (FULL + b"\x36" + b"d" * 54 + b"\xc0\x0c", "name of more than 255 octets"),  # with the question's 9 octets
    ],
)
def test_owner_names_must_be_names_and_point_backwards(owner: bytes, problem: str) -> None:
    assert problem in problem_of(with_records(owner + ROOT_A[1:], counts=(1, 0, 0)))


def test_an_owner_of_255_octets_through_a_pointer_is_read() -> None:
    owner = FULL + b"\x35" + b"d" * 53 + b"\xc0\x0c"
    assert read_query(with_records(owner + ROOT_A[1:], counts=(1, 0, 0))).qname == ("example",)


def test_a_chain_of_more_pointers_than_a_name_can_have_labels_is_refused() -> None:
    # The question holds no pointers, so the chain is in RDATA, which is skipped unread.
    chain_at = OWNER_AT + len(ROOT_A[:-4])
    chain = b"\xc0\x0c" + b"".join(b"\xc0" + bytes((chain_at + 2 * at,)) for at in range(100))
    assert len(chain) == 202
    first = ROOT_A[:-6] + struct.pack("!H", len(chain)) + chain

    def ending(hops: int) -> bytes:
        last = struct.pack("!H", 0xC000 | chain_at + 2 * hops)
        return with_records(first, last + ROOT_A[1:], counts=(1, 1, 0))

    assert read_query(ending(100)).qname == ("example",)
    far = chain + b"".join(struct.pack("!H", 0xC000 | chain_at + 2 * at) for at in range(100, 130))
    first = ROOT_A[:-6] + struct.pack("!H", len(far)) + far
    assert problem_of(ending(130)) == "too many compression pointers"


SAMPLES = [
    dig("svc1.testns.svc.cluster.local. A"),
    dig("_http._tcp.svc1.testns.svc.cluster.local. SRV", Opt(flags=DO, options=[UNKNOWN, subnet("10.1.0.0/16")])),
    with_records(b"\x01x\xc0\x0c" + ROOT_A[1:], ADDRESS_RECORD, ROOT_A, Opt().wire(), counts=(1, 1, 2)),
]  # fmt: skip


@pytest.mark.parametrize("data", SAMPLES)
def test_cut_off_anywhere_behind_its_header_it_is_refused(data: bytes) -> None:
    for end in range(HEADER_SIZE, len(data)):
        problem_of(data[:end])


@pytest.mark.parametrize("data", SAMPLES)
def test_octets_behind_its_end_are_refused(data: bytes) -> None:
    assert problem_of(data + b"\0") == "1 octets left over"


def read_or_refused(data: bytes) -> Query | None:
    try:
        return read_query(data)
    except WireError:
        return None


@given(st.binary(min_size=HEADER_SIZE, max_size=600))
@example(bytes(12))
def test_any_octets_are_a_query_or_a_wire_error(data: bytes) -> None:
    read_or_refused(data)


@given(st.binary(max_size=300), st.tuples(*[st.integers(0, 1)] * 2, st.integers(0, 2)))
def test_any_octets_behind_a_good_header_are_a_query_or_a_wire_error(rest: bytes, counts: tuple[int, int, int]) -> None:
    read_or_refused(struct.pack("!HHHHHH", IDENT, RD, 1, *counts) + rest)


def flip_a_bit(data: bytearray, rng: Random) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def set_an_octet(data: bytearray, rng: Random) -> None:
    data[rng.randrange(len(data))] = rng.choice((0, 1, 0x3F, 0x40, 0x7F, 0x80, 0xC0, 0xFF))


def cut(data: bytearray, rng: Random) -> None:
    del data[rng.randrange(HEADER_SIZE, len(data) + 1) :]


def repeat_a_part(data: bytearray, rng: Random) -> None:
    start, end = sorted(rng.randrange(HEADER_SIZE, len(data) + 1) for _ in range(2))
    data[start:start] = data[start:end]


def point_somewhere(data: bytearray, rng: Random) -> None:
    at = rng.randrange(HEADER_SIZE, len(data) + 1)
    data[at : at + 2] = struct.pack("!H", 0xC000 | rng.randrange(len(data) + 2))


MUTATIONS: list[Callable[[bytearray, Random], None]] = [flip_a_bit, set_an_octet, cut, repeat_a_part, point_somewhere]


def test_mutated_queries_are_queries_or_wire_errors() -> None:
    rng = Random(8906)
    survivors = 0
    for turn in range(6000):
        data = bytearray(SAMPLES[turn % len(SAMPLES)])
        for _ in range(rng.randrange(1, 5)):
            rng.choice(MUTATIONS)(data, rng)
        read = read_or_refused(bytes(data))
        if read is not None:
            survivors += 1
            assert read.spelling == data[HEADER_SIZE : HEADER_SIZE + len(read.spelling)]
            assert name_wire(read.qname) == read.spelling.lower()
    assert 500 < survivors < 5000  # or the mutations are too tame, or too wild, to test anything


label_text = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789-_", min_size=1, max_size=20)
dns_options = st.lists(st.tuples(st.integers(0, 65535), st.binary(max_size=30)), max_size=5)


@given(
    st.lists(label_text, max_size=8),
    st.sampled_from(["A", "AAAA", "SRV", "PTR", "TXT", "SOA", "HTTPS"]),
    st.integers(0, 65535),
    st.none() | st.builds(Edns, st.integers(0, 65535), st.integers(0, 255), st.booleans(), dns_options.map(tuple)),
    st.booleans(),
)
def test_messages_that_dnslib_writes_are_read_back(
    labels: list[str], qtype: str, ident: int, edns: Edns | None, prerequisite: bool
) -> None:
    name = ".".join(labels) + "."
    record = DNSRecord(DNSHeader(id=ident, rd=1), q=DNSQuestion(name, getattr(QTYPE, qtype)))
    if prerequisite:
        record.add_answer(RR(name, QTYPE.A, ttl=30, rdata=A("10.0.0.1")))  # its owner is a pointer
    if edns is not None:
        options = [EDNSOption(code, data) for code, data in edns.options]
        flags = "do" if edns.dnssec_ok else ""
        record.add_ar(EDNS0(udp_len=edns.udp_payload_size, version=edns.version, flags=flags, opts=options))
    data = bytes(record.pack())
    read = read_query(data)
    assert (read.id, read.flags, read.qtype, read.size) == (ident, RD, QTYPES[qtype], len(data))
    assert read.qname == parse_name(name)
    assert read.spelling == name_wire(labels)
    assert read.edns == edns
