"""A cut reply is the whole one's beginning: the writer beside one that knows nothing but one record after the other."""

from struct import pack

from hypothesis import given
from hypothesis import strategies as st

from tests.support.query_builders import ask
from topodns.dns.message import Edns, Flag, Query, Response, RRset
from topodns.dns.name import label_wire
from topodns.dns.rrtype import RRType
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


def rrsets(owners: st.SearchStrategy[bytes]) -> st.SearchStrategy[RRset]:
    def of_type(rtype: int, rdatas: st.SearchStrategy[list[bytes]]) -> st.SearchStrategy[RRset]:
        return st.builds(RRset, owners, st.just(rtype), st.just(5), rdatas.map(tuple), st.just(1))

    return st.one_of(of_type(RRType.SRV, SRV_RDATAS), of_type(RRType.A, A_RDATAS), of_type(RRType.TXT, TXT_RDATAS))


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
                head = self.owner(owner) + pack("!HHIH", rtype, rclass, ttl, len(rdata))
                if len(self.message) + len(head) + len(rdata) > self.limit:
                    self.full = True
                    return count
                self.message += head + rdata
                count += 1
                if rtype == RRType.SRV:
                    self.know(rdata[6:], len(self.message) - len(rdata) + 6, whole=True)
        return count

    def owner(self, owner: bytes) -> bytes:
        if not owner:
            return b"\xc0\x0c"
        if self.spelling.endswith(owner):
            return pack("!H", 0xC000 | 12 + len(self.spelling) - len(owner))
        self.know(self.spelling, 12)
        at = 0
        while owner[at] and owner[at:] not in self.names:
            at += 1 + owner[at]
        pointer = pack("!H", 0xC000 | self.names[owner[at:]]) if owner[at] else b"\0"
        self.know(owner, len(self.message), until=at)
        return owner[:at] + pointer

    def know(self, wire: bytes, offset: int, until: int = 255, whole: bool = False) -> None:
        at = 0
        while at < until and wire[at]:
            if offset + at < 0x4000:
                self.names.setdefault(wire[at:], offset + at)
            if whole:
                break
            at += 1 + wire[at]


@given(
    st.lists(rrsets(OWNERS), max_size=3).map(tuple),
    st.lists(rrsets(OWNERS.filter(bool)), max_size=2).map(tuple),
    st.lists(rrsets(TARGETS), max_size=8).map(tuple),
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
