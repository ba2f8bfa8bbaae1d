"""The short way of a plain question to a `forward` and back: octets in, octets out, with no `Query` made of them.

Most of what a cluster asks about the outside is plain: an address, in lower case, with EDNS without options or none. In
a server block where nothing but `cache`, `loop`, `loadbalance` and the origins of `kubernetes` stand before the
`forward`, such a question means the same to all steps, and they need not be asked one by one. Whatever is not plain,
on the way there or back, goes the long way, with the same result: tests hold both ways equal.
"""

import logging
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from topodns.dns.message import Flag, Query, RRClass, RRset, RRType
from topodns.dns.names import Name, name_wire
from topodns.dns.wire import HEADER_SIZE
from topodns.resolve.cache import ResponseCache
from topodns.resolve.course import Outcome
from topodns.resolve.forward import Answer, Flight, Forwarding, plain_message
from topodns.resolve.loadbalance import LoadBalancer
from topodns.resolve.loop import LoopGuard
from topodns.resolve.step import Client, Resolution
from topodns.resolve.tally import Cell, Kind, Tally, type_label
from topodns.settings.server import ServerBlock

log = logging.getLogger(__name__)

_RD, _AD, _CD = int(Flag.RD), int(Flag.AD), int(Flag.CD)
_QR: Final = int(Flag.QR)
_TC: Final = int(Flag.TC)
_DO: Final = 0x8000
_TAIL: Final = 4  # octets of type and class
_OPT_SIZE: Final = 11
_MIN_UDP: Final = 512
_MAX_TCP: Final = 0xFFFF
_MAX_NAME: Final = 255
_MAX_CELLS: Final = 4096

_header = struct.Struct("!HHHHH")  # without the id
_record_head = struct.Struct("!HHHIH")
_opt_record = struct.Struct("!BHHIH")

# All that a plain question has between its id and its name -> its flags, and whether an OPT record follows.
_HEADS: Final = {
    _header.pack(flags, 1, 0, 0, opt): (flags, opt)
    for flags in (rd | ad | cd for rd in (0, _RD) for ad in (0, _AD) for cd in (0, _CD))
    for opt in (0, 1)
}
# Address records: all of one size, and no names in them. Other types are rarer than that they were worth it.
_TYPES: Final = {struct.pack("!HH", rtype, RRClass.IN): int(rtype) for rtype in (RRType.A, RRType.AAAA)}
_OPT_BEGIN: Final = b"\0\0\x29"
# An OPT record behind its payload size: no extended rcode, version 0, no options -> DO.
_OPT_ENDS: Final = {b"\0\0\0\0\0\0": 0, b"\0\0\x80\0\0\0": _DO}

_BYSTANDERS: Final = {
    *("bind", "bufsize", "cancel", "debug", "errors", "health", "metadata", "multisocket", "pprof", "prometheus"),
    *("ready", "reload", "timeouts"),
}
_PASSED: Final = {"cache", "forward", "kubernetes", "loadbalance", "loop", "topology"}


class Plain(NamedTuple):
    """A plain question, and who asked it when."""

    data: bytes
    flags: int  # RD, AD and CD
    question: bytes  # the section, in lower case
    edns: int  # 1 with an OPT record, else 0
    dnssec_ok: int  # its DO bit where it stands
    limit: int  # octets that the reply may have
    address: bytes
    port: int
    started: float


@dataclass(frozen=True, slots=True)
class Road:
    """What a plain question passes in one server block, which is the one for the root."""

    forwarding: Forwarding
    cache: ResponseCache | None
    guard: LoopGuard | None
    balancer: LoadBalancer | None
    elsewhere: tuple[bytes, ...]  # ends of names (wire form) that are not for the `forward`
    label: str  # of the block, for its metrics
    payload_size: int

    def takes(self, address: bytes) -> bool:
        """Whether a question of this client would be forwarded now. If not, it is the long way's to say what then."""
        return (self.guard is None or not self.guard.looping) and self.forwarding.has_room(address)

    def resolution(self, answer: Answer, query: Query, client: Client) -> Resolution:
        """What the chain would have made of this answer."""
        resolution = self.forwarding.resolution(answer)
        if self.cache is not None:
            resolution = self.cache.arrived(query, client, resolution)
        return resolution if self.balancer is None else self.balancer(query, client, resolution)


def is_road(block: ServerBlock) -> bool:
    """Whether names beyond the origins of `kubernetes` meet nothing in this block that a `Road` does not have."""
    if len(block.forward) != 1 or not set(block.directives) <= _BYSTANDERS | _PASSED:
        return False
    (forward,) = block.forward
    kept = () if block.cache is None else (*block.cache.success.disabled, *block.cache.denial.disabled)
    known = () if block.kubernetes is None else block.kubernetes.origins
    everywhere = block.cache is None or () in block.cache.origins
    return () in forward.origins and not forward.excepted and everywhere and set(kept) <= set(known)


def ends_of(names: tuple[Name, ...]) -> tuple[bytes, ...]:
    """How names at and below these end."""
    return tuple(map(name_wire, names))


