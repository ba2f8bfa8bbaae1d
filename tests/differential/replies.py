"""A reply as the facts that are compared, read without any code of topodns."""

import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

_OPT: Final = 41
_SOA: Final = 6
# Where a name begins that may be compressed: NS, MD, MF, CNAME, MB, MG, MR, PTR, DNAME, MX, SRV.
_NAMES_AT: Final = {2: 0, 3: 0, 4: 0, 5: 0, 7: 0, 8: 0, 9: 0, 12: 0, 39: 0, 15: 2, 33: 6}

_SHOWN: Final = 4  # records of a section, in a failed assertion

_head = struct.Struct("!6H")
_record = struct.Struct("!HHIH")


class Record(NamedTuple):
    """Names are in wire form, as spelled; a SOA's serial is left out, for it is each server's own time."""

    owner: bytes
    rtype: int
    rclass: int
    ttl: int
    rdata: bytes

    def __str__(self) -> str:
        return f"{self.owner!r} type {self.rtype} class {self.rclass} TTL {self.ttl} {self.rdata!r}"


@dataclass(frozen=True, slots=True)
class Reply:
    """`flags` is the second header word without the rcode; `rcode` has EDNS's eight bits too. Sections are sorted."""

    rcode: int
    flags: int
    question: bytes
    answer: tuple[Record, ...]
    authority: tuple[Record, ...]
    additional: tuple[Record, ...]
    edns: tuple[int, int] | None  # version and flags
    size: int | None
    options: tuple[tuple[int, bytes], ...]
    octets: int

    @property
    def truncated(self) -> bool:
        return bool(self.flags & 0x0200)

    def __str__(self) -> str:
        parts = [f"rcode {self.rcode} flags {self.flags:#06x} EDNS {self.edns} size {self.size} {list(self.options)}"]
        for name in ("answer", "authority", "additional"):
            records = getattr(self, name)
            parts += [f"    {name}: {record}" for record in records[:_SHOWN]]
            parts += [f"    {name}: {len(records) - _SHOWN} more"] if len(records) > _SHOWN else []
        return "\n".join(parts)


def read_reply(wire: bytes) -> Reply:
    """Raises IndexError or struct.error for octets that are no message."""
    _, flags, questions, *counts = _head.unpack_from(wire)
    at = _head.size
    for _ in range(questions):
        _, at = _name(wire, at)
        at += 4
    question = wire[_head.size : at]
    sections = []
    for count in counts:
        records, at = _records(wire, at, count)
        sections.append(records)
    answer, authority, additional = sections
    opt = next((record for record in additional if record.rtype == _OPT), None)
    ttl = opt.ttl if opt is not None else 0
    return Reply(
        (ttl >> 24) << 4 | flags & 0x0F,
        flags & 0xFFF0,
        question,
        tuple(sorted(answer)),
        tuple(sorted(authority)),
        tuple(sorted(record for record in additional if record is not opt)),
        (ttl >> 16 & 0xFF, ttl & 0xFFFF) if opt is not None else None,
        opt.rclass if opt is not None else None,
        tuple(sorted(_options(opt.rdata))) if opt is not None else (),
        len(wire),
    )


def _records(wire: bytes, at: int, count: int) -> tuple[list[Record], int]:
    records = []
    for _ in range(count):
        owner, at = _name(wire, at)
        rtype, rclass, ttl, size = _record.unpack_from(wire, at)
        at += _record.size
        records.append(Record(owner, rtype, rclass, ttl, _rdata(wire, at, size, rtype)))
        at += size
    return records, at


def _rdata(wire: bytes, at: int, size: int, rtype: int) -> bytes:
    """With its names written out."""
    if rtype == _SOA:
        primary, after = _name(wire, at)
        mailbox, after = _name(wire, after)
        return primary + mailbox + wire[after + 4 : at + size]
    skip = _NAMES_AT.get(rtype)
    if skip is None:
        return wire[at : at + size]
    return wire[at : at + skip] + _name(wire, at + skip)[0]


def _name(wire: bytes, at: int) -> tuple[bytes, int]:
    """The name there without compression, and where it ends."""
    labels, end = b"", 0
    while length := wire[at]:
        if length >= 0xC0:
            end = end or at + 2
            target = (length & 0x3F) << 8 | wire[at + 1]
            assert target < at, "a pointer that does not go backwards"
            at = target
            continue
        labels += wire[at : at + 1 + length]
        at += 1 + length
    return labels + b"\0", end or at + 1


def _options(rdata: bytes) -> list[tuple[int, bytes]]:
    options, at = [], 0
    while at < len(rdata):
        code, size = struct.unpack_from("!HH", rdata, at)
        options.append((code, rdata[at + 4 : at + 4 + size]))
        at += 4 + size
    return options


def wire_labels(name: bytes) -> tuple[bytes, ...]:
    """Of a name without compression, leaf first, without the root."""
    labels, at = [], 0
    while length := name[at]:
        labels.append(name[at + 1 : at + 1 + length])
        at += 1 + length
    return tuple(labels)
