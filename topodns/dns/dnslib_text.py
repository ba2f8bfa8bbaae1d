"""Presentation format of records by dnslib: output of `explain`, input of the rarer types (the others: `record_text`).

The only importer of dnslib; not used to answer queries.
"""

from collections.abc import Iterable, Iterator, Sequence

from dnslib import QTYPE, RD, RDMAP, DNSBuffer, DNSError, DNSLabel

from topodns.dns.message import RRset
from topodns.dns.name import Name, name_text, wire_labels
from topodns.dns.rrtype import RRType, type_text


def record_lines(rrsets: Iterable[RRset], qname: bytes) -> Iterator[str]:
    """Each record as one line of zone-file text, in order. `qname` (wire form) replaces an RRset's owner b""."""
    for rrset in rrsets:
        owner = name_text(wire_labels(rrset.owner or qname))
        rtype = type_text(rrset.rtype)
        for rdata in rrset.rdatas:
            yield f"{owner} {rrset.ttl} IN {rtype} {_rdata_text(rrset.rtype, rdata)}"


def _rdata_text(rtype: int, rdata: bytes) -> str:
    """RDATA in the type's presentation format; if dnslib has none, in that of unknown types (RFC 3597 section 5)."""
    try:
        known = RDMAP[QTYPE.forward[rtype]] if rtype in QTYPE.forward else None
        if known is not None and known is not RD:
            return " ".join(str(known.parse(DNSBuffer(rdata), len(rdata))).split())
    except (DNSError, KeyError, ValueError):  # ValueError: names with invalid UTF-8
        pass
    return f"\\# {len(rdata)} {rdata.hex()}"


def parse_rdata(rtype: int, words: Sequence[str], origin: Name) -> bytes | None:
    """RDATA that dnslib parses from these words, names uncompressed; None if it cannot."""
    # SVCB and HTTPS have the same presentation format (RFC 9460 section 2.1).
    known = RDMAP.get(QTYPE.forward.get(rtype, "")) or (RDMAP["HTTPS"] if rtype == RRType.SVCB else None)
    if known is None:
        return None
    buffer = _Uncompressed()
    try:
        known.fromZone(list(words), DNSLabel(name_text(origin))).pack(buffer)
    except Exception:  # dnslib does not catch its internal errors: IndexError, struct.error, UnicodeError ...
        return None
    return bytes(buffer.data)


class _Uncompressed(DNSBuffer):  # type: ignore[misc]  # dnslib has no types
    def encode_name(self, name: DNSLabel) -> None:
        self.encode_name_nocompress(name)
