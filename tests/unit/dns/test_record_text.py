import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topodns.dns.dnslib_text import record_lines
from topodns.dns.message import RRset
from topodns.dns.name import name_wire, parse_name
from topodns.dns.record_text import parse_record
from topodns.dns.text_fields import BadRecord

FIVE = "1 7200 1800 86400 5"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("www.example. 60 IN A 10.0.0.1", "www.example. 60 IN A 10.0.0.1"),
        ("www.example 60 A 10.0.0.1", "www.example. 60 IN A 10.0.0.1"),
        ("www.example. IN 60 A 10.0.0.1", "www.example. 60 IN A 10.0.0.1"),
        ("www.example. in a 10.0.0.1", "www.example. 3600 IN A 10.0.0.1"),
        ("  www.example. 1h30m A 10.0.0.1 ; a comment", "www.example. 5400 IN A 10.0.0.1"),
        ("x. 60 AAAA 2001:db8::1", "x. 60 IN AAAA 2001:db8::1"),
        ("Foogle.com 60 IN CNAME Google.com", "Foogle.com. 60 IN CNAME Google.com."),
        ("x. MX 10 mail.x.", "x. 3600 IN MX 10 mail.x."),
        ("_sip._tcp.x. SRV 1 2 5060 sip.x.", "_sip._tcp.x. 3600 IN SRV 1 2 5060 sip.x."),
        (f"x. SOA ns.x. host.x. ({FIVE})", f"x. 3600 IN SOA ns.x. host.x. {FIVE}"),
        ("x. SOA ns.x. host.x. ( 1 2h\n 30m 1d ; why\n 5 )", f"x. 3600 IN SOA ns.x. host.x. {FIVE}"),
        ('x. TXT "a b" c', 'x. 3600 IN TXT "a b" "c"'),
        (r'x. TXT "a\"\;\098"', r'x. 3600 IN TXT "a\";b"'),
        ('x. TXT ""', 'x. 3600 IN TXT ""'),
        (r"a\.b.x. PTR c\032d.x.", r"a\.b.x. 3600 IN PTR c\032d.x."),
        ('x. NAPTR 10 20 "u" "" "!a!b!" .', 'x. 3600 IN NAPTR 10 20 "u" "" "!a!b!" .'),
        ("x. HTTPS 1 . alpn=h2 port=443", "x. 3600 IN HTTPS 1 . alpn=h2 port=443"),
        (r"x. TYPE1000 \# 3 01 0203", r"x. 3600 IN TYPE1000 \# 3 010203"),
        (r"x. A \# 4 0a000001", "x. 3600 IN A 10.0.0.1"),
        ("x. NS @", "x. 3600 IN NS ."),
        ("x. 60 A 10.0.0.1\ny. 60 A 10.0.0.2", "x. 60 IN A 10.0.0.1"),
    ],
)
def test_a_record(text: str, line: str) -> None:
    assert list(record_lines([parse_record(text)], b"\0")) == [line]


@pytest.mark.parametrize(
    ("text", "rdata"),
    [
        ('x. CAA 0 issue "le.org"', b"\0\x05issuele.org"),
        ("x. SVCB 1 a.b. port=53", b"\0\1\x01a\x01b\0\0\3\0\2\0\x35"),
        ('x. HINFO "a" b', b"\1a\1b"),
        ('x. HINFO "a b"', b"\1a\1b"),  # with one word and with three, as CoreDNS reads them
        ("x. HINFO a", b"\1a\0"),
        ("x. HINFO a b c", b"\1a\3b c"),
        ("x. TLSA 3 1 1 AB cd", b"\3\1\1\xab\xcd"),
        ("x. TXT é", b"\2\xc3\xa9"),
        ('x. URI 1 2 "a://b"', b"\0\1\0\2a://b"),
        ("x. HTTPS 1 . port=53 alpn=h2", b"\0\1\0\0\1\0\3\2h2\0\3\0\2\0\x35"),
        ("x. LOC 0 N 0 E 1 2m", b"\0\x22\x16\x13\x80\0\0\0\x80\0\0\0\0\x98\x96\xe4"),
    ],
)
def test_data_in_wire_form(text: str, rdata: bytes) -> None:
    assert parse_record(text).rdatas == (rdata,)


def test_names_without_a_final_dot_are_under_the_origin() -> None:
    record = parse_record("www 60 IN MX 10 @", ("example", "org"))
    example = name_wire(parse_name("example.org"))
    assert record == RRset(b"\x03www" + example, 15, 60, (b"\0\n" + example,))


