"""A `Response` to bytes, sized to what the client takes (RFC 1035 section 4, RFC 6891). `wire` is the other way.

Owners are compressed against the question and against earlier names. RDATA never is, so that a type's rules need not
be known here; names in it keep the spelling that the step gave them.
"""

import struct
from collections.abc import Iterable
from typing import Final

from topodns.dns.message import Ede, Edns, Flag, Option, Query, Rcode, Response, RRset, RRType
from topodns.dns.wire import HEADER_SIZE

MIN_UDP_PAYLOAD: Final = 512  # RFC 6891 section 6.2.3: smaller values mean 512
MAX_TCP_PAYLOAD: Final = 65535

_MAX_POINTER_TARGET: Final = 0x3FFF
_MAX_HEADER_RCODE: Final = 0x0F
_MAX_EXTRA_TEXT: Final = 200  # octets
_COPIED: Final = 0x7800 | int(Flag.RD | Flag.CD)  # the opcode, too
_QR: Final = int(Flag.QR)
_TC: Final = int(Flag.TC)
_OPT: Final = int(RRType.OPT)
_DNSSEC_OK: Final = 0x8000
_FIXED_SIZE: Final = frozenset({int(RRType.A), int(RRType.AAAA)})
_TARGET_OFFSET: Final = {int(RRType.SRV): 6, int(RRType.NS): 0}  # where RDATA holds the name that glue will repeat

_header = struct.Struct("!HHHHHH")
_question_tail = struct.Struct("!HH")
_pointer_head = struct.Struct("!HHHIH")  # owner pointer, type, class, ttl, rdlength
_record_head = struct.Struct("!HHIH")
_opt_head = struct.Struct("!BHHIH")
_option_head = struct.Struct("!HH")


def write_error(data: bytes, rcode: int) -> bytes:
    """A bare header for a message whose question is not to be trusted: id, opcode and RD copied, nothing else.

    The smallest reply there is, so that garbage never amplifies. `data` has at least 12 octets.
    """
    opcode_and_rd = data[2] & 0x79
    return data[:2] + bytes((0x80 | opcode_and_rd, rcode & 0x0F, 0, 0, 0, 0, 0, 0, 0, 0))


def write_response(query: Query, response: Response, limit: int, payload_size: int) -> bytes:
    """The reply to `query` in at most `limit` (512 or more) octets; our OPT record offers `payload_size` over UDP.

    What does not fit is dropped from the end, record by record, and TC says so (also for ADDITIONAL, as CoreDNS does).
    An OPT record is there exactly when the query had one (RFC 6891 section 6.1.1), and always fits; of its options
    those that leave it too long for that are left out.
    """
    opt = b""
    if query.edns is not None:
        room = limit - HEADER_SIZE - len(query.spelling) - _question_tail.size
        opt = _opt_record(query.edns, response, payload_size, room)
    writer = _Writer(query, limit - len(opt))
    # Most responses have one section only, and this is the miss path.
    ancount = writer.write_section(response.answer) if response.answer else 0
    nscount = writer.write_section(response.authority) if response.authority else 0
    arcount = writer.write_section(response.additional) if response.additional else 0
    flags = _QR | query.flags & _COPIED | response.flags
    if writer.full:
        flags |= _TC
    rcode = response.rcode
    if rcode > _MAX_HEADER_RCODE and not opt:
        rcode = Rcode.SERVFAIL  # its lower bits alone would mean something else, NOERROR even
    flags = flags & ~response.cleared | rcode & 0x0F
    writer.parts[0] = _header.pack(query.id, flags, 1, ancount, nscount, arcount + bool(opt))
    if opt:
        writer.parts.append(opt)
    return b"".join(writer.parts)


def _opt_record(edns: Edns, response: Response, payload_size: int, room: int) -> bytes:
    options = b""
    written = response.options if response.ede is None else (*response.options, _extended_error(response.ede))
    for code, data in written:
        if _opt_head.size + len(options) + _option_head.size + len(data) <= room:
            options += _option_head.pack(code, len(data)) + data
    ttl = (response.rcode >> 4) << 24 | (_DNSSEC_OK if edns.dnssec_ok else 0)  # version 0
    return _opt_head.pack(0, _OPT, payload_size, ttl, len(options)) + options


