"""The replies that most questions get, read without taking them apart: records of the name and type asked for, no more.

Anything out of the ordinary is `reply`'s; nothing here raises.
"""

from typing import Final, NamedTuple

from topodns.dns.wire import HEADER_SIZE

_TAIL: Final = 4  # type and class
_RECORD: Final = 12  # octets of a record before its RDATA, its owner being a pointer
_TTL_AT: Final = 6
_POINTER: Final = b"\xc0\x0c"  # to the question
_ONE: Final = b"\0\1"
# QR, no TC, opcode QUERY; AA and RD as they like. Then: RA, AD and CD as they like, no Z, NOERROR.
_FLAGS_HIGH: Final = frozenset({0x80, 0x81, 0x84, 0x85})
_FLAGS_LOW: Final = frozenset({0x00, 0x10, 0x20, 0x30, 0x80, 0x90, 0xA0, 0xB0})
# Types whose RDATA cannot hold a compressed name, and how long it is where that is fixed.
_SIZES: Final = {b"\0\x01": 4, b"\0\x1c": 16, b"\0\x10": 0, b"\0\x41": 0, b"\0\x40": 0}


class PlainReply(NamedTuple):
    """NOERROR with one RRset that is the question's."""

    flags: int  # the whole second header word
    ttl: int  # seconds, as received
    rdatas: tuple[bytes, ...]  # at least one


def read_plain(data: bytes, question: bytes) -> PlainReply | None:
    """What a message answers to this question section, spelled like this, if that is plain; else None.

    What stands behind the answer is not looked at.
    """
    size = _SIZES.get(question[-_TAIL:-2])
    at = HEADER_SIZE + len(question)
    if size is None or len(data) < at:
        return None
    high, low = data[2], data[3]
    if high not in _FLAGS_HIGH or low not in _FLAGS_LOW or data[4:6] != _ONE or data[HEADER_SIZE:at] != question:
        return None
    head = _POINTER + question[-_TAIL:] + data[at + _TTL_AT : at + _TTL_AT + 4]
    rdatas = []
    for _ in range(data[6] << 8 | data[7]):
        start = at + _RECORD
        if data[at : start - 2] != head or start > len(data):
            return None
        at = start + (data[start - 2] << 8 | data[start - 1])
        rdatas.append(data[start:at])
        if size and at - start != size:
            return None
    if not rdatas or at > len(data):
        return None
    return PlainReply(high << 8 | low, int.from_bytes(head[-4:], "big"), tuple(rdatas))
