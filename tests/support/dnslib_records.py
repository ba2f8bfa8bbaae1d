"""Records for and of dnslib, which reads and writes the wire format beside topodns: strategies, and octets of both.

The strategies leave out the forms of tests/unit/dns/test_dnslib_text.py, which dnslib cannot carry over.
"""

import struct
from collections.abc import Iterable

from dnslib import QTYPE, RD, RDMAP, RR, DNSBuffer, DNSLabel
from hypothesis import strategies as st

from topodns.dns.message import RRset
from topodns.dns.name import label_wire
from topodns.dns.rrtype import QTYPES, RRType

Record = tuple[bytes, int, int, bytes]  # owner and RDATA in wire form, uncompressed; type; TTL

_LABELS = st.text(st.characters(codec="ascii"), min_size=1, max_size=12).map(label_wire)  # dnslib refuses all but UTF-8
_OCTETS = st.integers(0, 255).map(lambda octet: bytes((octet,)))
_ASCII = st.text(st.characters(codec="ascii"), max_size=30).map(str.encode)
NAMES = st.lists(st.sampled_from([b"\x01a", b"\x01A", b"\x03svc", b"\x07cluster"]) | _LABELS, max_size=5).map(
    lambda labels: b"".join(labels) + b"\0"
)


def _octets(least: int, most: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=least, max_size=most)


def _joined(*parts: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.tuples(*parts).map(b"".join)


def _string(text: bytes) -> bytes:
    return bytes((len(text),)) + text


def _bitmap(types: Iterable[int]) -> bytes:
    """The type bitmap of NSEC (RFC 4034 section 4.1.2), all types below 256."""
    octets = bytearray(32)
    for rtype in types:
        octets[rtype // 8] |= 0x80 >> rtype % 8
    return b"\0" + _string(bytes(octets).rstrip(b"\0"))


def _parameters(values: dict[int, bytes]) -> bytes:
    return b"".join(struct.pack("!HH", key, len(values[key])) + values[key] for key in sorted(values))


_TEXTS = _octets(0, 100).map(_string)
_HTTPS = _joined(
    _octets(2, 2), NAMES, st.dictionaries(st.integers(0, 65534), _octets(0, 20), max_size=3).map(_parameters)
)
RDATA: dict[int, st.SearchStrategy[bytes]] = {
    RRType.A: _octets(4, 4),
    RRType.AAAA: _octets(16, 16),
    RRType.NS: NAMES,
    RRType.CNAME: NAMES,
    RRType.PTR: NAMES,
    RRType.MX: _joined(_octets(2, 2), NAMES),
    RRType.RP: _joined(NAMES, NAMES),
    RRType.SOA: _joined(NAMES, NAMES, _octets(20, 20)),
    RRType.SRV: _joined(_octets(6, 6), NAMES),
    RRType.TXT: st.lists(_TEXTS, min_size=1, max_size=3).map(b"".join),
    RRType.NAPTR: _joined(_octets(4, 4), *[_ASCII.map(_string)] * 3, NAMES),
    QTYPES["CAA"]: _joined(_OCTETS, st.sampled_from([b"\5issue", b"\5iodef"]), _ASCII),
    QTYPES["SSHFP"]: _octets(3, 34),
    QTYPES["TLSA"]: _octets(4, 35),
    RRType.DS: _octets(5, 36),
    RRType.DNSKEY: _octets(5, 40),
    RRType.RRSIG: _joined(st.sampled_from([b"\0\1", b"\0\x41"]), _octets(16, 16), NAMES, _octets(1, 64)),
    RRType.NSEC: _joined(NAMES, st.sets(st.sampled_from([1, 2, 15, 16, 28, 46, 47]), min_size=1).map(_bitmap)),
    RRType.LOC: _octets(15, 15).map(lambda octets: b"\0" + octets),
    RRType.HTTPS: _HTTPS,
    RRType.SVCB: _HTTPS,
    1000: _octets(1, 40),
}
"""By type: RDATA, names uncompressed."""


def rrsets(owners: st.SearchStrategy[bytes], most: int) -> st.SearchStrategy[RRset]:
    """RRsets of any of these types with at most so many records."""

    def of_type(rtype: int) -> st.SearchStrategy[RRset]:
        rdatas = st.lists(RDATA[rtype], min_size=1, max_size=most).map(tuple)
        return st.builds(RRset, owners, st.just(rtype), st.integers(0, 2**31 - 1), rdatas, st.just(1))

    return st.sampled_from(sorted(RDATA)).flatmap(of_type)


class _Uncompressed(DNSBuffer):  # type: ignore[misc]  # dnslib has no types
    def encode_name(self, name: DNSLabel) -> None:
        self.encode_name_nocompress(name)


def record_of(record: RR) -> Record:
    """What dnslib has read."""
    buffer = _Uncompressed()
    record.rdata.pack(buffer)
    return _wire_of(record.rname), record.rtype, record.ttl, bytes(buffer.data)


def dnslib_record(record: Record) -> RR:
    """For dnslib to write."""
    owner, rtype, ttl, rdata = record
    parsed = RDMAP.get(QTYPE.get(rtype), RD).parse(DNSBuffer(rdata), len(rdata))
    return RR(DNSLabel(_labels(owner)), rtype, 1, ttl, parsed)


def records(section: Iterable[RRset], qname: bytes) -> list[Record]:
    """What topodns writes or has read; `qname` owns the RRsets whose owner is b""."""
    return [(rrset.owner or qname, rrset.rtype, rrset.ttl, rdata) for rrset in section for rdata in rrset.rdatas]


def _wire_of(label: DNSLabel) -> bytes:
    return b"".join(map(_string, label.label)) + b"\0"


def _labels(name: bytes) -> list[bytes]:
    labels, at = [], 0
    while name[at]:
        labels.append(name[at + 1 : at + 1 + name[at]])
        at += 1 + name[at]
    return labels