@pytest.mark.parametrize(
    ("text", "rdata"),
    [
        ("x. SVCB 1 svc", b"\0\1\3svc\7example\0"),
        ("x. HTTPS 0 svc", b"\0\0\3svc\7example\0"),
        ("x. HTTPS 0 @", b"\0\0\7example\0"),
        ("x. HTTPS 0 svc.", b"\0\0\3svc\0"),
        ("x. NSEC y A", b"\1y\7example\0\0\1\x40"),
        (
            "x. RRSIG A 13 1 5 19700101000001 19700101000000 7 y AAAA",
            b"\0\1\x0d\1\0\0\0\5\0\0\0\1\0\0\0\0\0\7\1y\7example\0\0\0\0",
        ),
    ],
)
def test_so_are_names_in_rare_types(text: str, rdata: bytes) -> None:
    assert parse_record(text, ("example",)).rdatas == (rdata,)


def test_a_class_of_its_own() -> None:
    assert [parse_record(f"x. {word} TXT a").rclass for word in ("IN", "CH", "HS", "CLASS7")] == [1, 3, 4, 7]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "found '', expected an owner, a type and its data"),
        ("test.example.", "found 'test.example.', expected an owner, a type and its data"),
        ("x. 60", "found no type"),
        ("x. 60 IN", "found no type"),
        ("x. 60 IN IN A 10.0.0.1", "found 'IN', expected a TTL, a class or a type"),
        ("x. CLASS65536 A 10.0.0.1", "found 'CLASS65536', expected a TTL, a class or a type"),
        ("x. -1 A 10.0.0.1", "found '-1', expected a TTL, a class or a type"),
        ("x. 2147483648 A 10.0.0.1", "expected at most 2147483647 seconds"),
        ("x. A 10.0.0.256", "found '10.0.0.256', expected an IPv4 address"),
        ("x. A 10.0.0.1 10.0.0.2", "found 2 words of data for A, expected 1"),
        ("x. AAAA fe80::1%eth0", "expected an IPv6 address"),
        ("x. MX 65536 y.", "found '65536', expected a number of 16 bits"),
        (f"x. CNAME {'a' * 64}.", "found a label of 64 octets, expected 1 to 63"),
        ("x..y. A 10.0.0.1", "found a label of 0 octets"),
        (f"{'a.' * 128} A 10.0.0.1", "found a name of more than 255 octets"),
        (r"\256. A 10.0.0.1", r"found \\256, which is no octet"),
        ("x. SOA ns.x. host.x. (1 2 3 4 5", "found parentheses that do not match"),
        ('x. TXT "a', "a quote or an escape without its end"),
        (f"x. HINFO {'a' * 256} b", "found a string of 256 octets, expected at most 255"),
        (r"x. A \# 3 0a000001", r"found data of another length than \\# says"),
        (r"x. A \# 3 abcdef", r"found octets that are no data of A \(RFC 3597 section 5\)"),
        (r"x. AAAA \# 4 01020304", "found octets that are no data of AAAA"),
        (r"x. CNAME \# 2 c000", "found octets that are no data of CNAME"),
        (r"x. CNAME \# 0", "found octets that are no data of CNAME"),
        (r"x. TYPE5 \# 1 40", "found octets that are no data of CNAME"),
        (rf"x. PTR \# 257 {'0161' * 128}00", "found octets that are no data of PTR"),
        (r"x. MX \# 1 00", "found octets that are no data of MX"),
        (r"x. SRV \# 3 000000", "found octets that are no data of SRV"),
        (r"x. SRV \# 8 0000000000000000", "found octets that are no data of SRV"),
        (r"x. TXT \# 0", "found octets that are no data of TXT"),
        (r"x. TXT \# 2 0561", "found octets that are no data of TXT"),
        (r"x. SVCB \# 2 0001", "found octets that are no data of SVCB"),
        (r"x. OPT \# 4 00000000", "found OPT, expected a type that records have"),
        (r"x. TYPE0 \# 0", "expected a type that records have"),
        (r"x. TYPE255 \# 0", "found ANY, expected a type that records have"),
        (f"x. NSEC3 1 0 1 - {'0' * 420} A", "expected at most 255 octets"),
        ("x. SSHFP 1 1 xy", "found 'xy', expected hexadecimal digits"),
        ("x. LOC here", "found 'here', expected degrees, minutes, seconds, and N or S"),
        ("$TTL 5 x", "found 'X', expected a TTL, a class or a type"),
    ],
)
def test_text_that_is_no_record_is_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(BadRecord, match=problem):
        parse_record(text)


WORDS = st.sampled_from(
    [
        "x.",
        "60",
        "IN",
        "A",
        "MX",
        "TXT",
        "SOA",
        "HTTPS",
        "LOC",
        "NSEC",
        "10.0.0.1",
        "::1",
        "1",
        "(",
        ")",
        '"',
        "\\",
        ";",
    ]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(WORDS, max_size=10).map(" ".join) | st.text(max_size=30))
def test_any_text_is_a_record_or_refused(text: str) -> None:
    try:
        record = parse_record(text)
    except BadRecord:
        return
    assert len(record.rdatas) == 1
