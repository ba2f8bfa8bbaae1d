"""Whatever is written, another implementation reads as it was meant, and it is never too long."""

import struct
from ipaddress import ip_address
from itertools import chain

from dnslib import DNSRecord
from hypothesis import given
from hypothesis import strategies as st

from topodns.dns.message import Ede, Edns, Query, Response, RRset
from topodns.dns.name import label_wire
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.wire_format import MAX_MESSAGE, MIN_UDP_PAYLOAD
from topodns.dns.wire_writer import write_response

# dnslib reads labels as UTF-8.
label_wires = st.text(st.characters(codec="ascii"), min_size=1, max_size=12).map(label_wire)
names = st.lists(st.sampled_from([b"\x01a", b"\x01A", b"\x03svc", b"\x07cluster"]) | label_wires, max_size=5).map(
    lambda labels: b"".join(labels) + b"\0"
)
ttls = st.integers(0, 2**31 - 1)
owners = st.just(b"") | names


def of_type(rtype: int, rdata: st.SearchStrategy[bytes]) -> st.SearchStrategy[RRset]:
    return st.builds(
        RRset, owners, st.just(rtype), ttls, st.lists(rdata, min_size=1, max_size=30).map(tuple), st.just(1)
    )


rrsets = st.one_of(
    of_type(RRType.A, st.binary(min_size=4, max_size=4)),
    of_type(RRType.AAAA, st.binary(min_size=16, max_size=16)),
    of_type(RRType.SRV, st.tuples(st.binary(min_size=6, max_size=6), names).map(b"".join)),
    of_type(RRType.NS, names),
    of_type(RRType.CNAME, names),
    of_type(RRType.TXT, st.binary(max_size=100).map(lambda octets: bytes((len(octets),)) + octets)),
)
sections = st.lists(rrsets, max_size=4).map(tuple)
options = st.lists(st.tuples(st.integers(0, 65535), st.binary(max_size=300)), max_size=3).map(tuple)
queries = st.builds(
    lambda spelling, flags, edns: Query(7, flags, (), spelling, 1, 1, edns, 0),
    names,
    st.integers(0, 0x7FF),
    st.none() | st.builds(Edns, st.integers(0, 65535), st.just(0), st.booleans()),
)
responses = st.builds(
    Response,
    rcode=st.sampled_from([Rcode.NOERROR, Rcode.NXDOMAIN, Rcode.REFUSED]),
    answer=sections,
    authority=sections,
    additional=sections,
    ede=st.none() | st.builds(Ede, st.integers(0, 65535), st.text(max_size=250)),
    options=options,
)

Record = tuple[bytes, int, int, object]


def expected_records(query: Query, section: tuple[RRset, ...]) -> list[Record]:
    return [
        (rrset.owner or query.spelling, rrset.rtype, rrset.ttl, readable(rrset.rtype, rdata))
        for rrset in section
        for rdata in rrset.rdatas
    ]


def readable(rtype: int, rdata: bytes) -> object:
    if rtype in (RRType.A, RRType.AAAA):
        return str(ip_address(rdata))
    return rdata


def read_records(records: list[object]) -> list[Record]:
    return [read_record(record) for record in records]


def read_record(record: object) -> Record:
    rr, rdata = record, record.rdata  # type: ignore[attr-defined]  # dnslib has no types
    owner = wire_of(rr.rname)  # type: ignore[attr-defined]
    rtype, ttl = rr.rtype, rr.ttl  # type: ignore[attr-defined]
    if rtype in (RRType.A, RRType.AAAA):
        return owner, rtype, ttl, str(ip_address(str(rdata)))
    if rtype == RRType.SRV:
        return owner, rtype, ttl, struct.pack("!HHH", rdata.priority, rdata.weight, rdata.port) + wire_of(rdata.target)
    if rtype == RRType.TXT:
        return owner, rtype, ttl, b"".join(bytes((len(text),)) + text for text in rdata.data)
    return owner, rtype, ttl, wire_of(rdata.label)


def wire_of(label: object) -> bytes:
    parts: tuple[bytes, ...] = label.label  # type: ignore[attr-defined]
    return b"".join(bytes((len(part),)) + part for part in parts) + b"\0"


@given(queries, responses, st.integers(MIN_UDP_PAYLOAD, 6000) | st.just(MAX_MESSAGE))
def test_dnslib_reads_the_records_that_were_meant_in_at_most_the_octets_allowed(
    query: Query, response: Response, limit: int
) -> None:
    data = write_response(query, response, limit, 1232)
    assert len(data) <= limit
    message = DNSRecord.parse(data)
    opt = [record for record in message.ar if record.rtype == RRType.OPT]
    assert len(opt) == (query.edns is not None)
    read = [read_records(message.rr), read_records(message.auth), read_records([r for r in message.ar if r not in opt])]
    meant = [expected_records(query, part) for part in (response.answer, response.authority, response.additional)]
    if not message.header.tc:
        assert read == meant
        return
    kept, all_meant = list(chain.from_iterable(read)), list(chain.from_iterable(meant))
    assert kept == all_meant[: len(kept)] != all_meant
