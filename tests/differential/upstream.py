"""The DNS outside of the cluster: a server whose answers follow from the name alone.

Of `<word>...example.org` and `<word>...example.net` the word decides: see `_ANSWERS`. Any other name does not exist.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from tests.support.faulty_upstream import Act, Asked, BadUpstream, bad_upstream

TTL, MINIMUM = 3000, 600  # seconds, of records and of denials (RFC 2308)
_A, _NS, _CNAME, _SOA, _TXT, _AAAA, _MX, _SRV, _OPT, _ANY = 1, 2, 5, 6, 16, 28, 15, 33, 41, 255
_ORIGIN: Final = b"\x07example\x03org\x00"
_ORIGINS: Final = (_ORIGIN, b"\x07example\x03net\x00")  # the second one beside a zone file of the first
_RDATA: Final[Mapping[int, bytes]] = {
    _A: b"\xc6\x33\x64\x01",
    _AAAA: b"\x20\x01\x0d\xb8" + bytes(11) + b"\x01",
    _TXT: b"\x04text",
    _MX: b"\0\x0a\x04mail" + _ORIGIN,
    _NS: b"\x02ns" + _ORIGIN,
    _SRV: b"\0\1\0\2\0\x50\x03www" + _ORIGIN,
}
_NOT_FOLLOWED: Final = (_CNAME, _ANY)
_QR_RA: Final = 0x8080
_TC, _AD, _RD_CD = 0x0200, 0x0020, 0x0110
_SERVFAIL, _NXDOMAIN, _REFUSED = 2, 3, 5
_UDP_SIZE: Final = 512

REPEATED: Final = (3, 8, 65001, 4242)  # codes of the options that "options" repeats: NSID, Client Subnet, local ones

WORDS: Final = ("www", "many", "big", "alias", "chain", "dangling", "missing", "broken", "refusing", "signed", "empty")
LIES: Final = ("foreign", "delegated")


class _Asked:
    """The one question of a message, and the reply to it in pieces."""

    def __init__(self, message: bytes) -> None:
        at = 12
        while message[at]:
            at += 1 + message[at]
        self.name = message[12 : at + 1]
        self.qtype, _ = struct.unpack_from("!HH", message, at + 1)
        self.question = message[12 : at + 5]
        self.flags = _QR_RA | int.from_bytes(message[2:4], "big") & _RD_CD
        self.ident = message[:2]
        self.answer: list[bytes] = []
        self.authority: list[bytes] = []
        self.opt = b""  # of the reply
        self.options = list(_options(message[at + 5 + 11 :]))  # nothing but an OPT record is behind the question
        self.edns = len(message) > at + 5

    def add(self, rtype: int, rdata: bytes, owner: bytes = b"\xc0\x0c", ttl: int = TTL) -> None:
        self.answer.append(_record(owner, rtype, rdata, ttl))

    def add_usual(self, owner: bytes = b"\xc0\x0c") -> None:
        """The record of the type asked for; without one for this type, none."""
        if self.qtype in _RDATA:
            self.add(self.qtype, _RDATA[self.qtype], owner)
        else:
            self.deny(0)

    def deny(self, rcode: int) -> None:
        """No such name, or no such type, with the SOA that says for how long."""
        self.flags |= rcode
        numbers = struct.pack("!5I", 1, 7200, 1800, 86400, MINIMUM)
        owner = _ORIGIN if self.name.lower().endswith(_ORIGIN) else b"\0"
        self.authority.append(_record(owner, _SOA, b"\x02ns" + _ORIGIN + b"\x04root" + _ORIGIN + numbers, TTL))

    def reply(self, limit: int) -> bytes:
        """In at most so many octets, else empty with TC."""
        head = struct.pack("!5H", self.flags, 1, len(self.answer), len(self.authority), bool(self.opt))
        whole = b"".join((self.ident, head, self.question, *self.answer, *self.authority, self.opt))
        if len(whole) <= limit:
            return whole
        return self.ident + struct.pack("!5H", self.flags | _TC, 1, 0, 0, 0) + self.question


def _options(data: bytes) -> Iterator[tuple[int, bytes]]:
    while data:
        code, length = struct.unpack_from("!HH", data)
        yield code, data[4 : 4 + length]
        data = data[4 + length :]


def _record(owner: bytes, rtype: int, rdata: bytes, ttl: int) -> bytes:
    return owner + struct.pack("!HHIH", rtype, 1, ttl, len(rdata)) + rdata


def _many(asked: _Asked) -> None:
    for number in range(5):
        asked.add(_A, bytes((198, 51, 100, number)), ttl=TTL + number) if asked.qtype == _A else None
    if asked.qtype != _A:
        asked.add_usual()


def _big(asked: _Asked) -> None:
    for number in range(40):
        asked.add(_TXT, b"\x20" + bytes((65 + number % 26,)) * 32) if asked.qtype == _TXT else None
    if asked.qtype != _TXT:
        asked.add_usual()


def _alias(asked: _Asked) -> None:
    target = b"\x03www" + _ORIGIN
    asked.add(_CNAME, target)
    if asked.qtype not in _NOT_FOLLOWED:
        asked.add_usual(target)


def _chain(asked: _Asked) -> None:
    middle, target = b"\x05alias" + _ORIGIN, b"\x03www" + _ORIGIN
    asked.add(_CNAME, middle)
    if asked.qtype not in _NOT_FOLLOWED:
        asked.add(_CNAME, target, middle, TTL // 2)
        asked.add_usual(target)


def _dangling(asked: _Asked) -> None:
    asked.add(_CNAME, b"\x07missing" + _ORIGIN)
    if asked.qtype not in _NOT_FOLLOWED:
        asked.deny(_NXDOMAIN)


def _delegated(asked: _Asked) -> None:
    """With the name servers, as many servers send them unasked."""
    asked.add_usual()
    if asked.qtype in _RDATA:
        asked.authority.append(_record(_ORIGIN, _NS, _RDATA[_NS], TTL))


def _foreign(asked: _Asked) -> None:
    """With a record that was not asked for."""
    asked.add_usual()
    asked.add(_A, _RDATA[_A], b"\x04bank\x07example\x03com\x00")


def _broken(asked: _Asked) -> None:
    asked.flags |= _SERVFAIL


def _refusing(asked: _Asked) -> None:
    asked.flags |= _REFUSED


def _signed(asked: _Asked) -> None:
    asked.flags |= _AD
    asked.add_usual()


def _repeat_options(asked: _Asked) -> None:
    """The options of REPEATED that came with the query: as TXT, and in the OPT record."""
    options = [(code, data) for code, data in asked.options if code in REPEATED]
    if asked.edns:
        rdata = b"".join(struct.pack("!HH", code, len(data)) + data for code, data in options)
        asked.opt = b"\0" + struct.pack("!HHIH", _OPT, 1232, 0, len(rdata)) + rdata
    if asked.qtype != _TXT:
        asked.add_usual()
        return
    texts = [f"{code}={data.hex()}" for code, data in options] if asked.edns else ["no EDNS"]
    for text in texts or ["none"]:
        asked.add(_TXT, bytes((len(text),)) + text.encode())


_ANSWERS: Final[Mapping[bytes, Callable[[_Asked], None]]] = {
    b"www": _Asked.add_usual,
    b"many": _many,
    b"big": _big,
    b"alias": _alias,
    b"chain": _chain,
    b"dangling": _dangling,
    b"broken": _broken,
    b"refusing": _refusing,
    b"signed": _signed,
    b"delegated": _delegated,
    b"foreign": _foreign,
    b"empty": lambda asked: asked.deny(0),
    b"options": _repeat_options,
}


def _behaviour(arrived: Asked) -> list[Act]:
    asked = _Asked(arrived.message)
    word = asked.name[1 : 1 + asked.name[0]].lower()
    answer = _ANSWERS.get(word) if asked.name.lower().endswith(_ORIGINS) else None
    if answer is None:
        asked.deny(_NXDOMAIN)
    else:
        answer(asked)
    reply = asked.reply(_UDP_SIZE if arrived.transport == "udp" else 65535)
    return [Act(lambda: arrived.channel.send(reply))]


@contextmanager
def upstream() -> Iterator[BadUpstream]:
    with bad_upstream(_behaviour) as server:
        yield server
