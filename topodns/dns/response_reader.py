"""A response of another server, read from its bytes: the one place where records of strangers are taken apart.

`read_reply` raises nothing but `WireError`, in time linear in the length of the message.
"""

import struct
from typing import Final, NamedTuple

from topodns.dns.message import Edns, RRset, RRType
from topodns.dns.wire import HEADER_SIZE, WireError, read_options

_MAX_NAME: Final = 255
_MAX_POINTERS: Final = 127  # as many as a name can have labels
_OPT: Final = int(RRType.OPT)
_DNSSEC_OK: Final = 0x8000
_RCODE: Final = 0x0F
_RECORD: Final = 10  # octets of type, class, TTL and RDLENGTH

# What stands before the names in RDATA, how many names, and what stands after them: the types whose names may be
# compressed (RFC 3597 section 4), and SRV, in which some servers do it all the same. Any other RDATA is left as it is.
_NAMES_IN_RDATA: Final[dict[int, tuple[int, int, int]]] = {
    2: (0, 1, 0),  # NS
    3: (0, 1, 0),  # MD
    4: (0, 1, 0),  # MF
    5: (0, 1, 0),  # CNAME
    6: (0, 2, 20),  # SOA
    7: (0, 1, 0),  # MB
    8: (0, 1, 0),  # MG
    9: (0, 1, 0),  # MR
    12: (0, 1, 0),  # PTR
    14: (0, 2, 0),  # MINFO
    15: (2, 1, 0),  # MX
    17: (0, 2, 0),  # RP
    18: (2, 1, 0),  # AFSDB
    21: (2, 1, 0),  # RT
    26: (2, 2, 0),  # PX
    33: (6, 1, 0),  # SRV
    36: (2, 1, 0),  # KX
    39: (0, 1, 0),  # DNAME
}
_ADDRESS_SIZES: Final = {int(RRType.A): 4, int(RRType.AAAA): 16}

_header = struct.Struct("!HHHHHH")
_question_tail = struct.Struct("!HH")
_record_head = struct.Struct("!HHIH")


class Reply(NamedTuple):
    """What another server said. Names are uncompressed and spelled as received; nothing is believed yet."""

    rcode: int  # with the upper bits from EDNS
    flags: int  # the whole second header word, as received
    qname: bytes  # the question, in wire form as spelled
    qtype: int
    qclass: int
    answer: tuple[RRset, ...]  # owner b"" where it is the question's name (in whatever case)
    authority: tuple[RRset, ...]
    additional: tuple[RRset, ...]  # without the OPT record
    edns: Edns | None


def read_reply(data: bytes) -> Reply:
    """The response in a message with one question.

    Records of one owner, type, class and TTL that follow each other are one RRset; octets after the last record are
    nobody's business. Raises WireError for anything that cannot be read whole.
    """
    try:
        return _Reader(data).read()
    except (IndexError, struct.error) as short:
        raise WireError("message ends too early") from short


class _Reader:
    """Reads one message from front to back."""

    __slots__ = ("_at", "_data", "_edns", "_known", "_qname", "_upper_rcode")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = HEADER_SIZE
        self._known: dict[int, bytes] = {}  # where a name begins -> the name: read once, however often pointed to
        self._edns: Edns | None = None
        self._upper_rcode = 0
        self._qname = b""

    def read(self) -> Reply:
        _, flags, qdcount, ancount, nscount, arcount = _header.unpack_from(self._data)
        if qdcount != 1:
            raise WireError(f"QDCOUNT is {qdcount}")
        qname = self._name()
        self._qname = qname.lower()
        qtype, qclass = _question_tail.unpack_from(self._data, self._at)
        self._at += _question_tail.size
        answer, authority = self._section(ancount, False), self._section(nscount, False)
        additional = self._section(arcount, True)
        rcode = self._upper_rcode << 4 | flags & _RCODE
        return Reply(rcode, flags, qname, qtype, qclass, answer, authority, additional, self._edns)

    def _section(self, count: int, last: bool) -> tuple[RRset, ...]:
        rrsets: list[RRset] = []
        rdatas: list[bytes] = []
        previous: tuple[bytes, int, int, int] | None = None
        for _ in range(count):
            owner = self._name()
            rtype, rclass, ttl, rdlength = _record_head.unpack_from(self._data, self._at)
            self._at += _RECORD
            end = self._at + rdlength
            if end > len(self._data):
                raise WireError("RDLENGTH runs past the end")
            if rtype == _OPT:
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
        self._edns = Edns(size, ttl >> 16 & 0xFF, bool(ttl & _DNSSEC_OK), options)
        self._at = end

    def _rdata(self, rtype: int, end: int) -> bytes:
        """The RDATA up to `end`, with its names uncompressed."""
        layout = _NAMES_IN_RDATA.get(rtype)
        if layout is None:
            rdata = self._data[self._at : end]
            if _ADDRESS_SIZES.get(rtype, len(rdata)) != len(rdata):
                raise WireError("address of a wrong length")
            self._at = end
            return rdata
        before, names, after = layout
        rdata = self._data[self._at : self._at + before]
        self._at += before
        for _ in range(names):
            rdata += self._name()
        rdata += self._data[self._at : self._at + after]
        self._at += after
        if self._at != end:
            raise WireError("RDATA longer or shorter than its type says")
        return rdata

    def _name(self) -> bytes:
        """The name here, uncompressed; a pointer may only lead backwards (RFC 9267 section 2)."""
        name, self._at = self._name_at(self._at)
        return name

    def _name_at(self, start: int, pointers: int = 0) -> tuple[bytes, int]:
        """The name at `start` and where it ends, so many pointers followed so far."""
        data, at = self._data, start
        while 0 < (octet := data[at]) < 64:
            at += 1 + octet
            if at - start >= _MAX_NAME:
                raise WireError("name of more than 255 octets")
        if octet == 0:
            name = data[start : at + 1]
            if len(name) > _MAX_NAME:
                raise WireError("name of more than 255 octets")
            self._known[start] = name
            return name, at + 1
        target = (octet & 0x3F) << 8 | data[at + 1]
        if octet < 0xC0 or not HEADER_SIZE <= target < start:
            raise WireError("compression pointer that does not go backwards, or a label type that does not exist")
        rest = self._known.get(target)
        if rest is None:
            if pointers == _MAX_POINTERS:
                raise WireError("too many compression pointers")
            rest, _ = self._name_at(target, pointers + 1)
        name = data[start:at] + rest
        if len(name) > _MAX_NAME:
            raise WireError("name of more than 255 octets")
        self._known[start] = name
        return name, at + 2


def _rrset(head: tuple[bytes, int, int, int], rdatas: list[bytes]) -> RRset:
    owner, rtype, rclass, ttl = head
    return RRset(owner, rtype, ttl, tuple(rdatas), rclass)
