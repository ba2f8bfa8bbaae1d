"""Decoder of responses from other servers (upstreams): the only place where their records are parsed.

`read_reply` and `read_records` raise only `WireError`, in time linear in the length of the message.
"""

import struct
from typing import Final, NamedTuple

from topodns.dns.message import Edns, RRset
from topodns.dns.name import MAX_WIRE
from topodns.dns.rrtype import RRClass, RRType
from topodns.dns.wire_format import (
    COMPRESSIBLE,
    DNSSEC_OK,
    HEADER_SIZE,
    MAX_OFFSET,
    MAX_POINTERS,
    POINTER_OCTET,
    POINTER_RECORD_HEAD_SIZE,
    QNAME_POINTER,
    QUESTION_TAIL_SIZE,
    RECORD_HEAD_SIZE,
    SRV_HEAD_SIZE,
    NamesInRdata,
    pack_question_tail,
    unpack_header,
    unpack_question_tail,
    unpack_record_head,
)
from topodns.dns.wire_reader import WireError, read_options

_QNAME: Final = QNAME_POINTER.to_bytes(2, "big")
# Flags and QDCOUNT of a plain response: QR, no TC, opcode QUERY, no Z, NOERROR, one question; AA, RD, RA, AD, CD free.
_HEADS: Final = {
    bytes((high, low, 0, 1)): high << 8 | low
    for high in (0x80, 0x81, 0x84, 0x85)
    for low in (0x00, 0x10, 0x20, 0x30, 0x80, 0x90, 0xA0, 0xB0)
}
# Type and class in wire form, for types whose RDATA cannot contain a compressed name -> the type, and the RDLENGTH in
# wire form if it is fixed.
_TYPES: Final = {
    pack_question_tail(rtype, RRClass.IN): (rtype, size)
    for rtype, size in (
        *((RRType.A, b"\0\4"), (RRType.AAAA, b"\0\x10"), (RRType.TXT, b"")),
        *((RRType.SVCB, b""), (RRType.HTTPS, b"")),
    )
}


def plain_flags(octets: bytes) -> int | None:
    """The second header word of a response whose octets from there on begin with these, four at least.

    None unless the response is NOERROR without TC, has the opcode QUERY and one question.
    """
    return _HEADS.get(octets[:4])


def read_plain(data: bytes, question: bytes) -> tuple[int, RRset] | None:
    """The flags (the whole second header word) and the answer's RRset, with owner b"" (the qname), of a plain response.

    None unless the response is NOERROR without TC, has `question` (octets) as question section, in the same case, with
    class IN and a type without names to uncompress (`_TYPES`: A, AAAA, TXT, SVCB, HTTPS), and its answer section is one
    RRset, whose owners are pointers to the question's name. The RRset has at least one record, all of one TTL, as
    received, and none without RDATA. Octets after the answer section are ignored.
    """
    at = HEADER_SIZE + len(question)
    flags, known = _HEADS.get(data[2:6]), _TYPES.get(question[-4:])
    if flags is None or known is None or data[HEADER_SIZE:at] != question:
        return None
    qtype, size = known
    ttl = data[at + 6 : at + 10]
    head = _QNAME + question[-4:] + ttl + size
    rdatas = []
    for _ in range(data[6] << 8 | data[7]):
        start = at + POINTER_RECORD_HEAD_SIZE
        if not data.startswith(head, at) or start > len(data):
            return None
        at = start + (data[start - 2] << 8 | data[start - 1])
        rdatas.append(data[start:at])
    if not rdatas or b"" in rdatas or at > len(data):
        return None
    return flags, RRset(b"", qtype, int.from_bytes(ttl, "big"), tuple(rdatas), RRClass.IN)


_RCODE: Final = 0x0F

