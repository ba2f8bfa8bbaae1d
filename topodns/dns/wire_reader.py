"""Decoder of queries, bytes to a `Query` (RFC 1035 section 4, RFC 6891). The encoder of responses is `wire_writer`.

Written by hand because every query that misses the packet cache passes here. `read_query` raises only `WireError`, in
time linear in the length of the message.
"""

import struct
from typing import Final

from topodns.dns.message import Edns, Query
from topodns.dns.name import MAX_LABEL, MAX_WIRE, Name
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.wire_format import (
    DNSSEC_OK,
    HEADER_SIZE,
    MAX_OFFSET,
    MAX_POINTERS,
    POINTER_OCTET,
    QUESTION_TAIL_SIZE,
    RECORD_HEAD_SIZE,
    ROOT_RECORD_HEAD_SIZE,
    unpack_header,
    unpack_option_head,
    unpack_question_tail,
    unpack_record_head,
    unpack_root_record_head,
)

MAX_OPTIONS: Final = 64  # EDNS options of one OPT record; no legitimate query has more


class WireError(Exception):
    """A malformed message, the sender's fault. `rcode`: the RCODE of the reply, if the message is a query."""

    def __init__(self, problem: str, rcode: int = Rcode.FORMERR) -> None:
        super().__init__(problem)
        self.rcode = rcode


def read_query(data: bytes) -> Query:
    """Decode a query of at least 12 octets with one question. The caller checks opcode and QR. Raises WireError.

    All records are parsed to their end, also unused ones, and no octets may follow them.
    """
    ident, flags, qdcount, ancount, nscount, arcount = unpack_header(data)
    if qdcount != 1:  # RFC 9619
        raise WireError(f"QDCOUNT is {qdcount}")
    if ancount > 1 or nscount > 1 or arcount > 2:  # as CoreDNS: no legitimate query has more
        raise WireError("more records than a query may have")
    try:
        qname, at = _read_qname(data)
        qtype, qclass = unpack_question_tail(data, at)
        spelling = data[HEADER_SIZE:at]
        at += QUESTION_TAIL_SIZE
        edns = None
        if ancount or nscount or arcount:
            edns, at = _read_records(data, at, ancount + nscount, arcount)
    except (IndexError, struct.error) as short:
        raise WireError("message ends too early") from short
    if at != len(data):
        raise WireError(f"{len(data) - at} octets left over")
    return Query(ident, flags, qname, spelling, qtype, qclass, edns, len(data))


def _read_qname(data: bytes) -> tuple[Name, int]:
    """The question's name, lower-cased, and the offset after it. A pointer is an error: no name precedes this one."""
    # bytes.lower touches ASCII letters only, and length octets are below 64, so it is safe on a whole name.
    lowered = data[HEADER_SIZE : HEADER_SIZE + MAX_WIRE].lower().decode("latin-1")
    labels = []
    at = 0
    while length := data[HEADER_SIZE + at]:
        if length > MAX_LABEL:
            raise WireError("compressed or extended label in the question")
        at += 1
        labels.append(lowered[at : at + length])
        at += length
        if at >= MAX_WIRE:
            raise WireError("name of more than 255 octets")
    return tuple(labels), HEADER_SIZE + at + 1


def _read_records(data: bytes, at: int, others: int, additional: int) -> tuple[Edns | None, int]:
    if additional == 1 and not others and len(data) == at + ROOT_RECORD_HEAD_SIZE:
        owner, rtype, rclass, ttl, rdlength = unpack_root_record_head(data, at)
        if owner == rdlength == 0 and rtype == RRType.OPT:  # without options, as most clients send it: the usual case
            return Edns(rclass, ttl >> 16 & 0xFF, bool(ttl & DNSSEC_OK)), len(data)
    edns = None
    for position in range(others + additional):
        owner_at = at
        at = _skip_name(data, at)
        rtype, rclass, ttl, rdlength = unpack_record_head(data, at)
        at += RECORD_HEAD_SIZE
        if at + rdlength > len(data):
            raise WireError("RDLENGTH runs past the end")
        if rtype == RRType.OPT:
            if edns is not None or position < others or data[owner_at]:  # RFC 6891 section 6.1.1
                raise WireError("OPT twice, outside ADDITIONAL, or not at the root")
            edns = Edns(rclass, ttl >> 16 & 0xFF, bool(ttl & DNSSEC_OK), read_options(data, at, at + rdlength))
        at += rdlength
    return edns, at


def read_options(data: bytes, at: int, end: int) -> tuple[tuple[int, bytes], ...]:
    """The (code, data) of the EDNS options from offset `at` to before `end`. Raises WireError."""
    options: list[tuple[int, bytes]] = []
    while at < end:
        if end - at < 4:
            raise WireError("EDNS option cut off")
        code, length = unpack_option_head(data, at)
        at += 4 + length
        if at > end:
            raise WireError("EDNS option runs past its OPT record")
        if len(options) == MAX_OPTIONS:
            raise WireError(f"more than {MAX_OPTIONS} EDNS options")
        options.append((code, data[at - length : at]))
    return tuple(options)


def _skip_name(data: bytes, at: int) -> int:
    """The offset after the name at `at`. Its pointers are followed and may only go backwards (RFC 9267 section 2)."""
    end, length, limit = 0, 1, at
    for _ in range(MAX_POINTERS):
        while 0 < (octet := data[at]) < 64:
            at += 1 + octet
            length += 1 + octet
            if length > MAX_WIRE:
                raise WireError("name of more than 255 octets")
        end = end or at + (1 if octet == 0 else 2)
        if octet == 0:
            return end
        target = (octet << 8 | data[at + 1]) & MAX_OFFSET
        if octet < POINTER_OCTET or not HEADER_SIZE <= target < limit:
            raise WireError("compression pointer that does not go backwards, or a label type that does not exist")
        at = limit = target
    raise WireError("too many compression pointers")
