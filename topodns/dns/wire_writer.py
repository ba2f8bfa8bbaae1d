"""Encoder of responses, a `Response` to bytes within the client's size limit (RFC 1035 section 4, RFC 6891).

Owner names are compressed against the question and earlier names. RDATA is copied, so that no rules of types are needed
here; names in it keep the case that the plugin wrote. The target of SRV must not be compressed (RFC 2782), and CoreDNS
does not either: of records that an upstream compressed fewer may fit. The decoder of queries is `wire_reader`.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from topodns.dns.message import Ede, Edns, Flag, Option, Query, Response, RRset
from topodns.dns.rrtype import ADDRESS_TYPES, Rcode, RRType
from topodns.dns.wire_format import (
    DNSSEC_OK,
    HEADER_SIZE,
    MAX_OFFSET,
    OPTION_HEAD_SIZE,
    POINTER,
    QNAME_POINTER,
    QUESTION_TAIL_SIZE,
    ROOT_RECORD_HEAD_SIZE,
    SRV_HEAD_SIZE,
    pack_header,
    pack_option_head,
    pack_pointer_record_head,
    pack_question_tail,
    pack_root_record_head,
)

_MAX_HEADER_RCODE: Final = 0x0F
_MAX_EXTRA_TEXT: Final = 200  # octets
_COPIED: Final = 0x7800 | Flag.RD | Flag.CD  # bits copied from the query: opcode, RD, CD
_TARGET_OFFSET: Final = {RRType.SRV: SRV_HEAD_SIZE, RRType.NS: 0}  # offset in RDATA of the name that glue repeats

_QNAME: Final = QNAME_POINTER.to_bytes(2, "big")
_LENGTH_SIZE: Final = 2  # octets of RDLENGTH

_TYPE_HEAD: Final = struct.Struct("!HHI")  # type, class, TTL


def write_error(data: bytes, rcode: int) -> bytes:
    """The reply to a message that is malformed or not supported: a header only, with ID, opcode and RD copied, and
    `rcode` (0 to 15).

    The smallest possible reply, so that garbage is never amplified. `data` has at least 12 octets.
    """
    opcode_and_rd = data[2] & 0x79
    return data[:2] + bytes((0x80 | opcode_and_rd, rcode & 0x0F, 0, 0, 0, 0, 0, 0, 0, 0))


def write_response(query: Query, response: Response, limit: int, payload_size: int) -> bytes:
    """Encode the reply to `query` in at most `limit` (512 or more) octets.

    Records that do not fit are dropped from the end, and TC is set (also for ADDITIONAL, as in CoreDNS). The reply has
    an OPT record if and only if the query has one (RFC 6891 section 6.1.1), with `payload_size` as the server's UDP
    payload size. The OPT record always fits: options that would make the reply too long are left out. An RCODE above
    15, which needs the OPT record, becomes SERVFAIL without one.
    """
    opt = b""
    if query.edns is not None:
        available = limit - HEADER_SIZE - len(query.spelling) - QUESTION_TAIL_SIZE
        opt = _opt_record(query.edns, response, payload_size, available)
    writer = _Writer(query, limit - len(opt))
    # Most responses have only one section; the checks save calls for every query that misses the packet cache.
    ancount = writer.write_section(response.answer) if response.answer else 0
    nscount = writer.write_section(response.authority) if response.authority else 0
    arcount = writer.write_section(response.additional) if response.additional else 0
    flags = Flag.QR | query.flags & _COPIED | response.flags
    if writer.full:
        flags |= Flag.TC
    rcode = response.rcode
    if rcode > _MAX_HEADER_RCODE and not opt:
        rcode = Rcode.SERVFAIL  # the lower four bits alone would be another RCODE, even NOERROR
    flags = flags & ~response.cleared | rcode & 0x0F
    writer.parts[0] = pack_header(query.id, flags, 1, ancount, nscount, arcount + bool(opt))
    if opt:
        writer.parts.append(opt)
    return b"".join(writer.parts)


def _opt_record(edns: Edns, response: Response, payload_size: int, available: int) -> bytes:
    options = b""
    written = response.options if response.ede is None else (*response.options, _extended_error(response.ede))
    for code, data in written:
        if ROOT_RECORD_HEAD_SIZE + len(options) + OPTION_HEAD_SIZE + len(data) <= available:
            options += pack_option_head(code, len(data)) + data
    ttl = (response.rcode >> 4) << 24 | (DNSSEC_OK if edns.dnssec_ok else 0)  # version 0
    return pack_root_record_head(0, RRType.OPT, payload_size, ttl, len(options)) + options


def _extended_error(ede: Ede) -> tuple[int, bytes]:
    # RFC 8914 section 2: UTF-8, so not cut inside a character; and short, since it is only for humans.
    text = ede.text.encode()[:_MAX_EXTRA_TEXT].decode(errors="ignore").encode()
    return Option.EXTENDED_ERROR, ede.code.to_bytes(2, "big") + text


class _Writer:
    """Encodes sections up to `limit` octets of message; after the first record that does not fit, all others are
    dropped.
    """

    __slots__ = ("full", "knows_question", "limit", "names", "parts", "size", "spelling")

    def __init__(self, query: Query, limit: int) -> None:
        question = query.spelling + pack_question_tail(query.qtype, query.qclass)
        self.parts: list[bytes] = [b"", question]
        self.size = HEADER_SIZE + len(question)
        self.limit = limit
        self.full = False
        self.spelling = query.spelling
        self.names: dict[bytes, int] = {}  # name in wire form -> its offset in the message
        self.knows_question = False  # whether `names` has the question's name and parents; most answers need none

    def write_section(self, rrsets: Iterable[RRset]) -> int:
        """Encode the records of a section; returns the number of those that fit."""
        count = 0
        for rrset in rrsets:
            if self.full:
                break
            count += self._write_rrset(rrset)
        return count

    def _write_rrset(self, rrset: RRset) -> int:
        owner, rtype, _, rdatas, _ = rrset
        if not owner:
            uniform = rtype in ADDRESS_TYPES  # all RDATA of one size
            return self._write_uniform(rrset) if uniform else self._write_some(rrset, _QNAME, rdatas)
        if len(rdatas) < 2:
            return self._write_some(rrset, self._compressed(owner), rdatas) if rdatas else 0
        # The first record adds its owner to `names`, so that the owners of the others can be pointers to it.
        written = self._write_some(rrset, self._compressed(owner), rdatas[:1])
        if written:
            written += self._write_some(rrset, self._compressed(owner), rdatas[1:])
        return written

    def _write_some(self, rrset: RRset, owner: bytes, rdatas: Sequence[bytes]) -> int:
        """Encode `rdatas`, records of this RRset, with this compressed owner; returns the number of those that fit."""
        _, rtype, ttl, _, rclass = rrset
        head = owner + _TYPE_HEAD.pack(rtype, rclass, ttl)
        around, skip = len(head) + _LENGTH_SIZE, _TARGET_OFFSET.get(rtype)
        parts, size, written = self.parts, self.size, 0
        for rdata in rdatas:
            end = size + around + len(rdata)
            if end > self.limit:
                self.full = True
                break
            parts.append(head + len(rdata).to_bytes(_LENGTH_SIZE, "big") + rdata)
            if skip is not None and size + around + skip <= MAX_OFFSET:  # glue may have it as owner
                self.names.setdefault(rdata[skip:], size + around + skip)
            written += 1
            size = end
        self.size = size
        return written

    def _write_uniform(self, rrset: RRset) -> int:
        """Encode records of the qname with RDATA of equal size in one join; returns the number of those that fit.

        In most answers, these are all records.
        """
        _, rtype, ttl, rdatas, rclass = rrset
        if not rdatas:
            return 0
        head = pack_pointer_record_head(QNAME_POINTER, rtype, rclass, ttl, len(rdatas[0]))
        width = len(head) + len(rdatas[0])
        fitting = (self.limit - self.size) // width
        if fitting < len(rdatas):
            self.full = True
            rdatas = rdatas[: max(fitting, 0)]
        if rdatas:
            self.parts.append(head + head.join(rdatas))
            self.size += width * len(rdatas)
        return len(rdatas)

    def _compressed(self, owner: bytes) -> bytes:
        # The SOA of a negative answer: if the question's name ends in the owner's octets, point into it.
        if self.spelling.endswith(owner) and len(owner) > 1:
            return (POINTER | HEADER_SIZE + len(self.spelling) - len(owner)).to_bytes(2, "big")
        if not self.knows_question:
            self.knows_question = True
            self._learn(self.spelling, HEADER_SIZE)
        at = 0
        while owner[at]:
            target = self.names.get(owner[at:])
            if target is not None:
                self._learn(owner, self.size, at)
                return owner[:at] + (POINTER | target).to_bytes(2, "big")
            at += 1 + owner[at]
        self._learn(owner, self.size)
        return owner

    def _learn(self, name: bytes, offset: int, end: int = 255) -> None:
        """Add `name`, at `offset` in the message, and its parents to the compression table.

        Only those that begin before octet `end` of the name, and at an offset that a pointer can have.
        """
        at = 0
        while at < end and name[at]:
            if offset + at <= MAX_OFFSET:
                self.names.setdefault(name[at:], offset + at)
            at += 1 + name[at]
