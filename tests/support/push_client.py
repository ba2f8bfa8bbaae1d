"""A client of DNS Push Notifications written from RFC 8490 and RFC 8765 alone, struct by struct.

It shares no wire code with topodns, so that both must have read the RFCs in the same way. `python -m
tests.support.push_client HOST PORT NAME A|AAAA [SOURCE]` prints the records of a name and each change of them.
"""

import socket
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from itertools import islice
from typing import Final

PATIENCE: Final = 90.0  # seconds, as in `event_loops`; this program must run without what tests need

KEEPALIVE, RETRY_DELAY, PADDING = 1, 2, 3  # RFC 8490 section 10.3
SUBSCRIBE, PUSH, UNSUBSCRIBE, RECONFIRM = 0x40, 0x41, 0x42, 0x43  # RFC 8765 section 8
NODE_NAME: Final = 0xF8EE  # for local use
A, CNAME, SOA, PTR, TXT, AAAA, SRV, ANY = 1, 5, 6, 12, 16, 28, 33, 255
IN: Final = 1
NOERROR, FORMERR, SERVFAIL, NOTIMP, REFUSED, NOTAUTH, DSOTYPENI = 0, 1, 2, 4, 5, 9, 11
REMOVED, ALL_REMOVED = 0xFFFFFFFF, 0xFFFFFFFE

_HEADER: Final = struct.Struct("!HHHHHH")
_TLV: Final = struct.Struct("!HH")
_RECORD: Final = struct.Struct("!HHIH")
_DSO: Final = 6 << 11
_QR: Final = 0x8000


def wire(name: str) -> bytes:
    """A name, without compression, with its final zero."""
    return b"".join(bytes([len(label)]) + label.encode() for label in name.strip(".").split(".") if label) + b"\0"


def dso(ident: int, *tlvs: tuple[int, bytes], flags: int = 0) -> bytes:
    """A DSO message without a section of records (RFC 8490 section 5.4)."""
    data = b"".join(_TLV.pack(kind, len(value)) + value for kind, value in tlvs)
    return _HEADER.pack(ident, _DSO | flags, 0, 0, 0, 0) + data


@dataclass(frozen=True, slots=True)
class Message:
    """What the server sends: a response (`rcode`), or a message of its own (`ident` 0)."""

    ident: int
    rcode: int
    response: bool
    tlvs: tuple[tuple[int, bytes], ...]
    octets: bytes

    def tlv(self, kind: int) -> bytes | None:
        return next((data for found, data in self.tlvs if found == kind), None)


@dataclass(frozen=True, slots=True)
class Notified:
    """One change notification of a PUSH (RFC 8765 section 6.3.1); addresses as text, other RDATA as octets."""

    name: str
    rtype: int
    ttl: int
    data: str | bytes


def read(octets: bytes) -> Message:
    """Decode a DSO message; fails for one that the RFCs forbid a server to send."""
    ident, flags, *counts = _HEADER.unpack_from(octets)
    assert flags >> 11 & 0xF == 6
    assert counts == [0, 0, 0, 0]
    at, tlvs = _HEADER.size, []
    while at < len(octets):
        kind, length = _TLV.unpack_from(octets, at)
        at += _TLV.size
        assert at + length <= len(octets)
        tlvs.append((kind, octets[at : at + length]))
        at += length
    response = bool(flags & _QR)
    assert bool(ident) is response, "a server sends responses and unidirectional messages"
    return Message(ident, flags & 0xF, response, tuple(tlvs), octets)