def _extended_error(ede: Ede) -> tuple[int, bytes]:
    # RFC 8914 section 2: UTF-8, so not cut inside a character; and short, since it is for people.
    text = ede.text.encode()[:_MAX_EXTRA_TEXT].decode(errors="ignore").encode()
    return Option.EXTENDED_ERROR, ede.code.to_bytes(2, "big") + text


class _Writer:
    """Writes sections until `limit` is reached; from the first record that does not fit, nothing more is taken."""

    __slots__ = ("full", "knows_question", "limit", "names", "parts", "size", "spelling")

    def __init__(self, query: Query, limit: int) -> None:
        question = query.spelling + _question_tail.pack(query.qtype, query.qclass)
        self.parts: list[bytes] = [b"", question]
        self.size = HEADER_SIZE + len(question)
        self.limit = limit
        self.full = False
        self.spelling = query.spelling
        self.names: dict[bytes, int] = {}  # name in wire form -> where it stands
        self.knows_question = False  # `names` has those of the question, which most answers do not need

    def write_section(self, rrsets: Iterable[RRset]) -> int:
        """The number of records written."""
        count = 0
        for rrset in rrsets:
            if self.full:
                break
            count += self._write_rrset(rrset)
        return count

    def _write_rrset(self, rrset: RRset) -> int:
        owner, rtype, ttl, rdatas, rclass = rrset
        if not owner and rtype in _FIXED_SIZE:
            return self._write_uniform(rrset)
        written = 0
        for rdata in rdatas:
            head = self._compressed(owner) if owner else b"\xc0\x0c"
            head += _record_head.pack(rtype, rclass, ttl, len(rdata))
            size = self.size + len(head) + len(rdata)
            if size > self.limit:
                self.full = True
                return written
            if rtype in _TARGET_OFFSET:
                self._remember(rdata, self.size + len(head), _TARGET_OFFSET[rtype])
            self.parts.append(head + rdata)
            self.size = size
            written += 1
        return written

    def _write_uniform(self, rrset: RRset) -> int:
        """Records of the qname that all have the same size: the whole of most answers, joined in one go."""
        _, rtype, ttl, rdatas, rclass = rrset
        if not rdatas:
            return 0
        head = _pointer_head.pack(0xC00C, rtype, rclass, ttl, len(rdatas[0]))
        width = len(head) + len(rdatas[0])
        room = (self.limit - self.size) // width
        if room < len(rdatas):
            self.full = True
            rdatas = rdatas[: max(room, 0)]
        if rdatas:
            self.parts.append(head + head.join(rdatas))
            self.size += width * len(rdatas)
        return len(rdatas)

    def _compressed(self, owner: bytes) -> bytes:
        # The SOA of a negative answer: the same octets at the end of the question are the same name.
        if self.spelling.endswith(owner) and len(owner) > 1:
            return (0xC000 | HEADER_SIZE + len(self.spelling) - len(owner)).to_bytes(2, "big")
        if not self.knows_question:
            self.knows_question = True
            self._learn(self.spelling, HEADER_SIZE)
        at = 0
        while owner[at]:
            target = self.names.get(owner[at:])
            if target is not None:
                self._learn(owner, self.size, at)
                return owner[:at] + (0xC000 | target).to_bytes(2, "big")
            at += 1 + owner[at]
        self._learn(owner, self.size)
        return owner

    def _learn(self, name: bytes, offset: int, end: int = 255) -> None:
        """Remember that `name` and its parent names, those that begin before `end`, stand at `offset`."""
        at = 0
        while at < end and name[at]:
            if offset + at <= _MAX_POINTER_TARGET:
                self.names.setdefault(name[at:], offset + at)
            at += 1 + name[at]

    def _remember(self, rdata: bytes, offset: int, skip: int) -> None:
        """SRV and NS targets, behind `skip` octets of RDATA that stands at `offset`, come again as owners of glue."""
        if offset + skip <= _MAX_POINTER_TARGET:
            self.names.setdefault(rdata[skip:], offset + skip)