# Types in whose RDATA names are uncompressed here: beside those of RFC 1035 some that receivers must uncompress, too
# (RFC 3597 section 4), and others that some servers compress nevertheless. RDATA of the rest is copied.
_NAMES_IN_RDATA: Final = COMPRESSIBLE | {
    RRType.RP: NamesInRdata(0, 0, 2, 0),
    RRType.AFSDB: NamesInRdata(2, 0, 1, 0),
    RRType.RT: NamesInRdata(2, 0, 1, 0),
    RRType.PX: NamesInRdata(2, 0, 2, 0),
    RRType.SRV: NamesInRdata(SRV_HEAD_SIZE, 0, 1, 0),
    RRType.NAPTR: NamesInRdata(4, 3, 1, 0),
    RRType.KX: NamesInRdata(2, 0, 1, 0),
    RRType.DNAME: NamesInRdata(0, 0, 1, 0),
}
_ADDRESS_SIZES: Final = {RRType.A: 4, RRType.AAAA: 16}
_NEVER_EMPTY: Final = (RRType.TXT, RRType.SVCB, RRType.HTTPS)  # RFC 1035 section 3.3.14, RFC 9460 section 2.2


class UpstreamReply(NamedTuple):
    """A decoded response, not yet validated against the query. Names are uncompressed, in the case received.

    An RRset's owner b"" is the question's name.
    """

    rcode: int  # with the upper bits from EDNS
    flags: int  # the whole second header word, as received
    qname: bytes  # the question's name, in wire form and the case received
    qtype: int
    qclass: int
    answer: tuple[RRset, ...]  # owner b"" if it is the question's name (in any case)
    authority: tuple[RRset, ...]
    additional: tuple[RRset, ...]  # without the OPT record
    edns: Edns | None


def read_reply(data: bytes) -> UpstreamReply:
    """Decode a response with one question. Raises WireError for a message that is malformed or incomplete.

    Consecutive records of one owner, type, class and TTL form one RRset; octets after the last record are ignored.
    """
    try:
        return _Reader(data).read()
    except (IndexError, struct.error) as short:
        raise WireError("message ends too early") from short


class Record(NamedTuple):
    """One record as received, with the names in owner and RDATA uncompressed, in the case received."""

    owner: bytes
    rtype: int
    rclass: int
    ttl: int
    rdata: bytes


def read_records(data: bytes, at: int, end: int) -> list[Record]:
    """The records in the octets of a message from `at` to before `end`, which is the end of the last one.

    Compression pointers count from the message's start. Raises WireError.
    """
    try:
        return _Reader(data).records(at, end)
    except (IndexError, struct.error) as short:
        raise WireError("message ends too early") from short


