"""Encoder of responses, a `Response` to bytes within the client's size limit (RFC 1035 section 4, RFC 6891).

Owners, and names in RDATA of the types of RFC 1035, are compressed against the question and earlier names of the same
spelling, so each keeps the case that the plugin wrote. RDATA of other types is copied, as RFC 3597 section 4 demands.
The decoder of queries is `wire_reader`.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from topodns.dns.message import Ede, Edns, Flag, Option, Query, Response, RRset
from topodns.dns.rrtype import ADDRESS_TYPES, Rcode, RRType
from topodns.dns.wire_format import (
    COMPRESSIBLE,
    DNSSEC_OK,
    HEADER_SIZE,
    MAX_OFFSET,
    OPTION_HEAD_SIZE,
    POINTER,
    QNAME_POINTER,
    QUESTION_TAIL_SIZE,
    ROOT_RECORD_HEAD_SIZE,
    SRV_HEAD_SIZE,
    NamesInRdata,
    end_of_name,
    pack_header,
    pack_option_head,
    pack_pointer_record_head,
    pack_question_tail,
    pack_root_record_head,
)

_MAX_HEADER_RCODE: Final = 0x0F
_MAX_EXTRA_TEXT: Final = 200  # octets
_COPIED: Final = 0x7800 | Flag.RD | Flag.CD  # bits copied from the query: opcode, RD, CD

_QNAME: Final = QNAME_POINTER.to_bytes(2, "big")
_LENGTH_SIZE: Final = 2  # octets of RDLENGTH
# In vain for one message: twice what 4,000 records need. Names of 127 labels of a hostile upstream would need 30,000.
_MOST_LOOKUPS: Final = 8_000
_SHORTEST: Final = 3  # octets of the shortest name that a pointer can save: a label of one octet, and the root

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

    __slots__ = ("full", "limit", "names", "parts", "size", "spelling")

    def __init__(self, query: Query, limit: int) -> None:
        question = query.spelling + pack_question_tail(query.qtype, query.qclass)
        self.parts: list[bytes] = [b"", question]
        self.size = HEADER_SIZE + len(question)
        self.limit = limit
        self.full = False
        self.spelling = query.spelling
        self.names: _Names | None = None  # None until a name is written: most answers are addresses of the question's

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
            return self._write_some(rrset, self._compressed(owner, self.size), rdatas) if rdatas else 0
        # The first record adds its owner to `names`, so that the owners of the others can be pointers to it.
        written = self._write_some(rrset, self._compressed(owner, self.size), rdatas[:1])
        if written:
            written += self._write_some(rrset, self._compressed(owner, self.size), rdatas[1:])
        return written

    def _write_some(self, rrset: RRset, owner: bytes, rdatas: Sequence[bytes]) -> int:
        """Encode `rdatas`, records of this RRset, with this compressed owner; returns the number of those that fit."""
        _, rtype, ttl, _, rclass = rrset
        head = owner + _TYPE_HEAD.pack(rtype, rclass, ttl)
        around, layout = len(head) + _LENGTH_SIZE, COMPRESSIBLE.get(rtype)
        parts, size, written = self.parts, self.size, 0
        for rdata in rdatas:
            rdata_at = size + around
            if layout is not None:
                rdata = self._compressed_rdata(rdata, rdata_at, layout)
            size = rdata_at + len(rdata)
            if size > self.limit:
                self.full = True
                break
            parts.append(head + len(rdata).to_bytes(_LENGTH_SIZE, "big") + rdata)
            if rtype == RRType.SRV and rdata_at + SRV_HEAD_SIZE <= MAX_OFFSET:  # glue has its target as owner
                if self.names is None:
                    self.names = _Names(self.spelling)
                self.names.add(rdata[SRV_HEAD_SIZE:], rdata_at + SRV_HEAD_SIZE)
            self.size = size
            written += 1
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

    def _compressed_rdata(self, rdata: bytes, offset: int, layout: NamesInRdata) -> bytes:
        """RDATA that begins at `offset` of the message, with its names compressed."""
        before, _, names, after = layout
        if names == 1:
            return rdata[:before] + self._compressed(rdata[before:], offset + before)
        middle, end = end_of_name(rdata, before), len(rdata) - after
        made = rdata[:before] + self._compressed(rdata[before:middle], offset + before)
        return made + self._compressed(rdata[middle:end], offset + len(made)) + rdata[end:]

    def _compressed(self, name: bytes, offset: int) -> bytes:
        if self.names is None:
            self.names = _Names(self.spelling)
        return self.names.compressed(name, offset)


class _Names:
    """The compression table of one message whose question is spelled so."""

    __slots__ = ("_ends", "_lookups_left", "_offsets", "_unlearned")

    def __init__(self, spelling: bytes) -> None:
        self._ends = {spelling[-_SHORTEST:]}  # the last octets of all names so far: one with others shares none
        self._offsets: dict[bytes, int] = {}
        self._lookups_left = _MOST_LOOKUPS
        self._unlearned = [(spelling, HEADER_SIZE, len(spelling))]  # arguments of `_learn`

    def add(self, name: bytes, offset: int) -> None:
        """A name at `offset` of the message, but none of its parents."""
        self._ends.add(name[-_SHORTEST:])
        self._unlearned.append((name, offset, 1))

    def compressed(self, name: bytes, offset: int) -> bytes:
        """The octets of `name` at `offset` of the message: as many of its labels as are new there, then a pointer."""
        end = name[-_SHORTEST:]
        if end not in self._ends:
            self._ends.add(end)
            self._unlearned.append((name, offset, len(name)))
            return name
        for unlearned in self._unlearned:
            self._learn(*unlearned)
        self._unlearned = []
        offsets, at, target, left = self._offsets, 0, None, self._lookups_left
        while name[at] and left:
            target = offsets.get(name[at:])
            if target is not None:
                break
            at += 1 + name[at]
            left -= 1
        self._lookups_left = left
        if at and offset <= MAX_OFFSET:
            self._unlearned.append((name, offset, at))
        return name if target is None else name[:at] + (POINTER | target).to_bytes(2, "big")

    def _learn(self, name: bytes, offset: int, end: int) -> None:
        """Add `name`, at `offset` in the message, and its parents.

        Only those that begin before octet `end` of the name, and at an offset that a pointer can have.
        """
        at, end = 0, min(end, MAX_OFFSET + 1 - offset)
        while at < end and name[at]:
            self._offsets.setdefault(name[at:], offset + at)
            at += 1 + name[at]
