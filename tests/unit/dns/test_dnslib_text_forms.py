"""The forms in which dnslib 0.9.26 is known to be wrong, each with the reason, and what topodns does with them.

Each case asserts what dnslib does, so that a version of it which is right is noticed, and its line here goes.
"""

import struct

import pytest
from dnslib import QTYPE, RD, RDMAP, RR, DNSBuffer, DNSQuestion, DNSRecord, EDNSOption

from topodns.dns.dnslib_text import record_lines
from topodns.dns.message import RRset
from topodns.dns.record_text import parse_record
from topodns.dns.response_reader import read_reply
from topodns.dns.rrtype import parse_qtype
from topodns.dns.wire_reader import WireError, read_query

REFUSES = "refuses"


def of_dnslib(rtype: str, rdata: bytes) -> str:
    try:
        return str(RDMAP.get(rtype, RD).parse(DNSBuffer(rdata), len(rdata)).toZone())
    except Exception:
        return REFUSES


# Reason, type, RDATA, dnslib's text, topodns's text; "" for that of unknown types (RFC 3597 section 5).
PRINTED = [
    ("a quote in a string is not escaped", "TXT", b'\3a"b', '"a"b"', r'"a\"b"'),
    ("a backslash in a string is not escaped", "TXT", b"\3a\\b", r'"a\b"', r'"a\\b"'),
    ("an octet of a string is octal, not decimal", "TXT", b"\1\n", r'"\012"', r'"\010"'),
    ("octets that are not UTF-8 are replaced", "TXT", b"\1\xff", '"\N{REPLACEMENT CHARACTER}"', r'"\255"'),
    ("a dot in a label is not escaped", "CNAME", b"\3a.b\0", "a.b.", ""),
    ("nor is anything else with a meaning in zone files", "CNAME", b"\5\\\"(;'\0", "\\\"(;'.", ""),
    ("a label that is not UTF-8 is refused", "CNAME", b"\1\xff\0", REFUSES, ""),
    ("a quote in NAPTR is not escaped", "NAPTR", b'\0\1\0\2\1u\0\1"\0', '1 2 "u" "" """ .', ""),
    ("a line break in NAPTR is printed", "NAPTR", b"\0\1\0\2\1u\0\1\n\0", '1 2 "u" "" "\n" .', ""),
    ("NAPTR that is not UTF-8 is refused", "NAPTR", b"\0\1\0\2\1u\0\1\xff\0", REFUSES, ""),
    ("neither quote nor backslash in CAA is escaped", "CAA", b'\0\5issue\\"', r'0 issue "\""', ""),
    ("CAA that is not UTF-8 is refused", "CAA", b"\0\5issue\xff", REFUSES, ""),
    ("type 53 is HIP, which is 55: it is SMIMEA", "NSEC", b"\1a\0\0\7\0\0\0\0\0\0\4", "a. HIP", ""),
    ("an ALPN's comma is escaped once, not twice", "HTTPS", b"\0\1\0\0\1\0\4\3a,b", r"1 . alpn=a\044b", ""),
    ("a blank in a parameter is not quoted", "HTTPS", b"\0\1\0\0\x09\0\3a b", "1 . key9=a b", ""),
    ("a parameter that is not ASCII is refused", "HTTPS", b"\0\1\0\0\x09\0\1\xff", REFUSES, ""),
    ("a dot in a label of a target is not escaped", "HTTPS", b"\0\1\3a.b\0", "1 a.b.", ""),
    (
        "a fraction of the first second is dropped",
        *("LOC", b"\0\x12\x16\x13\x80\0\1\xf4\x80\0\0\0\0\x98\x96\x80", "0 N 0 W 0.00m", ""),
    ),
    ("a version of LOC is ignored", "LOC", b"\1\x12\x16\x13\x80\0\0\0\x80\0\0\0\0\x98\x96\x80", "0 S 0 W 0.00m", ""),
    ("octets after the data are ignored", "A", b"\1\2\3\4\5", "1.2.3.4", ""),
    ("a digest of no octets is a missing word", "DS", b"\0\1\1\1", "1 1 1 ", ""),
    ("a string beyond the data is read", "TXT", b"\1a\2b", REFUSES, ""),
]


@pytest.mark.parametrize(
    ("rtype", "rdata", "theirs", "ours"), [case[1:] for case in PRINTED], ids=[case[0] for case in PRINTED]
)
def test_explain_prints_what_dnslib_prints_wrong(rtype: str, rdata: bytes, theirs: str, ours: str) -> None:
    assert of_dnslib(rtype, rdata) == theirs
    number = parse_qtype(rtype)
    assert number is not None
    (line,) = record_lines([RRset(b"\0", number, 5, (rdata,))], b"\0")
    unknown = f"\\# {len(rdata)} {rdata.hex()}"
    assert line == f". 5 IN {rtype} {ours or unknown}"
    assert not ours or parse_record(line).rdatas == (rdata,)


def test_the_text_of_an_object_joins_strings_by_a_comma() -> None:
    """Its `toZone` does not, which topodns would use."""
    assert str(RDMAP["TXT"](["a", "b"])) == '"a","b"'


def test_a_last_edns_option_without_data_is_overlooked() -> None:
    """NSID in a query has none (RFC 5001 section 2.1)."""
    options = b"".join(EDNSOption(code, b"").code.to_bytes(2, "big") + b"\0\0" for code in (10, 3))
    data = struct.pack("!6H", 0, 0, 1, 0, 0, 1) + b"\0\0\1\0\1" + b"\0" + struct.pack("!HHIH", 41, 1232, 0, 8) + options
    assert [option.code for option in DNSRecord.parse(data).ar[0].rdata] == [10]
    edns = read_query(data).edns
    assert edns is not None
    assert edns.options == ((10, b""), (3, b""))


def test_a_record_without_data_is_refused() -> None:
    """Types that are not known may have none (RFC 3597 section 5)."""
    data = (
        struct.pack("!6H", 0, 0x8180, 1, 1, 0, 0) + b"\0\3\xe8\0\1" + b"\xc0\x0c" + struct.pack("!HHIH", 1000, 1, 5, 0)
    )
    with pytest.raises(Exception, match="Empty RR"):
        DNSRecord.parse(data)
    assert read_reply(data).answer == (RRset(b"", 1000, 5, (b"",), 1),)


def test_pointers_beyond_16383_octets_are_written_wrongly() -> None:
    """A pointer has 14 bits (RFC 1035 section 4.1.4)."""
    record = DNSRecord(q=DNSQuestion("x.", QTYPE.TXT))
    for _ in range(2):
        record.add_answer(RR("a.", QTYPE.TXT, rdata=RDMAP["TXT"](["t" * 200] * 100)))
    record.add_answer(RR("late.", QTYPE.A, rdata=RDMAP["A"]("192.0.2.1")))
    record.add_answer(RR("late.", QTYPE.A, rdata=RDMAP["A"]("192.0.2.1")))
    with pytest.raises(WireError, match="backwards"):
        read_reply(bytes(record.pack()))
