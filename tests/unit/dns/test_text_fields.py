"""Fields of one word: the limits of each, and what is refused."""

import pytest

from topodns.dns.record_text import parse_record
from topodns.dns.text_fields import BadRecord


def rdata(text: str) -> bytes:
    return parse_record(f". {text}").rdatas[0]


@pytest.mark.parametrize("rtype", ["TXT", "SPF", "AVC", "NINFO", "RESINFO", "WALLET", "CLA"])
def test_the_octets_of_a_string_beyond_255_begin_another(rtype: str) -> None:
    a, b, c = b"a" * 255, b"b" * 255, b"c"
    assert rdata(f'{rtype} "{(a + b + c).decode()}" d') == b"\xff" + a + b"\xff" + b + b"\1c\1d"
    assert (
        rdata(f'{rtype} {"a" * 254}\\"\\066{"c"}') == b"\xff" + b"a" * 254 + b'"' + b"\2Bc"
    )  # escapes count as octets
    assert rdata(f'{rtype} "{"a" * 255}" ""') == b"\xff" + a + b"\0"


def test_text_without_a_length_is_not_split() -> None:
    assert rdata(f'URI 1 2 "{"a" * 300}"') == b"\0\1\0\2" + b"a" * 300
    assert rdata(f'CAA 0 issue "{"a" * 300}"') == b"\0\5issue" + b"a" * 300


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("EUI48 0-0-5E-0-53-2a", b"\0\0\x5e\0\x53\x2a"),
        ("NID 10 0014:4FFF:ff20:ee64", b"\0\x0a\0\x14\x4f\xff\xff\x20\xee\x64"),
        ("NSEC3PARAM 1 0 0 -", b"\1\0\0\0\0"),
        ("NSEC3 1 1 0 AB 2t7b4g4vsa5smi47k61mv5bv1a22bojr a", b"\1\1\0\0\1\xab\x14\x17\x4e\xb2\x40\x9f"),
        ("RRSIG A RSASHA256 2 1h 20300101000000 1893369600 7 . YQ==", b"\0\1\x08\2\0\0\x0e\x10\x70\xdb\xd8\x80"),
        ("RRSIG A 8 2 1 22000101000000 0 7 . YQ==", b"\0\1\x08\2\0\0\0\1\xb0\x9e\x19\0"),
        ("DS 1 ecdsap256sha256 2 AB cd", b"\0\1\x0d\2\xab\xcd"),
        ("CERT spki 1 253 YQ==", b"\0\2\0\1\xfda"),
        ("WKS 192.0.2.1 udp 53", b"\xc0\0\2\1\x11\0\0\0\0\0\0\4"),
        ("SIG TYPE0 8 0 0 0 0 7 . YQ==", b"\0\0\x08\0\0\0\0\0"),
        ("TYPE44 1 2 ABCD", b"\1\2\xab\xcd"),
    ],
)
def test_a_field_is_read(text: str, expected: bytes) -> None:
    assert rdata(text).startswith(expected)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("EUI48 00:00:5e:00:53:2a", "expected 6 hexadecimal numbers with '-' between them"),
        ("L64 10 2001:db8::", "expected 4 hexadecimal numbers with ':' between them"),
        ("DNSKEY 256 3 13 !", "expected Base64"),
        ("DNSKEY 256 3 13 YQ", "expected Base64"),
        ("DNSKEY 256 3 13", "found 3 words of data for DNSKEY, expected at least 4"),
        ("DNSKEY 256 3 NONSENSE YQ==", "expected an algorithm or a number of 8 bits"),
        ("CERT NONSENSE 0 0 YQ==", "expected a certificate type or a number of 16 bits"),
        ("NSEC a. NONSENSE", "found 'NONSENSE', expected a type"),
        ("NSEC3 1 1 0 - ! A", "expected base32hex"),
        ("NSEC3PARAM 1 0 0 " + "00" * 256, "expected at most 255 octets"),
        ("NXT a. CAA", "found CAA, expected types below 128"),
        ("RRSIG A 8 2 1 20301301000000 0 7 . YQ==", "expected YYYYMMDDHHmmSS"),
        ("IPSECKEY 10 0 2 192.0.2.1 YQ==", "expected '.' for a gateway of type 0"),
        ("IPSECKEY 10 1 2 2001:db8::1 YQ==", "expected an IPv4 address"),
        ("IPSECKEY 10 1", "found 2 words of data"),
        ("AMTRELAY 10 2 0 .", "found '2', expected 0 or 1"),
        ("APL 1:192.0.2.0", "expected .!.FAMILY:ADDRESS/LENGTH"),
        ("APL 1:192.0.2.0/33", "expected a prefix of the family"),
        ("APL 2:192.0.2.0/8", "expected an IPv6 address"),
        ("NSAP 47.0005", "expected 0x and hexadecimal digits"),
        ("A6 129 a.", "expected at most 128"),
        ("A6 0 ::1 a.", "found 2 words of data, expected 1"),
        ("HIP 1 00", "found 2 words of data, expected 3"),
        ("CAA 0 issue a b", "found 2 words of data, expected 1"),
        ("NULL abc", r"found data of type NULL, which has no text; expected \\# LENGTH HEX"),
        ("TYPE65280 abc", r"found data of type TYPE65280, which has no text; expected \\# LENGTH HEX"),
        ("OPT abc", "found OPT, expected a type that records have"),
        (r"TYPE65280 \# 2 ab", "found data of another length"),
        (r"TYPE65280 \# x ab", "found data of another length"),
        (r"TYPE65280 \#", "found data of another length"),
    ],
)
def test_other_text_is_refused(text: str, problem: str) -> None:
    with pytest.raises(BadRecord, match=problem):
        rdata(text)
