"""The short way of a plain question to a `forward` and back: octets in, octets out, with no `Query` made of them.

Most of what is forwarded is plain: an address, in lower case, with EDNS without options or none. In a server block
where nothing but `cache`, `loop`, `loadbalance` and the origins of `kubernetes` stand before the `forward`, such a
question means the same to all steps, and they need not be asked one by one. Whatever is not plain, on the way there or
back, goes the long way, with the same result: tests hold both ways equal.
"""

import logging
import struct
from collections.abc import Callable
from typing import Final

from topodns.dns.message import Flag
from topodns.dns.wire import HEADER_SIZE
from topodns.resolve.course import Outcome
from topodns.resolve.forward import Answer
from topodns.resolve.plain_question import HEADS, MAX_LABEL, Tail, Tails
from topodns.resolve.road import RoadMap
from topodns.resolve.tally import Cell, Kind, Tally, type_label

log = logging.getLogger(__name__)

_RD, _AD, _CD = int(Flag.RD), int(Flag.AD), int(Flag.CD)
_QR: Final = int(Flag.QR)
_ANSWERED: Final = _RD | _CD  # flags of a question that its answer repeats
_RECORD: Final = 12  # octets before the RDATA
_MAX_CELLS: Final = 4096

_header = struct.Struct("!HHHHH")  # without the id
_record_head = struct.Struct("!HHHIH")


class Crossing(Outcome[bytes | None]):
    """A plain question on its way, and the reply that it will have."""

    __slots__ = ("_relay", "address", "data", "flags", "key", "port", "question", "started", "tail")

    def __init__(
        self,
        relay: "Relay",
        tail: Tail,
        data: bytes,
        flags: int,
        question: bytes,
        key: bytes,
        address: bytes,
        port: int,
        started: float,
    ) -> None:
        self._settled = False  # as in Outcome.__init__: a call of it is 2 % of a forwarded query
        self._waiting = None
        self._relay = relay
        self.tail = tail
        self.data = data
        self.flags = flags  # RD, AD and CD
        self.question = question  # the section
        self.key = key  # in a cache
        self.address = address
        self.port = port
        self.started = started

    def land(self, answer: Answer) -> None:
        """Settle with what is made of this answer."""
        relay, reply = self._relay, None
        try:
            if answer.plain:
                reply = relay.reply(self, answer)
        except Exception:
            relay.note_bug(self)
        self.settle(relay.slowly(self, answer) if reply is None else reply)


class Relay:
    """The short way through one socket. `slowly` concludes what came back for a question and is not plain."""

    def __init__(
        self,
        roads: RoadMap,
        tally: Tally,
        clock: Callable[[], float],
        slowly: Callable[[Crossing, Answer], bytes | None],
    ) -> None:
        self._udp = tally.transport == "udp"
        self._tails = Tails(roads, self._udp)
        self._known_tails = self._tails.known
        self._tally = tally
        self._clock = clock
        self.slowly = slowly

    def __call__(self, data: bytes, address: bytes, port: int, started: float) -> Outcome[bytes | None] | None:
        """The outcome of a plain question that came at `started`; None for whatever is to go the long way.

        `data` has a whole header.
        """
        head = HEADS.get(data[2:HEADER_SIZE])
        if head is None or len(data) == HEADER_SIZE:
            return None
        flags, edns = head
        label = data[HEADER_SIZE]  # the octets of the first one
        if not 0 < label <= MAX_LABEL:
            return None
        tail = self._known_tails.get(data[HEADER_SIZE + 1 + label :]) or self._tails.read(data)
        if tail is None or tail.edns != edns:
            return None
        question = data[HEADER_SIZE : tail.question_end]
        road = tail.road
        # Octets of type and class are below the letters here, and so are those of lengths.
        if question != question.lower() or (road.guard is not None and road.guard.looping):
            return None
        key = question + tail.key_ends[flags & _CD]
        if tail.cache is not None and tail.cache.memory.knows(key):
            return None
        message = tail.headers[flags] + question + tail.opt
        crossing = Crossing(self, tail, data, flags, question, key, address, port, started)
        board = road.forwarding.board
        boarded = board(message, question, tail.dnssec_ok, self._udp, address, started, crossing.land)
        return None if boarded is None else crossing

    def note_bug(self, crossing: Crossing) -> None:
        """Tell of the exception that is being handled."""
        self._tally.panics += 1
        log.exception("bug: the reply to a plain question of %d octets", len(crossing.data))

    def reply(self, crossing: Crossing, answer: Answer) -> bytes | None:
        """The reply that a plain answer becomes, learned and counted.

        None where it is not to be as the answer is: it is too long, or the order is to change.
        """
        asked, question, tail = crossing.flags, crossing.question, crossing.tail
        rrset, flags = answer.answer[0], answer.flags
        _, rtype, ttl, rdatas, rclass = rrset
        count, length = len(rdatas), len(rdatas[0])
        if len(question) + count * (_RECORD + length) > tail.room or (count > 1 and tail.road.balancer is not None):
            return None
        cache = tail.cache
        if cache is not None:
            cache.counts.misses += 1
            ttl = cache.memory.learn_plain(crossing.key, rrset, flags, bool(asked & _RD), crossing.address)
            if not asked & _AD and not tail.dnssec_ok:
                flags &= ~_AD
        header = _header.pack(flags | _QR | asked & _ANSWERED, 1, count, 0, tail.edns)
        head = _record_head.pack(0xC00C, rtype, rclass, ttl, length)
        data = crossing.data
        made = data[:2] + header + question + head + head.join(rdatas) + tail.reply_opt
        sizes = len(data) << 16 | len(made)
        self._tally.count(tail.cells.get(sizes) or self._cell(tail, sizes), self._clock() - crossing.started)
        return made

    def _cell(self, tail: Tail, sizes: int) -> Cell:
        if len(tail.cells) >= _MAX_CELLS:
            tail.cells.clear()
        label, qtype, asked, size = tail.road.label, type_label(tail.qtype), sizes >> 16, sizes & 0xFFFF
        kind = Kind(label, qtype, "NOERROR", "forward", tail.dnssec_ok, "", "", asked, size)
        cell = tail.cells[sizes] = self._tally.cell(kind)
        return cell
