"""Replies of random records: dnslib reads what was meant, and a reply that is cut is the beginning of the whole one."""

from itertools import chain
from struct import pack

from dnslib import DNSRecord
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.dnslib_records import NAMES, record_of, records, rrsets
from tests.support.query_builders import ask
from topodns.dns.message import Ede, Edns, Flag, Option, Query, Response, RRset
from topodns.dns.name import is_below_wire, label_wire
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.wire_format import MAX_MESSAGE, MIN_UDP_PAYLOAD
from topodns.dns.wire_writer import write_response

QNAME = "_http._tcp.Db.default.svc.cluster.local."
LIMITS = st.integers(512, 700) | st.sampled_from((512, 1232, 4096, 20_000, 65_535))


def name(*labels: str) -> bytes:
    return b"".join(map(label_wire, labels)) + b"\0"


OWNERS = st.sampled_from(
    (b"", name("cluster", "local"), name("db-0", "Db", "default", "svc", "cluster", "local"), name("db-1", "elsewhere"))
)
TARGETS = st.integers(0, 400).map(lambda number: name(f"db-{number}", "Db", "default", "svc", "cluster", "local"))
SRV_RDATAS = st.lists(TARGETS.map(lambda target: pack("!HHH", 0, 1, 80) + target), max_size=120, unique=True)
A_RDATAS = st.lists(st.binary(min_size=4, max_size=4), max_size=120)
TXT_RDATAS = st.lists(st.binary(max_size=300), max_size=5)
TARGET_NAMES = TARGETS | st.sampled_from((name(), name("local"), name("Db", "default"), name("x", "CLUSTER", "local")))
PTR_RDATAS = st.lists(TARGET_NAMES, max_size=60)
MX_RDATAS = st.lists(TARGET_NAMES.map(lambda exchange: pack("!H", 10) + exchange), max_size=60)
SOA_RDATAS = st.lists(
    st.tuples(TARGET_NAMES, TARGET_NAMES, st.binary(min_size=20, max_size=20)).map(b"".join), max_size=2
)


def rrsets_of(owners: st.SearchStrategy[bytes]) -> st.SearchStrategy[RRset]:
    def of_type(rtype: int, rdatas: st.SearchStrategy[list[bytes]]) -> st.SearchStrategy[RRset]:
        return st.builds(RRset, owners, st.just(rtype), st.just(5), rdatas.map(tuple), st.just(1))

    return st.one_of(
        of_type(RRType.SRV, SRV_RDATAS),
        of_type(RRType.A, A_RDATAS),
        of_type(RRType.TXT, TXT_RDATAS),
        of_type(RRType.PTR, PTR_RDATAS),
        of_type(RRType.MX, MX_RDATAS),
        of_type(RRType.SOA, SOA_RDATAS),
    )


class Literal:
    """RFC 1035 section 4.1.4, one record at a time, as much of it as the server makes use of."""

    def __init__(self, query: Query, limit: int) -> None:
        self.message = bytes(12) + query.spelling + pack("!HH", query.qtype, query.qclass)
        self.spelling = query.spelling
        self.limit = limit
        self.full = False
        self.names: dict[bytes, int] = {}

    def write(self, section: tuple[RRset, ...]) -> int:
        count = 0
        for owner, rtype, ttl, rdatas, rclass in section:
            for rdata in rdatas:
                if self.full:
                    return count
                before = self.message
                self.name(owner)
                head = self.message + pack("!HHI", rtype, rclass, ttl)
                self.message = head + bytes(2)
                self.rdata(rtype, rdata)
                octets = self.message[len(head) + 2 :]
                self.message = head + pack("!H", len(octets)) + octets
                if len(self.message) > self.limit:
                    self.message, self.full = before, True
                    return count
                count += 1
        return count

    def rdata(self, rtype: int, rdata: bytes) -> None:
        if rtype == RRType.SRV:  # RFC 2782: not compressed
            self.know(rdata[6:], len(self.message) + 6, whole=True)
            self.message += rdata
            return
        before, names = {RRType.PTR: (0, 1), RRType.MX: (2, 1), RRType.SOA: (0, 2)}.get(rtype, (0, 0))
        self.message, rest = self.message + rdata[:before], rdata[before:]
        for _ in range(names):
            end = 0
            while rest[end]:
                end += 1 + rest[end]
            self.name(rest[: end + 1])
            rest = rest[end + 1 :]
        self.message += rest

    def name(self, wire: bytes) -> None:
        if not wire:
            self.message += b"\xc0\x0c"
            return
        if is_below_wire(self.spelling, wire) and len(wire) > 1:
            self.message += pack("!H", 0xC000 | 12 + len(self.spelling) - len(wire))
            return
        self.know(self.spelling, 12)
        at = 0
        while wire[at] and wire[at:] not in self.names:
            at += 1 + wire[at]
        pointer = pack("!H", 0xC000 | self.names[wire[at:]]) if wire[at] else b"\0"
        self.know(wire, len(self.message), until=at)
        self.message += wire[:at] + pointer

    def know(self, wire: bytes, offset: int, until: int = 255, whole: bool = False) -> None:
        at = 0
        while at < until and wire[at]:
            if offset + at < 0x4000:
                self.names.setdefault(wire[at:], offset + at)
            if whole:
                break
            at += 1 + wire[at]