class _Reader:
    """Decoder of one message, from front to back."""

    __slots__ = ("_at", "_data", "_edns", "_known", "_qname", "_upper_rcode")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = HEADER_SIZE
        self._known: dict[int, bytes] = {}  # offset -> name: decoded once, however many pointers lead there
        self._edns: Edns | None = None
        self._upper_rcode = 0
        self._qname = b""

    def read(self) -> UpstreamReply:
        _, flags, qdcount, ancount, nscount, arcount = unpack_header(self._data)
        if qdcount != 1:
            raise WireError(f"QDCOUNT is {qdcount}")
        qname = self._name()
        self._qname = qname.lower()
        qtype, qclass = unpack_question_tail(self._data, self._at)
        self._at += QUESTION_TAIL_SIZE
        answer, authority = self._section(ancount, False), self._section(nscount, False)
        additional = self._section(arcount, True)
        rcode = self._upper_rcode << 4 | flags & _RCODE
        return UpstreamReply(rcode, flags, qname, qtype, qclass, answer, authority, additional, self._edns)

    def records(self, at: int, end: int) -> list[Record]:
        self._at = at
        found = []
        while self._at < end:
            owner = self._name()
            rtype, rclass, ttl, rdlength = unpack_record_head(self._data, self._at)
            self._at += RECORD_HEAD_SIZE
            if self._at + rdlength > end:
                raise WireError("RDLENGTH runs past the end")
            # A removal of a whole RRset (RFC 8765 section 6.3.1) has a type and no RDATA.
            rdata = self._rdata(rtype, self._at + rdlength) if rdlength else b""
            found.append(Record(owner, rtype, rclass, ttl, rdata))
        return found

    def _section(self, count: int, last: bool) -> tuple[RRset, ...]:
        rrsets: list[RRset] = []
        rdatas: list[bytes] = []
        previous: tuple[bytes, int, int, int] | None = None
        for _ in range(count):
            owner = self._name()
            rtype, rclass, ttl, rdlength = unpack_record_head(self._data, self._at)
            self._at += RECORD_HEAD_SIZE
            end = self._at + rdlength
            if end > len(self._data):
                raise WireError("RDLENGTH runs past the end")
            if rtype == RRType.OPT:
                self._take_opt(owner, last, rclass, ttl, end)
                continue
            if owner.lower() == self._qname:
                owner = b""
            rdata = self._rdata(rtype, end)
            if (owner, rtype, rclass, ttl) == previous:
                rdatas.append(rdata)
                continue
            if previous is not None:
                rrsets.append(_rrset(previous, rdatas))
            previous, rdatas = (owner, rtype, rclass, ttl), [rdata]
        if previous is not None:
            rrsets.append(_rrset(previous, rdatas))
        return tuple(rrsets)

    def _take_opt(self, owner: bytes, last: bool, size: int, ttl: int, end: int) -> None:
        if self._edns is not None or owner != b"\0" or not last:  # RFC 6891 section 6.1.1
            raise WireError("OPT twice, outside ADDITIONAL, or not at the root")
        self._upper_rcode = ttl >> 24
        options = read_options(self._data, self._at, end)
        self._edns = Edns(size, ttl >> 16 & 0xFF, bool(ttl & DNSSEC_OK), options)
        self._at = end

    def _rdata(self, rtype: int, end: int) -> bytes:
        """The RDATA from the current offset to before `end`, with its names uncompressed. Raises WireError."""
        layout = _NAMES_IN_RDATA.get(rtype)
        if layout is None:
            rdata = self._data[self._at : end]
            if _ADDRESS_SIZES.get(rtype, len(rdata)) != len(rdata):
                raise WireError("address of a wrong length")
            if not rdata and rtype in _NEVER_EMPTY:
                raise WireError("RDATA without octets")
            self._at = end
            return rdata
        before, strings, names, after = layout
        start = self._at
        self._at += before
        for _ in range(strings):
            self._at += 1 + self._data[self._at]
        rdata = self._data[start : self._at]
        for _ in range(names):
            rdata += self._name()
        rdata += self._data[self._at : self._at + after]
        self._at += after
        if self._at != end:
            raise WireError("RDATA longer or shorter than its type says")
        return rdata

    def _name(self) -> bytes:
        """Read the name at the current offset, uncompressed; pointers may only go backwards (RFC 9267 section 2)."""
        name, self._at = self._name_at(self._at)
        return name

    def _name_at(self, start: int, pointers: int = 0) -> tuple[bytes, int]:
        """The name at offset `start` and the offset after it; `pointers` is the number followed so far."""
        data, at = self._data, start
        while 0 < (octet := data[at]) < 64:
            at += 1 + octet
            if at - start >= MAX_WIRE:
                raise WireError("name of more than 255 octets")
        if octet == 0:
            name = data[start : at + 1]
            if len(name) > MAX_WIRE:
                raise WireError("name of more than 255 octets")
            self._known[start] = name
            return name, at + 1
        target = (octet << 8 | data[at + 1]) & MAX_OFFSET
        if octet < POINTER_OCTET or not HEADER_SIZE <= target < start:
            raise WireError("compression pointer that does not go backwards, or a label type that does not exist")
        rest = self._known.get(target)
        if rest is None:
            if pointers == MAX_POINTERS:
                raise WireError("too many compression pointers")
            rest, _ = self._name_at(target, pointers + 1)
        name = data[start:at] + rest
        if len(name) > MAX_WIRE:
            raise WireError("name of more than 255 octets")
        self._known[start] = name
        return name, at + 2


def _rrset(head: tuple[bytes, int, int, int], rdatas: list[bytes]) -> RRset:
    owner, rtype, rclass, ttl = head
    return RRset(owner, rtype, ttl, tuple(rdatas), rclass)
