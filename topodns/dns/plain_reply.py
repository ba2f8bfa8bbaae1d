"""The replies that most questions get, read without taking them apart: records of the name and type asked for, no more.

Anything out of the ordinary is `reply`'s; nothing here raises.
"""

from typing import Final

from topodns.dns.message import RRset
from topodns.dns.wire import HEADER_SIZE

_RECORD: Final = 12  # octets of a record before its RDATA, its owner being a pointer
_POINTER: Final = b"\xc0\x0c"  # to the question
# The flags, and one question: QR, no TC, opcode QUERY; AA, RD, RA, AD and CD as they like, no Z, NOERROR.
_HEADS: Final = {
    bytes((high, low, 0, 1)): high << 8 | low
    for high in (0x80, 0x81, 0x84, 0x85)
    for low in (0x00, 0x10, 0x20, 0x30, 0x80, 0x90, 0xA0, 0xB0)
}
# Type and class of questions whose RDATA cannot hold a compressed name -> the type; and how long it is, where always
# the same, as records have it.
_TYPES: Final = {
    b"\0\x01\0\1": (1, b"\0\4"),
    b"\0\x1c\0\1": (28, b"\0\x10"),
    b"\0\x10\0\1": (16, b""),
    b"\0\x40\0\1": (64, b""),
    b"\0\x41\0\1": (65, b""),
}


def read_plain(data: bytes, question: bytes) -> tuple[int, RRset] | None:
    """The flags (the whole second header word) of a message and the RRset that it answers this question section with.

    None unless it is NOERROR, and plain: that RRset is all of its answer, and the question is spelled like this. The
    RRset has at least one record, all of one TTL, which is as received. What stands behind the answer is not looked at.
    """
    at = HEADER_SIZE + len(question)
    flags, known = _HEADS.get(data[2:6]), _TYPES.get(question[-4:])
    if flags is None or known is None or data[HEADER_SIZE:at] != question:
        return None
    qtype, size = known
    ttl = data[at + 6 : at + 10]
    head = _POINTER + question[-4:] + ttl + size
    rdatas = []
    for _ in range(data[6] << 8 | data[7]):
        start = at + _RECORD
        if not data.startswith(head, at) or start > len(data):
            return None
        at = start + (data[start - 2] << 8 | data[start - 1])
        rdatas.append(data[start:at])
    if not rdatas or at > len(data):
        return None
    return flags, RRset(b"", qtype, int.from_bytes(ttl, "big"), tuple(rdatas), 1)