@settings(max_examples=30)
@given(
    st.lists(rrsets_of(OWNERS), max_size=3).map(tuple),
    st.lists(rrsets_of(OWNERS.filter(bool)), max_size=2).map(tuple),
    st.lists(rrsets_of(TARGETS), max_size=8).map(tuple),
    LIMITS,
    st.booleans(),
)
def test_a_reply_has_the_records_in_order_up_to_the_first_that_does_not_fit(
    answer: tuple[RRset, ...], authority: tuple[RRset, ...], additional: tuple[RRset, ...], limit: int, edns: bool
) -> None:
    query = ask(QNAME, RRType.SRV, edns=Edns(limit, 0, False) if edns else None)
    opt = pack("!BHHIH", 0, RRType.OPT, 1232, 0, 0) if edns else b""
    literal = Literal(query, limit - len(opt))
    counts = [literal.write(section) for section in (answer, authority, additional)]
    flags = Flag.QR | Flag.RD | Flag.AA | (Flag.TC if literal.full else 0)
    header = pack("!HHHHHH", query.id, flags, 1, *counts[:2], counts[2] + edns)

    written = write_response(query, Response(0, answer, authority, additional), limit, 1232)
    assert written == header + literal.message[12:] + opt
    assert len(written) <= limit


sections = st.lists(rrsets(st.just(b"") | NAMES, 30), max_size=4).map(tuple)
extended_errors = st.none() | st.builds(Ede, st.integers(0, 65535), st.text(max_size=250))
options = st.lists(st.tuples(st.integers(0, 65535), st.binary(max_size=300)), max_size=3).map(tuple)
queries = st.builds(
    lambda spelling, flags, edns: Query(7, flags, (), spelling, 1, 1, edns, 0),
    NAMES,
    st.integers(0, 0x7FF),
    st.none() | st.builds(Edns, st.integers(0, 65535), st.just(0), st.booleans()),
)
responses = st.builds(
    Response,
    rcode=st.sampled_from([Rcode.NOERROR, Rcode.NXDOMAIN, Rcode.REFUSED]),
    answer=sections,
    authority=sections,
    additional=sections,
    ede=extended_errors,
    options=options,
)


@settings(max_examples=30)
@given(queries, responses, st.integers(MIN_UDP_PAYLOAD, 6000) | st.just(MAX_MESSAGE))
def test_dnslib_reads_the_records_that_were_meant_in_at_most_the_octets_allowed(
    query: Query, response: Response, limit: int
) -> None:
    data = write_response(query, response, limit, 1232)
    assert len(data) <= limit
    message = DNSRecord.parse(data)
    opt = [record for record in message.ar if record.rtype == RRType.OPT]
    assert len(opt) == (query.edns is not None)
    additional = [record for record in message.ar if record.rtype != RRType.OPT]
    read = [[record_of(record) for record in part] for part in (message.rr, message.auth, additional)]
    meant = [records(part, query.spelling) for part in (response.answer, response.authority, response.additional)]
    if not message.header.tc:
        assert read == meant
        return
    kept, all_meant = list(chain.from_iterable(read)), list(chain.from_iterable(meant))
    assert kept == all_meant[: len(kept)] != all_meant


@given(queries, extended_errors, options)
def test_dnslib_reads_the_edns_that_was_meant(
    query: Query, ede: Ede | None, sent: tuple[tuple[int, bytes], ...]
) -> None:
    response = Response(ede=ede, options=sent)
    message = DNSRecord.parse(write_response(query, response, MAX_MESSAGE, 1232))
    meant = [*sent]
    if ede is not None:
        text = ede.text.encode()[:200].decode(errors="ignore").encode()
        meant.append((Option.EXTENDED_ERROR, ede.code.to_bytes(2, "big") + text))
    if meant and not meant[-1][1]:
        meant.pop()  # dnslib overlooks a last option without data
    for opt in (record for record in message.ar if record.rtype == RRType.OPT):
        assert (opt.edns_len, opt.edns_ver) == (1232, 0)
        assert query.edns is not None
        assert bool(opt.edns_do) == query.edns.dnssec_ok
        assert [(option.code, option.data) for option in opt.rdata] == meant
