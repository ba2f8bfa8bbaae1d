import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.dnslib_records import RDATA
from tests.support.model_builders import packed
from topodns.dns.dnslib_text import record_lines
from topodns.dns.message import RRset
from topodns.dns.name import name_wire, parse_name
from topodns.dns.record_text import parse_record
from topodns.dns.rrtype import RRType, type_text

EXAMPLE = name_wire(parse_name("example."))
SVC1 = name_wire(parse_name("svc1.example."))


@pytest.mark.parametrize(
    ("rtype", "rdata", "line"),
    [
        (RRType.A, packed("10.0.0.1"), "example. 5 IN A 10.0.0.1"),
        (RRType.AAAA, packed("2001:db8::1"), "example. 5 IN AAAA 2001:db8::1"),
        (RRType.SRV, b"\0\0\0\x64\0\x50" + SVC1, "example. 5 IN SRV 0 100 80 svc1.example."),
        (RRType.PTR, SVC1, "example. 5 IN PTR svc1.example."),
        (RRType.CNAME, SVC1, "example. 5 IN CNAME svc1.example."),
        (RRType.NS, SVC1, "example. 5 IN NS svc1.example."),
        (RRType.TXT, b"\x051.1.0", 'example. 5 IN TXT "1.1.0"'),
        (RRType.HINFO, b"\1a\1b", "example. 5 IN HINFO \\# 4 01610162"),
        (1000, b"\1\2", "example. 5 IN TYPE1000 \\# 2 0102"),
        (
            RRType.SOA,
            SVC1 + SVC1 + b"".join(number.to_bytes(4, "big") for number in (7, 7200, 1800, 86400, 5)),
            "example. 5 IN SOA svc1.example. svc1.example. 7 7200 1800 86400 5",
        ),
        (RRType.CNAME, b"\1\xff\0", "example. 5 IN CNAME \\# 3 01ff00"),
        (RRType.A, b"\1", "example. 5 IN A \\# 1 01"),
    ],
)
def test_a_record_is_one_line_of_a_zone_file(rtype: int, rdata: bytes, line: str) -> None:
    assert list(record_lines([RRset(b"", rtype, 5, (rdata,))], EXAMPLE)) == [line]


def test_records_are_in_order_each_under_its_own_owner() -> None:
    rrsets = [
        RRset(b"", RRType.CNAME, 5, (SVC1,)),
        RRset(SVC1, RRType.A, 6, (packed("10.0.0.2"), packed("10.0.0.1"))),
    ]
    assert list(record_lines(rrsets, EXAMPLE)) == [
        "example. 5 IN CNAME svc1.example.",
        "svc1.example. 6 IN A 10.0.0.2",
        "svc1.example. 6 IN A 10.0.0.1",
    ]


def test_a_name_of_any_octets_is_written_escaped() -> None:
    rrsets = [RRset(b"", RRType.A, 5, (packed("10.0.0.1"),))]
    assert list(record_lines(rrsets, b"\3a.\xfc\0")) == ["a\\.\\252. 5 IN A 10.0.0.1"]


@given(st.one_of(*(st.tuples(st.just(rtype), rdata | st.binary(max_size=30)) for rtype, rdata in RDATA.items())))
@example((RRType.HTTPS, b"\0\0\0\0\3\0\0"))  # the parameter `port` without a port
def test_every_line_is_printable_and_reads_back_to_the_same_octets(record: tuple[int, bytes]) -> None:
    rtype, rdata = record
    (line,) = record_lines([RRset(b"", rtype, 5, (rdata,))], EXAMPLE)
    assert line.isascii()
    assert line.isprintable()
    unknown = line.endswith(f" 5 IN {type_text(rtype)} \\# {len(rdata)} {rdata.hex()}".rstrip())
    assert unknown or parse_record(line) == RRset(EXAMPLE, rtype, 5, (rdata,))
