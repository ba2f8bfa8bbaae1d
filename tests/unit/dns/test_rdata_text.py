"""Text of every type that has a presentation format: what others print of octets is read as these octets."""

import struct
from collections.abc import Iterable, Sequence

import pytest
from dns.rdata import from_wire
from dns.rdataclass import RdataClass
from dns.rdatatype import RdataType
from hypothesis import given, settings
from hypothesis import strategies as st

from topodns.dns.rdata_text import loc_rdata
from topodns.dns.record_text import parse_record
from topodns.dns.rrtype import QTYPES
from topodns.dns.text_fields import BadRecord

Octets = st.SearchStrategy[bytes]


def sized(least: int, most: int) -> Octets:
    return st.binary(min_size=least, max_size=most)


def joined(*parts: Octets) -> Octets:
    return st.tuples(*parts).map(b"".join)


def with_length(octets: bytes) -> bytes:
    return bytes((len(octets),)) + octets


def bits(numbers: Iterable[int]) -> bytes:
    octets = bytearray(32)
    for number in numbers:
        octets[number // 8] |= 0x80 >> number % 8
    return bytes(octets).rstrip(b"\0")


def windows(types: Iterable[int]) -> bytes:
    """The type bitmap of NSEC (RFC 4034 section 4.1.2)."""
    found = sorted(types)
    parts = (
        (high, bits(each & 255 for each in found if each >> 8 == high)) for high in sorted({x >> 8 for x in found})
    )
    return b"".join(bytes((high,)) + with_length(part) for high, part in parts)


def numbered(values: dict[int, bytes]) -> bytes:
    """Parameters of SVCB in ascending order; all others are mandatory where key 0 is there."""
    if 0 in values:
        others = sorted(values.keys() - {0})
        values = values | {0: b"".join(key.to_bytes(2, "big") for key in others)}
    return b"".join(struct.pack("!HH", key, len(values[key])) + values[key] for key in sorted(values))


def prefix(family: int, address: bytes, length: int, negated: bool) -> bytes:
    kept = address.rstrip(b"\0")
    return struct.pack("!HBB", family, length, len(kept) | negated << 7) + kept


NAME = st.lists(sized(1, 12), max_size=4).map(lambda labels: b"".join(map(with_length, labels)) + b"\0")
STRING = sized(0, 255).map(with_length)
STRINGS = st.lists(STRING, min_size=1, max_size=4).map(b"".join)
SOME = sized(1, 60)
TYPE = st.sampled_from([1, 2, 6, 16, 28, 46, 257, 1000, 32769, 65280])
TYPES = st.sets(TYPE, min_size=1).map(windows)
GATEWAYS: Sequence[Octets] = (st.just(b""), sized(4, 4), sized(16, 16), NAME)
APL = st.lists(
    st.builds(prefix, st.just(1), sized(4, 4), st.integers(0, 32), st.booleans())
    | st.builds(prefix, st.just(2), sized(16, 16), st.integers(0, 128), st.booleans()),
    min_size=1,
    max_size=4,
).map(b"".join)
SIZE = st.tuples(st.integers(1, 9), st.integers(0, 9)).map(lambda pair: pair[0] << 4 | pair[1])
LOC = st.tuples(
    SIZE, SIZE, SIZE, st.integers(-324_000_000, 324_000_000), st.integers(-648_000_000, 648_000_000)
).flatmap(
    lambda found: sized(4, 4).map(
        lambda altitude: b"\0" + bytes(found[:3]) + struct.pack("!II", 2**31 + found[3], 2**31 + found[4]) + altitude
    )
)
PARAMETERS = st.fixed_dictionaries(
    {},
    optional={
        0: st.just(b""),
        1: st.lists(sized(1, 9).map(with_length), min_size=1, max_size=3).map(b"".join),
        3: sized(2, 2),
        4: st.lists(sized(4, 4), min_size=1, max_size=3).map(b"".join),
        5: SOME.map(lambda octets: struct.pack("!HHH", len(octets) + 4, 0xFE0D, len(octets)) + octets),
        6: st.lists(sized(16, 16), min_size=1, max_size=3).map(b"".join),
        7: SOME,
        8: st.just(b""),
        9: st.just(b"\0\x1d\0\x17"),
        10: st.lists(sized(1, 9).map(with_length), min_size=1, max_size=3).map(b"".join),
        667: sized(0, 20),
        65534: sized(0, 20),
    },
).filter(lambda values: set(values) != {0})


def gateway(head: Octets, tail: Octets, before: bool) -> Octets:
    """A gateway of each type: `head` is before its type, one octet between the type and it for IPSECKEY."""
    kinds = [
        joined(head, st.just(bytes((kind,))), sized(1, 1) if before else st.just(b""), address, tail)
        for kind, address in enumerate(GATEWAYS)
    ]
    return st.one_of(kinds)


DS = joined(sized(3, 3), st.just(b"\x63"), SOME)  # of an unknown digest type, as dnspython checks the length of others
KEY = joined(sized(4, 4), SOME)
SIG = joined(TYPE.map(lambda rtype: rtype.to_bytes(2, "big")), sized(16, 16), NAME, SOME)
SVCB = joined(st.just(b"\0\1"), NAME, PARAMETERS.map(numbered))
TEXT: dict[str, Octets] = {
    "A": sized(4, 4),
    "AAAA": sized(16, 16),
    "AFSDB": joined(sized(2, 2), NAME),
    "AMTRELAY": gateway(sized(1, 1), st.just(b""), False),
    "APL": APL,
    "AVC": STRINGS,
    "BRID": SOME,
    "CAA": joined(sized(1, 1), st.sampled_from([b"\5issue", b"\5iodef"]), sized(0, 60)),
    "CDNSKEY": KEY,
    "CDS": DS,
    "CERT": joined(sized(5, 5), SOME),
    "CNAME": NAME,
    "CSYNC": joined(sized(6, 6), TYPES),
    "DHCID": SOME,
    "DLV": DS,
    "DNAME": NAME,
    "DNSKEY": KEY,
    "DS": DS,
    "DSYNC": joined(TYPE.map(lambda rtype: rtype.to_bytes(2, "big")), sized(3, 3), NAME),
    "EUI48": sized(6, 6),
    "EUI64": sized(8, 8),
    "GPOS": st.just(b"\7-32.682" + b"\7" + b"116.865" + b"\4-0.1"),
    "HHIT": SOME,
    "HINFO": joined(STRING, STRING),
    "HIP": st.builds(
        lambda hit, algorithm, key, servers: (
            bytes((len(hit), algorithm)) + struct.pack("!H", len(key)) + hit + key + servers
        ),
        SOME,
        st.integers(0, 255),
        SOME,
        st.lists(NAME, max_size=2).map(b"".join),
    ),
    "HTTPS": SVCB,
    "IPSECKEY": gateway(sized(1, 1), SOME, True),
    "ISDN": STRING | joined(STRING, sized(1, 255).map(with_length)),
    "KEY": KEY,
    "KX": joined(sized(2, 2), NAME),
    "L32": sized(6, 6),
    "L64": sized(10, 10),
    "LOC": LOC,
    "LP": joined(sized(2, 2), NAME),
    "MX": joined(sized(2, 2), NAME),
    "NAPTR": joined(sized(4, 4), STRING, STRING, STRING, NAME),
    "NID": sized(10, 10),
    "NINFO": STRINGS,
    "NS": NAME,
    "NSAP": SOME,
    "NSAP-PTR": NAME,
    "NSEC": joined(NAME, TYPES),
    "NSEC3": joined(sized(4, 4), sized(0, 40).map(with_length), sized(1, 40).map(with_length), TYPES),
    "NSEC3PARAM": joined(sized(4, 4), sized(0, 40).map(with_length)),
    "OPENPGPKEY": SOME,
    "PTR": NAME,
    "PX": joined(sized(2, 2), NAME, NAME),
    "RESINFO": STRINGS,
    "RP": joined(NAME, NAME),
    "RRSIG": SIG,
    "RT": joined(sized(2, 2), NAME),
    "SIG": SIG,
    "SMIMEA": joined(sized(2, 2), st.just(b"\0"), SOME),
    "SOA": joined(NAME, NAME, sized(20, 20)),
    "SPF": STRINGS,
    "SRV": joined(sized(6, 6), NAME),
    "SSHFP": joined(sized(1, 1), st.just(b"\x63"), SOME),
    "SVCB": SVCB,
    "TLSA": joined(sized(2, 2), st.just(b"\0"), SOME),
    "TXT": STRINGS,
    "URI": joined(sized(4, 4), sized(1, 300)),
    "WALLET": STRINGS,
    "WKS": joined(sized(4, 4), st.sampled_from([b"\6", b"\x11"]), st.sets(st.integers(0, 255), min_size=1).map(bits)),
    "X25": STRING,
    "ZONEMD": joined(sized(4, 4), st.just(b"\1\1"), sized(48, 48)),
}
"""By type of which dnspython prints text: octets, names uncompressed."""


@pytest.mark.parametrize("mnemonic", TEXT)
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_what_dnspython_prints_is_read_back(mnemonic: str, data: st.DataObject) -> None:
    rdata = data.draw(TEXT[mnemonic])
    text = from_wire(RdataClass.IN, RdataType.make(QTYPES[mnemonic]), rdata, 0, len(rdata)).to_text()
    assert parse_record(f". {mnemonic} {text}").rdatas == (rdata,), text
    assert parse_record(rf". {mnemonic} \# {len(rdata)} {rdata.hex()}").rdatas == (rdata,)


# As dig 9.18 prints them; of CLA and IPN, as their drafts write them.
PRINTED = {
    "A6 0 2001:db8::7": "0020010db8000000000000000000000007",
    "A6 64 ::5:6:7:8 net.x.": "400005000600070008036e6574017800",
    "A6 60 ::f:1:2:3:4 p.": "3c0f00010002000300040170 00",
    "A6 128  p.x.": "800170017800",
    "ATMA 39246f000e7c9c03": "0039246f000e7c9c03",
    "ATMA +61200000000": "013631323030303030303030",
    "CERT IPGP 0 ED448 aGVsbG8=": "000600001068656c6c6f",
    'CLA "TCP" "v4"': "03544350027634",
    "CSYNC 66 3": "000000420003",
    'DOA 1 2 3 "text/plain" aGVsbG8=': "0000000100000002030a746578742f706c61696e68656c6c6f",
    'DOA 1 2 3 "" -': "00000001000000020300",
    "DSYNC CDS NOTIFY 5359 scanner.x.": "003b0114ef077363616e6e6572017800",
    "EID E32C6F78163A": "e32c6f78163a",
    "GID 100": "00000064",
    r'HTTPS 1 . alpn="h2,f\\\\oo\\,bar" no-default-alpn key9="\000\029" key10': (
        "0001000001000c02683208665c6f6f2c6261720002000000090002001d000a0000"
    ),
    "IPN 18446744073709551615": "ffffffffffffffff",
    "IPSECKEY 10 0 0 .": "0a0000",
    'ISDN "150862028003217"': "0f313530383632303238303033323137",
    "KEY 49152 3 13": "c000030d",
    "LOC 52 14 5.500 N 0 8 50.000 E -10.50m 1m 20m 3m": "001223328b3558bc8008165000989266",
    "MB mail.x.": "046d61696c017800",
    "MD mail.x.": "046d61696c017800",
    "MF mail.x.": "046d61696c017800",
    "MG mail.x.": "046d61696c017800",
    "MINFO a.x. b.": "0161017800016200",
    "MR mail.x.": "046d61696c017800",
    "NIMLOC 32251A030067": "32251a030067",
    "NXT n.x. A MX NXT": "016e01780040010002",
    "NXT n.x. A 73": "016e01780040000000000000000040",
    "RKEY 0 1 3 aGVsbG8=": "0000010368656c6c6f",
    "RRSIG 65280 13 1 60 20300101000000 1893369600 9 x. aGk=": "ff000d010000003c70dbd88070da8700000901780068 69",
    "SINK 8 0 2 l/PjtQ==": "08000297f3e3b5",
    "SINK 8 0 2": "080002",
    "TA 1234 8 2 ABCDEF": "04d20802abcdef",
    "TALINK a.x. b.": "0161017800016200",
    "UID 7": "00000007",
    'UINFO "a b"': "03612062",
    "WKS 192.0.2.1 6 25 80 443": f"c000020106{'00' * 3}40{'00' * 6}80{'00' * 44}10",
}


@pytest.mark.parametrize(("text", "rdata"), PRINTED.items(), ids=PRINTED)
def test_what_dig_prints_is_read(text: str, rdata: str) -> None:
    octets = bytes.fromhex(rdata)
    assert parse_record(f". 60 IN {text}").rdatas[0].hex() == octets.hex()
    assert parse_record(rf". 60 IN {text.split()[0]} \# {len(octets)} {octets.hex()}").rdatas == (octets,)


@pytest.mark.parametrize(
    ("text", "wire"),
    [
        ("0 N 0 E 0", "00121613 80000000 80000000 00989680"),
        ("0 s 0 w 0m", "00121613 80000000 80000000 00989680"),
        ("90 S 180 E -100000m", f"00121613 {2**31 - 324_000_000:08x} {2**31 + 648_000_000:08x} 00000000"),
        ("1 2 3.004 N 4 5 W 10.5 2m", f"00221613 {2**31 + 3_723_004:08x} {2**31 - 14_700_000:08x} 00989a9a"),
        ("0 N 0 E 42849672.95m 90000000m 0.01 .5m", "00991051 80000000 80000000 ffffffff"),
        ("0 0 59.999 N 0 0 0. E 1.M 1.50m 20M 3", f"00122332 {2**31 + 59_999:08x} 80000000 009896e4"),
    ],
)
def test_a_location(text: str, wire: str) -> None:
    assert loc_rdata(text.split()).hex() == wire.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "degrees, minutes, seconds, and N or S"),
        ("here", "degrees, minutes, seconds, and N or S"),
        ("N 0 E 0", "degrees, minutes, seconds, and N or S"),
        ("0 0 0 0 N 0 E 0", "degrees, minutes, seconds, and N or S"),
        ("0.5 N 0 E 0", "degrees, minutes, seconds, and N or S"),
        ("91 N 0 E 0", "at most 90 degrees"),
        ("90 0 0.001 N 0 E 0", "at most 90 degrees"),
        ("1 60 N 0 E 0", "fewer than 60 minutes"),
        ("1 0 60 N 0 E 0", "fewer than 60 minutes and seconds"),
        ("0 N 181 E 0", "at most 180 degrees"),
        ("0 N 0 E", "found 0 words after the longitude, expected 1 to 4"),
        ("0 N 0 E 1 2 3 4 5", "found 5 words after the longitude"),
        ("0 N 0 E -100000.01m", "an altitude from"),
        ("0 N 0 E 42849672.96m", "an altitude from"),
        ("0 N 0 E 0 90000001m0", "metres"),
        ("0 N 0 E 0 99999999m -1m", "at most 90000000m"),
        ("0 N 0 E high", "found 'high', expected metres"),
    ],
)
def test_other_text_is_refused(text: str, problem: str) -> None:
    with pytest.raises(BadRecord, match=problem):
        loc_rdata(text.split())
