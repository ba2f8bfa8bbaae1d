"""The fast path of a plain question to `forward` and back: octets in, octets out, without a `Query`.

Most forwarded questions are plain: for an address, in lower case, with EDNS without options or none. In a server block
with nothing but `cache`, `loop`, `loadbalance` and the origins of `kubernetes` before `forward`, the plugins treat all
such questions alike and need not be called one by one. A query or answer that is not plain takes the chain, with the
same result: tests compare both.
"""

import logging
from collections.abc import Callable
from typing import Final

from topodns.dns.message import Flag, RRset
from topodns.dns.name import MAX_LABEL
from topodns.dns.wire_format import (
    HEADER_SIZE,
    POINTER_RECORD_HEAD_SIZE,
    QNAME_POINTER,
    pack_header_without_id,
    pack_pointer_record_head,
)
from topodns.dnsserver.fast_forward.eligibility import FastRoutes
from topodns.dnsserver.fast_forward.question import HEADS, Tail, Tails
from topodns.plugins.forward.flight import Answer, plain_answer
from topodns.plugins.forward.single_flight import LoneFlight
from topodns.query.counters import Cell, QueryCounters, ReplyKind, size_bucket, type_label
from topodns.query.deferred import Outcome

log = logging.getLogger(__name__)


_ANSWERED: Final = Flag.RD | Flag.CD  # flags that the reply copies from the question


class Crossing(LoneFlight):
    """A plain question in flight and the outcome of its reply."""

    __slots__ = ("_relay", "cache_key", "data", "flags", "port", "tail")

    def __init__(
        self,
        relay: "Relay",
        tail: Tail,
        data: bytes,
        flags: int,
        question: bytes,
        cache_key: bytes,
        address: bytes,
        port: int,
        asked: float,
    ) -> None:
        LoneFlight.__init__(self, tail.single_flight, question, address, asked)
        self._relay = relay
        self.tail = tail
        self.data = data
        self.flags = flags  # RD, AD and CD
        self.cache_key = cache_key
        self.port = port

    def on_answer(self, answer: Answer) -> None:
        """Settle with the reply made from this answer of an upstream."""
        reply = self._relayed(answer.flags, answer.answer[0]) if answer.plain else None
        self.settle(self._relay.slowly(self, answer) if reply is None else reply)

    def on_plain(self, flags: int, rrset: RRset) -> None:
        reply = self._relayed(flags, rrset)
        if reply is None:
            reply = self._relay.slowly(self, plain_answer(flags, rrset, self.candidate.name))
        self.settle(reply)

    def _relayed(self, flags: int, rrset: RRset) -> bytes | None:
        try:
            return self._relay.reply(self, flags, rrset)
        except Exception:
            self._relay.note_bug(self)
            return None

    def preempt(self) -> None:
        """Drop the question without a reply, since another client gets its place in flight."""
        self.leave()
        self.settle(self._relay.slowly(self, None))


class Relay:
    """The fast path of one socket.

    `slowly` makes the reply from an answer that `reply` cannot relay; with None it concludes a dropped question.
    """

    def __init__(
        self,
        fast_routes: FastRoutes,
        socket_counters: QueryCounters,
        clock: Callable[[], float],
        slowly: Callable[[Crossing, Answer | None], bytes | None],
    ) -> None:
        self._udp = socket_counters.transport == "udp"
        self._tails = Tails(fast_routes, self._udp)
        self._known_tails, self._barred_tails = self._tails.known, self._tails.barred
        self._socket_counters = socket_counters
        self._clock = clock
        self.slowly = slowly

    def __call__(self, data: bytes, address: bytes, port: int, started: float) -> Outcome[bytes | None] | None:
        """The outcome of a plain question received at `started`; None: the query must take the chain.

        `data` contains a complete header.
        """
        head = HEADS.get(data[2:HEADER_SIZE])
        if head is None or len(data) == HEADER_SIZE:
            return None
        flags, edns = head
        label = data[HEADER_SIZE]  # length of the first label
        if not 0 < label <= MAX_LABEL:
            return None
        octets = data[HEADER_SIZE + 1 + label :]
        tail = self._known_tails.get(octets)
        if tail is None:
            tail = None if octets in self._barred_tails else self._tails.read(data)
        if tail is None or tail.edns != edns:
            return None
        question = data[HEADER_SIZE : tail.question_end]
        fast_route = tail.fast_route
        # The octets of type, class and label lengths are below the letters, so `lower` leaves them.
        if question != question.lower() or (fast_route.guard is not None and fast_route.guard.looping):
            return None
        key = question + tail.key_ends[flags & Flag.CD]
        if tail.cache is not None and tail.cache.memory.knows(key):
            return None
        message = tail.headers[flags] + question + tail.opt
        crossing = Crossing(self, tail, data, flags, question, key, address, port, started)
        if tail.alone:
            joined = tail.single_flight.join_alone(message, question, self._udp, crossing, started)
        else:
            joined = tail.single_flight.join(message, question, tail.dnssec_ok, self._udp, crossing, started)
        return crossing if joined else None

    def note_bug(self, crossing: Crossing) -> None:
        """Log and count the exception being handled."""
        self._socket_counters.panics += 1
        log.exception("bug: the reply to a plain question of %d octets", len(crossing.data))

    def reply(self, crossing: Crossing, flags: int, rrset: RRset) -> bytes | None:
        """The reply with the RRset of a plain answer; also counts it, and stores the answer in `cache`.

        None, with nothing counted or stored, if the answer cannot be relayed unchanged: it is too long, or
        `loadbalance` reorders it.
        """
        asked, question, tail = crossing.flags, crossing.question, crossing.tail
        _, rtype, ttl, rdatas, rclass = rrset
        count, length = len(rdatas), len(rdatas[0])
        octets = len(question) + count * (POINTER_RECORD_HEAD_SIZE + length)
        if octets > tail.available or (count > 1 and tail.fast_route.balancer is not None):
            return None
        cache = tail.cache
        if cache is not None:
            cache.counts.misses += 1
            key = crossing.cache_key
            longest = None if cache.push is None else cache.longest_ttl(key, (rrset,))
            ttl = cache.memory.learn_plain(key, rrset, flags, bool(asked & Flag.RD), crossing.address, longest)
            if not asked & Flag.AD and not tail.dnssec_ok:
                flags &= ~Flag.AD
        header = pack_header_without_id(flags | Flag.QR | asked & _ANSWERED, 1, count, 0, tail.edns)
        head = pack_pointer_record_head(QNAME_POINTER, rtype, rclass, ttl, length)
        data = crossing.data
        made = data[:2] + header + question + head + head.join(rdatas) + tail.reply_opt
        asked_in, sent_in = size_bucket(len(data)), size_bucket(len(made))
        cell = tail.cells.get(asked_in << 4 | sent_in) or self._cell(tail, asked_in, sent_in)
        self._socket_counters.count(cell, self._clock() - crossing.asked, len(data), len(made))
        return made

    def _cell(self, tail: Tail, asked_in: int, sent_in: int) -> Cell:
        label, qtype = tail.fast_route.label, type_label(tail.qtype)
        kind = ReplyKind(label, qtype, "NOERROR", "forward", tail.dnssec_ok, "", "", asked_in, sent_in)
        cell = tail.cells[asked_in << 4 | sent_in] = self._socket_counters.cell(kind)
        return cell