def changes(message: Message) -> list[Notified]:
    """The notifications of a PUSH; fails for one that the RFC forbids."""
    assert len(message.octets) <= 16_382
    kind, length = _TLV.unpack_from(message.octets, _HEADER.size)
    assert (message.ident, kind) == (0, PUSH)
    at, end = _HEADER.size + _TLV.size, _HEADER.size + _TLV.size + length
    assert at < end, "a PUSH has at least one change"
    found = []
    while at < end:
        name, at = _name(message.octets, at)
        rtype, rclass, ttl, size = _RECORD.unpack_from(message.octets, at)
        at += _RECORD.size
        rdata = message.octets[at : at + size]
        at += size
        assert rclass == IN
        assert ttl < 1 << 31 or ttl in (REMOVED, ALL_REMOVED)
        assert ttl != ALL_REMOVED or not rdata
        text = str(ip_address(rdata)) if rtype in (A, AAAA) and rdata else rdata
        found.append(Notified(name, rtype, ttl, text))
    assert at == end
    return found


def _name(octets: bytes, at: int) -> tuple[str, int]:
    labels, end = [], 0
    while length := octets[at]:
        if length >= 0xC0:
            end = end or at + 2
            target = (length & 0x3F) << 8 | octets[at + 1]
            assert 12 <= target < at
            at = target
        else:
            labels.append(octets[at + 1 : at + 1 + length].decode())
            at += 1 + length
    return ".".join(labels) + ".", end or at + 1


@dataclass
class PushedSets:
    """What a client has been pushed. `records`: by (name, type), what the pushes so far leave: data -> TTL."""

    records: dict[tuple[str, int], dict[str | bytes, int]] = field(default_factory=dict)
    pushes: int = 0
    idents: int = 0

    def take(self, message: Message) -> None:
        """Apply a message if it is a PUSH."""
        if message.response or message.tlv(PUSH) is None:
            return
        self.pushes += 1
        for change in changes(message):
            held = self.records.setdefault((change.name, change.rtype), {})
            if change.ttl == ALL_REMOVED:
                held.clear()
            elif change.ttl == REMOVED:
                held.pop(change.data, None)
            else:
                held[change.data] = change.ttl

    def new_ident(self) -> int:
        self.idents += 1
        return self.idents

    def addresses(self, name: str, rtype: int = A) -> list[str]:
        """The addresses that the pushes so far leave."""
        return sorted(str(data) for data in self.records.get((name.strip(".") + ".", rtype), {}))


