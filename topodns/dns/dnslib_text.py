"""Presentation format of records by dnslib: the output of `explain`.

The only importer of dnslib; not used to answer queries. Its text is printed only where `record_text` reads the same
octets from it. tests/unit/dns/test_dnslib_text.py lists the forms in which dnslib is known to be wrong.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from dnslib import HTTPS, QTYPE, RD, RDMAP, DNSBuffer

from topodns.dns.message import RRset
from topodns.dns.name import name_text, wire_labels
from topodns.dns.record_text import parse_record
from topodns.dns.rrtype import RRType, type_text
from topodns.dns.text_fields import BadRecord


def record_lines(rrsets: Iterable[RRset], qname: bytes) -> Iterator[str]:
    """Each record as one line of zone-file text, in order. `qname` (wire form) replaces an RRset's owner b""."""
    for rrset in rrsets:
        owner = name_text(wire_labels(rrset.owner or qname))
        rtype = type_text(rrset.rtype)
        for rdata in rrset.rdatas:
            yield f"{owner} {rrset.ttl} IN {rtype} {_rdata_text(rrset.rtype, rdata)}"


def _rdata_text(rtype: int, rdata: bytes) -> str:
    """RDATA in the type's presentation format if that reads back to it, else in that of unknown types (RFC 3597 5)."""
    text = _strings_text(rdata) if rtype == RRType.TXT else _dnslib_text(rtype, rdata)
    if text.isascii() and text.isprintable() and _reads_back(rtype, text, rdata):
        return text
    return f"\\# {len(rdata)} {rdata.hex()}".rstrip()


def _strings_text(rdata: bytes) -> str:
    """The character strings of TXT RDATA, each in quotes, with a blank between them (RFC 1035 section 5.1)."""
    texts, at = [], 0
    while at < len(rdata):
        end = at + 1 + rdata[at]
        texts.append("".join(map(_octet_text, rdata[at + 1 : end])))
        at = end
    return " ".join(f'"{text}"' for text in texts)


def _octet_text(octet: int) -> str:
    char = chr(octet)
    if char in '"\\':
        return "\\" + char
    return char if " " <= char <= "~" else f"\\{octet:03d}"


def _dnslib_text(rtype: int, rdata: bytes) -> str:
    """dnslib's text for this RDATA; "" if it has none."""
    known = _class_of(rtype)
    if known is None:
        return ""
    try:
        return str(known.parse(DNSBuffer(rdata), len(rdata)).toZone()).rstrip()
    except Exception:  # dnslib does not catch its internal errors: BufferError, KeyError, UnicodeError ...
        return ""


def _class_of(rtype: int) -> Any:
    """dnslib's class for RDATA of this type; None if dnslib has none."""
    if rtype == RRType.SVCB:  # the same presentation format and wire format (RFC 9460 section 2)
        return HTTPS
    known = RDMAP.get(QTYPE.forward.get(rtype, ""))
    return None if known is RD else known


def _reads_back(rtype: int, text: str, rdata: bytes) -> bool:
    try:
        return parse_record(f". {type_text(rtype)} {text}").rdatas == (rdata,)
    except BadRecord:
        return False