class Relay:
    """The short way through one socket. `slowly` concludes what came back for a question and is not plain."""

    def __init__(
        self,
        road: Road,
        tally: Tally,
        clock: Callable[[], float],
        slowly: Callable[[Plain, Answer], bytes | None],
    ) -> None:
        self._road = road
        self._memory = road.cache.memory if road.cache is not None else None
        self._tally = tally
        self._udp = tally.transport == "udp"
        self._clock = clock
        self._slowly = slowly
        self._cells: dict[tuple[bytes, int, int, int], Cell] = {}

    def __call__(self, data: bytes, address: bytes, port: int) -> Outcome[bytes | None] | None:
        """The outcome of a plain question; None for whatever is to go the long way."""
        plain = self._read(data, address, port)
        if plain is None or not self._road.takes(address):
            return None
        if self._memory is not None and self._memory.knows(_cache_key(plain)):
            return None
        reply: Outcome[bytes | None] = Outcome()
        self._take_off(plain).outcome.then(partial(self._land, plain, reply))
        return reply

    def _read(self, data: bytes, address: bytes, port: int) -> Plain | None:
        head = _HEADS.get(data[2:HEADER_SIZE])
        if head is None:
            return None
        at, size = HEADER_SIZE, len(data)
        while at < size and (octet := data[at]):
            if octet > 63:
                return None
            at += 1 + octet
        end = at + 1 + _TAIL
        question = data[HEADER_SIZE:end]
        name = question[:-_TAIL]
        if end > size or question[-_TAIL:] not in _TYPES or len(name) > _MAX_NAME or name != name.lower():
            return None
        if name.endswith(self._road.elsewhere):
            return None
        flags, edns = head
        limit = self._limit(data[end:])
        if limit is None or edns != (end != size):
            return None
        dnssec_ok = _OPT_ENDS[data[end + 5 :]] if edns else 0
        return Plain(data, flags, question, edns, dnssec_ok, limit, address, port, self._clock())

    def _limit(self, opt: bytes) -> int | None:
        """How long the reply to a question with this OPT record, or b"", may be; None for another record."""
        if opt and (opt[:3] != _OPT_BEGIN or opt[5:] not in _OPT_ENDS):
            return None
        if not self._udp:
            return _MAX_TCP
        return max(_MIN_UDP, min(opt[3] << 8 | opt[4], self._road.payload_size)) if opt else _MIN_UDP

    def _take_off(self, plain: Plain) -> Flight:
        # What is kept may be for somebody who wants to see AD, as on the long way.
        flags = plain.flags if self._memory is None else plain.flags | _AD
        message = plain_message(flags, plain.question, bool(plain.edns), bool(plain.dnssec_ok))
        dnssec_ok = bool(plain.dnssec_ok)
        return self._road.forwarding.board(message, plain.question, dnssec_ok, self._udp, plain.address, 0.0)

    def _land(self, plain: Plain, reply: Outcome[bytes | None], answer: Answer) -> None:
        made = None
        try:
            rrset = self._plain_rrset(plain, answer)
            if rrset is not None:
                made = self._reply(plain, rrset, answer.flags)
        except Exception:
            self._tally.panics += 1
            log.exception("bug: the reply to a plain question of %d octets", len(plain.data))
        reply.settle(self._slowly(plain, answer) if made is None else made)

    def _plain_rrset(self, plain: Plain, answer: Answer) -> RRset | None:
        """The one RRset of an answer that has nothing else, is whole, and fits."""
        if answer.rcode or len(answer.answer) != 1 or answer.authority or answer.additional or answer.ede is not None:
            return None
        rrset = answer.answer[0]
        count = len(rrset.rdatas)
        if rrset.owner or answer.flags & _TC or rrset.rtype != _TYPES[plain.question[-_TAIL:]]:
            return None
        if count > 1 and self._road.balancer is not None:
            return None
        records = count * (_record_head.size + len(rrset.rdatas[0]))
        size = HEADER_SIZE + len(plain.question) + records + plain.edns * _OPT_SIZE
        return rrset if size <= plain.limit else None

    def _reply(self, plain: Plain, rrset: RRset, flags: int) -> bytes:
        """The reply, learned and counted."""
        cache = self._road.cache
        _, rtype, ttl, rdatas, rclass = rrset
        if cache is not None:
            ttl = cache.learn_plain(_cache_key(plain), rrset, flags, bool(plain.flags & _RD), plain.address)
            if not plain.flags & _AD and not plain.dnssec_ok:
                flags &= ~_AD
        flags |= _QR | plain.flags & (_RD | _CD)
        head = _record_head.pack(0xC00C, rtype, rclass, ttl, len(rdatas[0]))
        made = plain.data[:2] + _header.pack(flags, 1, len(rdatas), 0, plain.edns) + plain.question
        made += head + head.join(rdatas)
        if plain.edns:
            made += _opt_record.pack(0, RRType.OPT, self._road.payload_size, plain.dnssec_ok, 0)
        self._tally.count(self._cell(plain, len(made)), self._clock() - plain.started)
        return made

    def _cell(self, plain: Plain, size: int) -> Cell:
        tail = plain.question[-_TAIL:]
        key = (tail, plain.dnssec_ok, len(plain.data), size)
        cell = self._cells.get(key)
        if cell is None:
            if len(self._cells) >= _MAX_CELLS:
                self._cells.clear()
            qtype, dnssec_ok = type_label(_TYPES[tail]), bool(plain.dnssec_ok)
            kind = Kind(self._road.label, qtype, "NOERROR", "forward", dnssec_ok, "", "", len(plain.data), size)
            cell = self._cells[key] = self._tally.cell(kind)
        return cell


def _cache_key(plain: Plain) -> bytes:
    """As `cache.entry.key_of` makes it."""
    return plain.question + (plain.flags & _CD | plain.dnssec_ok).to_bytes(2, "big")