class PushClient(PushedSets):
    """One connection."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self.sock = sock
        self._data = b""

    def send(self, *messages: bytes) -> None:
        self.sock.sendall(b"".join(struct.pack("!H", len(message)) + message for message in messages))

    def octets(self, patience: float = PATIENCE) -> bytes:
        """The next message. Raises TimeoutError after `patience` seconds, ConnectionError if there is none."""
        self.sock.settimeout(patience)
        while len(self._data) < 2 or len(self._data) < 2 + int.from_bytes(self._data[:2], "big"):
            part = self.sock.recv(1 << 16)
            if not part:
                raise ConnectionError("closed by the server")
            self._data += part
        size = int.from_bytes(self._data[:2], "big")
        message, self._data = self._data[2 : 2 + size], self._data[2 + size :]
        return message

    def message(self, patience: float = PATIENCE) -> Message:
        """The next DSO message; a PUSH is applied to `records`."""
        message = read(self.octets(patience))
        self.take(message)
        return message

    def request(self, *tlvs: tuple[int, bytes]) -> Message:
        """The response to a request; pushes that come before it are applied."""
        ident = self.new_ident()
        self.send(dso(ident, *tlvs))
        return self.response(ident)

    def response(self, ident: int) -> Message:
        while not (message := self.message()).response:
            pass
        assert message.ident == ident
        return message

    def keepalive(self) -> Message:
        """The response to a Keepalive."""
        return self.request((KEEPALIVE, struct.pack("!II", 15_000, 15_000)))

    def begin(self) -> tuple[int, int]:
        """A Keepalive; (inactivity timeout, keepalive interval) of the server, in milliseconds."""
        response = self.keepalive()
        assert response.rcode == NOERROR
        data = response.tlv(KEEPALIVE)
        assert data is not None
        inactivity, keepalive = struct.unpack("!II", data)
        assert keepalive >= 10_000
        return inactivity, keepalive

    def subscribe(self, name: str, rtype: int = A, node: str = "", rclass: int = IN) -> Message:
        """The response to a SUBSCRIBE."""
        return self.request(*subscription(name, rtype, node, rclass))

    def subscribe_all(self, names: Iterable[str], at_once: int = 200) -> list[int]:
        """The rcodes of the responses to SUBSCRIBEs for A, so many of them in each write.

        They are in the order of the names; the responses come in any order.
        """
        rcodes, left = [], iter(names)
        while batch := {self.new_ident(): name for name in islice(left, at_once)}:
            self.send(*(dso(ident, *subscription(name)) for ident, name in batch.items()))
            found: dict[int, int] = {}
            while len(found) < len(batch):
                message = self.message()
                if message.response:
                    found[message.ident] = message.rcode
            rcodes += [found[ident] for ident in batch]
        return rcodes

    def push(self, patience: float = PATIENCE) -> list[Notified]:
        """The changes of the next message, which is a PUSH."""
        message = self.message(patience)
        assert not message.response
        return changes(message)

    def comes(self, name: str, *expected: str, rtype: int = A, patience: float = PATIENCE) -> None:
        """Take messages until they leave exactly these addresses. Raises TimeoutError if none comes for so long."""
        while self.addresses(name, rtype) != sorted(expected):
            self.message(patience)

    def is_silent(self, seconds: float) -> bool:
        """Whether nothing comes for so long."""
        try:
            self.octets(seconds)
        except TimeoutError:
            return True
        return False

    def is_closed(self, patience: float = PATIENCE) -> bool:
        """Whether the server closes the connection; messages before that are dropped."""
        try:
            while True:
                self.octets(patience)
        except TimeoutError:
            return False
        except ConnectionError:
            return True


def subscription(name: str, rtype: int = A, node: str = "", rclass: int = IN) -> list[tuple[int, bytes]]:
    """The TLVs of a SUBSCRIBE, with the name of the client's Node if there is one."""
    tlvs = [(SUBSCRIBE, wire(name) + struct.pack("!HH", rtype, rclass))]
    return [*tlvs, (NODE_NAME, node.encode())] if node else tlvs


def unsubscribe(ident: int) -> bytes:
    return dso(0, (UNSUBSCRIBE, struct.pack("!H", ident)))


def reconfirm(name: str, rtype: int, rdata: bytes) -> bytes:
    return dso(0, (RECONFIRM, wire(name) + struct.pack("!HH", rtype, IN) + rdata))


@contextmanager
def push_client(at: tuple[str, int], source: str = "", receive_buffer: int = 0) -> Iterator[PushClient]:
    """A connection from this address."""
    with socket.socket(socket.AF_INET6 if ":" in at[0] else socket.AF_INET) as sock:
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.settimeout(PATIENCE)
        if source:
            sock.bind((source, 0))
        sock.connect(at)
        yield PushClient(sock)


def _watch(host: str, port: str, name: str, rtype: str, source: str = "") -> None:
    """Print the records of a name (A, AAAA) and each change of them, until the server closes or a signal comes."""
    with push_client((host, int(port)), source) as client:
        client.begin()
        response = client.subscribe(name, {"A": A, "AAAA": AAAA}[rtype])
        print(f"{name} {rtype}: rcode {response.rcode}", flush=True)
        while response.rcode == NOERROR:
            try:
                notified = client.push(patience=10)
            except TimeoutError:
                client.begin()  # a keepalive
                continue
            for change in notified:
                sign = "-" if change.ttl in (REMOVED, ALL_REMOVED) else "+"
                data = str(change.data) if change.data else "all"
                print(sign, data, *(("ttl", change.ttl) if sign == "+" else ()), flush=True)


if __name__ == "__main__":
    _watch(*sys.argv[1:])
