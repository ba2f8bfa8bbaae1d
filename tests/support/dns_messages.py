"""DNS messages as octets and as text, made and read apart from topodns's own wire code."""

import random
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from dnslib import CLASS, QTYPE, RCODE, DNSRecord

RD: Final = 0x0100
DO: Final = 0x8000
OPT: Final = 41
ECS: Final = 8
NODE_IDENTITY: Final = 65518
KEEPALIVE: Final = 11

EDE: Final = 15

Options = Sequence[tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class Opt:
    """The OPT record of a query."""

    size: int = 1232
    options: Options = ()
    version: int = 0
    flags: int = 0

    def wire(self) -> bytes:
        rdata = b"".join(struct.pack("!HH", code, len(data)) + data for code, data in self.options)
        return b"\0" + struct.pack("!HHBBHH", OPT, self.size, 0, self.version, self.flags, len(rdata)) + rdata


def query(question: str, opt: Opt | None = None, flags: int = RD, ident: int | None = None) -> bytes:
    """The message that asks `NAME [CLASS] TYPE` (types also as TYPE1000)."""
    name, *qclass, qtype = question.split()
    labels = [label.encode() for label in name.split(".") if label]
    qname = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    ident = random.randrange(1 << 16) if ident is None else ident
    header = struct.pack("!HHHHHH", ident, flags, 1, 0, 0, 0 if opt is None else 1)
    tail = struct.pack("!HH", _type_number(qtype), CLASS.reverse[qclass[0]] if qclass else 1)
    return header + qname + tail + (b"" if opt is None else opt.wire())


def subnet(text: str) -> tuple[int, bytes]:
    """The ECS option for `ADDRESS/LENGTH` (RFC 7871 section 6)."""
    address, _, length = text.partition("/")
    packed, bits = ip_address(address).packed, int(length)
    return ECS, struct.pack("!HBB", 1 if len(packed) == 4 else 2, bits, 0) + packed[: (bits + 7) // 8]


def node_identity(name: str) -> tuple[int, bytes]:
    return NODE_IDENTITY, name.encode()


def _type_number(name: str) -> int:
    return int(name[4:]) if name.startswith("TYPE") else int(QTYPE.reverse[name])


class Reply:
    """A message that came back. Records are lines such as `web.shop.svc.cluster.local. 5 IN A 10.96.10.20`."""

    def __init__(self, wire: bytes | None) -> None:
        assert wire is not None, "no reply"
        self.wire = wire
        message = DNSRecord.parse(wire)
        self.ident, self.flags, self.questions = struct.unpack_from("!HHH", wire)
        self.answer = _lines(message.rr)
        self.authority = _lines(message.auth)
        self.additional = _lines(message.ar)
        self._opt = next((record for record in message.ar if record.rtype == OPT), None)
        extended = self._opt.ttl >> 24 << 4 if self._opt is not None else 0
        self.rcode: str = "BADVERS" if extended == 16 else RCODE.get(message.header.rcode)

    @property
    def data(self) -> list[str]:
        """The RDATA of the answers, sorted."""
        return sorted(line.split(maxsplit=4)[4] for line in self.answer)

    @property
    def flag_names(self) -> set[str]:
        names = {"qr": 0x8000, "aa": 0x0400, "tc": 0x0200, "rd": 0x0100, "ra": 0x0080, "ad": 0x0020, "cd": 0x0010}
        return {name for name, bit in names.items() if self.flags & bit}

    @property
    def options(self) -> Mapping[int, bytes] | None:
        """The EDNS options; None without an OPT record."""
        return None if self._opt is None else {option.code: bytes(option.data) for option in self._opt.rdata}

    @property
    def edns_version(self) -> int:
        assert self._opt is not None
        return int(self._opt.ttl) >> 16 & 0xFF

    @property
    def edns_flags(self) -> int:
        assert self._opt is not None
        return int(self._opt.ttl) & 0xFFFF

    @property
    def edns_size(self) -> int:
        assert self._opt is not None
        return int(self._opt.rclass)

    @property
    def ede(self) -> str:
        """The text of the Extended DNS Error, "" without one."""
        return (self.options or {}).get(EDE, b"\0\0")[2:].decode()

    def __str__(self) -> str:
        """For a failed assertion."""
        return f"{self.rcode} {sorted(self.flag_names)} {self.answer} {self.authority} {self.additional} {self.options}"


def _lines(records: Sequence[object]) -> list[str]:
    return [" ".join(str(record.toZone()).split()) for record in records if record.rtype != OPT]  # type: ignore[attr-defined]  # dnslib has no types
