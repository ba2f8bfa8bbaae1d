"""Presentation format of records by dnslib: output of `explain`, input of the rarer types (the others: `record_text`).

The only importer of dnslib; not used to answer queries.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dnslib import QTYPE, RD, RDMAP, DNSBuffer, DNSError, DNSLabel

from topodns.dns.message import RRset
from topodns.dns.name import Name, name_text, wire_labels
from topodns.dns.rrtype import TYPE_NAMES

_SVCB: Final = 64  # same presentation format as HTTPS (RFC 9460 section 2.1)
_NUMBERED: Final = re.compile(r"TYPE([0-9]{1,5})")  # RFC 3597 section 5


def record_lines(rrsets: Iterable[RRset], qname: bytes) -> Iterator[str]:
    """Each record as one line of zone-file text, in order. `qname` (wire form) replaces an RRset's owner b""."""
    for rrset in rrsets:
        owner = name_text(wire_labels(rrset.owner or qname))
        rtype = TYPE_NAMES.get(rrset.rtype, f"TYPE{rrset.rtype}")
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


def type_name(rtype: int) -> str | None:
    """The mnemonic of a record type; None if dnslib has none."""
    name: str | None = TYPE_NAMES.get(rtype) or QTYPE.forward.get(rtype)
    return name


def parse_type(name: str) -> int | None:
    """The type with this upper-case mnemonic, or of TYPE<number>; None if there is none."""
    if (numbered := _NUMBERED.fullmatch(name)) is not None:
        return int(numbered[1]) if int(numbered[1]) <= 0xFFFF else None
    number: int | None = QTYPE.reverse.get(name)
    return number


def parse_rdata(rtype: int, words: Sequence[str], origin: Name) -> bytes | None:
    """RDATA that dnslib parses from these words, names uncompressed; None if it cannot."""
    known = RDMAP.get(QTYPE.forward.get(rtype, "")) or (RDMAP["HTTPS"] if rtype == _SVCB else None)
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
