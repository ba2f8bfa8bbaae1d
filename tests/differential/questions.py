"""Queries by chance, from a seed: for names that exist and names that nearly do, in every form that clients send."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.differential.names import Labels, nearly
from tests.support.dns_messages import DO, ECS, KEEPALIVE, Opt

RD: Final = 0x0100
_A, _NS, _CNAME, _SOA, _PTR, _MX, _TXT, _AAAA, _SRV, _ANY = 1, 2, 5, 6, 12, 15, 16, 28, 33, 255
_DS, _NSEC, _DNSKEY, _SVCB, _HTTPS, _CAA, _PRIVATE = 43, 47, 48, 64, 65, 257, 65400
_AXFR, _IXFR, _OPT, _NAPTR, _HINFO = 252, 251, 41, 35, 13
TYPES: Final = {
    **{"A": _A, "NS": _NS, "CNAME": _CNAME, "SOA": _SOA, "PTR": _PTR, "MX": _MX, "TXT": _TXT, "AAAA": _AAAA},
    **{"SRV": _SRV, "ANY": _ANY, "DS": _DS, "NSEC": _NSEC, "DNSKEY": _DNSKEY, "SVCB": _SVCB, "HTTPS": _HTTPS},
    **{"CAA": _CAA, "AXFR": _AXFR, "IXFR": _IXFR, "OPT": _OPT, "NAPTR": _NAPTR, "HINFO": _HINFO},
}
_TYPE_NAMES: Final = {number: name for name, number in TYPES.items()}

_USUAL: Final = (_A, _A, _A, _A, _AAAA, _AAAA, _SRV, _SRV, _PTR, _TXT)
_ODD: Final = (
    *(_NS, _CNAME, _CNAME, _SOA, _SOA, _MX, _ANY, _DS, _NSEC, _DNSKEY, _SVCB, _HTTPS, _HTTPS, _CAA, _PRIVATE),
    *(_AXFR, _IXFR, _OPT, _NAPTR, _HINFO, 0, 65535),
)
_USUAL_OF: Final[Mapping[str, Sequence[int]]] = {
    "reverse": (_PTR, _PTR, _PTR, _A),
    "ports": (_SRV, _SRV, _A, _AAAA),
    "options": (_TXT, _TXT, _TXT, _A),
    "types": (*range(1, 66), *range(99, 110), *range(256, 262), 32768, 32769, 65280),
}

_EACH_OF: Final[Mapping[str, Sequence[int]]] = {
    "reverse": (_PTR, _A),
    "services": (_A, _AAAA, _SRV, _CNAME),
}

_CLASSES: Final = (3, 4, 255, 254, 0, 2, 65280)  # CH, HS, ANY, NONE, none, the former CS, private
_FLAGS: Final = (0, RD | 0x20, RD | 0x10, RD | 0x30, RD | 0x40, RD | 0x0400, RD | 0x0200, RD | 0x80, RD | 0x0F)
_OPCODES: Final = (1, 2, 4, 5, 6, 15)

_SUBNET: Final = (ECS, b"\0\1\x18\0\x0a\1\0")
_OPTIONS: Final = (
    (3, b""),  # NSID
    (10, b"12345678"),  # COOKIE
    (10, b"123"),  # a malformed one
    (12, b"\0" * 20),  # PADDING
    (9, b""),  # EXPIRE
    (KEEPALIVE, b""),
    _SUBNET,
    (15, b"\0\0"),  # EDE, which no query should have
    (65001, b"local use"),
    (4242, b""),
)
_SIZES: Final = (0, 511, 512, 1232, 1232, 4096, 65535)


@dataclass(frozen=True, slots=True)
class Question:
    """One query, whole but for its id. `flags` has the opcode and all other bits of the second header word."""

    labels: Labels
    qtype: int
    qclass: int = 1
    flags: int = RD
    opts: tuple[Opt, ...] = ()
    tcp: bool = False
    tail: bytes = b""  # after the message's end

    def wire(self, ident: int) -> bytes:
        name = b"".join(bytes((len(label),)) + label for label in self.labels) + b"\0"
        head = struct.pack("!6H", ident, self.flags, 1, 0, 0, len(self.opts))
        return (
            head + name + struct.pack("!HH", self.qtype, self.qclass) + b"".join(map(Opt.wire, self.opts)) + self.tail
        )

    @property
    def opt(self) -> Opt | None:
        return self.opts[0] if self.opts else None

    @property
    def options(self) -> set[int]:
        return {code for opt in self.opts for code, _ in opt.options}

    @property
    def opcode(self) -> int:
        return self.flags >> 11 & 0x0F

    @property
    def lowered(self) -> Labels:
        return tuple(label.lower() for label in self.labels)

    def is_below(self, origin: Labels) -> bool:
        return self.lowered[len(self.labels) - len(origin) :] == origin if origin else True

    def __str__(self) -> str:
        name = ".".join(label.decode("latin-1").encode("unicode_escape").decode() for label in self.labels)
        qtype = _TYPE_NAMES.get(self.qtype, f"TYPE{self.qtype}")
        how = "TCP" if self.tcp else "UDP"
        more = f" +{len(self.tail)} octets" if self.tail else ""
        return f"{name}. {qtype} class {self.qclass} flags {self.flags:#06x} {how} {list(self.opts)}{more}"


def each_of(names: Mapping[str, Sequence[Labels]]) -> Iterator[Question]:
    """Plain questions over TCP, which no reply is too long for, for each name and usual type."""
    for sort, found in names.items():
        for labels in dict.fromkeys(found):
            for qtype in _EACH_OF.get(sort, (_A, _AAAA, _SRV)):
                yield Question(labels, qtype, opts=(Opt(4096),), tcp=True)


class Questions:
    """`names` by sort; all sorts are equally likely, whatever their numbers."""

    def __init__(self, names: Mapping[str, Sequence[Labels]], seed: int) -> None:
        self._names = [(sort, list(values)) for sort, values in names.items()]
        self._random = Random(seed)

    def take(self, count: int) -> Iterator[Question]:
        return (self._one() for _ in range(count))

    def _one(self) -> Question:
        random = self._random
        sort, names = random.choice(self._names)
        labels = random.choice(names)
        for _ in range(random.choices((0, 1, 2), (11, 8, 1))[0]):
            labels = nearly(labels, random)
        if sum(len(label) + 1 for label in labels) > 254:
            labels = labels[-3:]
        qtype = random.choice(_ODD) if random.random() < 0.25 else random.choice(_USUAL_OF.get(sort, _USUAL))
        return Question(
            labels,
            qtype,
            random.choice(_CLASSES) if random.random() < 0.02 else 1,
            self._flags(),
            self._opts(),
            random.random() < 0.15,
            b"\0" if random.random() < 0.002 else b"",
        )

    def _flags(self) -> int:
        random = self._random
        if random.random() < 0.01:
            return RD | random.choice(_OPCODES) << 11
        return random.choice(_FLAGS) if random.random() < 0.15 else RD

    def _opts(self) -> tuple[Opt, ...]:
        random = self._random
        if random.random() < 0.4:
            return ()
        options = random.choices(_OPTIONS, k=random.choice((0, 0, 0, 1, 2)))
        version = random.choice((1, 255)) if random.random() < 0.02 else 0
        flags = random.choice((0, 0, DO, DO, 0x4000, 0x0001))
        opt = Opt(random.choice(_SIZES), tuple(options), version, flags)
        return (opt, opt) if random.random() < 0.01 else (opt,)
