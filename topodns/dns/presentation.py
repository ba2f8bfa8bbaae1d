"""Records as text, for people: what `explain` prints. The one importer of dnslib, off the hot path."""

from collections.abc import Iterable, Iterator

from dnslib import QTYPE, RD, RDMAP, DNSBuffer, DNSError

from topodns.dns.message import TYPE_NAMES, RRset
from topodns.dns.names import name_text, wire_labels


def record_lines(rrsets: Iterable[RRset], qname: bytes) -> Iterator[str]:
    """Each record as one line of zone-file text, in order. `qname` (wire form) owns the RRsets that spell no owner."""
    for rrset in rrsets:
        owner = name_text(wire_labels(rrset.owner or qname))
        rtype = TYPE_NAMES.get(rrset.rtype, f"TYPE{rrset.rtype}")
        for rdata in rrset.rdatas:
            yield f"{owner} {rrset.ttl} IN {rtype} {_rdata_text(rrset.rtype, rdata)}"


def _rdata_text(rtype: int, rdata: bytes) -> str:
    """As the type says, or in the form for unknown types (RFC 3597 section 5) where dnslib cannot say it."""
    try:
        known = RDMAP[QTYPE.forward[rtype]] if rtype in QTYPE.forward else None
        if known is not None and known is not RD:
            return " ".join(str(known.parse(DNSBuffer(rdata), len(rdata))).split())
    except (DNSError, KeyError, ValueError):  # ValueError: names with octets that are no UTF-8
        pass
    return f"\\# {len(rdata)} {rdata.hex()}"
