"""The fast path of a plain question to `forward` and back: octets in, octets out, without a `Query`.

Most forwarded questions are plain: for an address, in lower case, with EDNS without options or none. In a server block
with nothing but `cache`, `loop`, `loadbalance` and the origins of `kubernetes` before `forward`, the plugins treat all
such questions alike and need not be called one by one. A query or answer that is not plain takes the chain, with the
same result: tests compare both.
"""

import logging
from collections.abc import Callable
from typing import Final

from topodns.dns.name import MAX_LABEL
from topodns.dns.rrtype import Rcode
from topodns.dns.wire_format import HEADER_SIZE, POINTER_RECORD_HEAD_SIZE
from topodns.dnsserver.fast_forward.eligibility import FastRoutes
from topodns.dnsserver.fast_forward.tail import Tail, Tails
from topodns.plugins.forward.flight import UpstreamAnswer
from topodns.plugins.forward.single_flight import LoneFlight
from topodns.query.counters import BUCKET_OF_SIZE, Cell, QueryCounters, ReplyKind, type_label

log = logging.getLogger(__name__)


_COUNTS_AT: Final = 2  # offset of flags, QDCOUNT and ANCOUNT in a message
_COUNTS_END: Final = 8


class Crossing(LoneFlight):
    """A plain question in flight and the outcome of its reply."""

    __slots__ = ("cache_key", "data", "port", "relay", "tail")

    def __init__(
        self,
        relay: "Relay",
        tail: Tail,
        data: bytes,
        question: bytes,
        cache_key: bytes,
        address: bytes,
        port: int,
        started: float,
    ) -> None:
        """`data`: the client's query, from this packed address and port. `cache_key`: b"" without `cache`."""
        self.relay, self.tail, self.data, self.cache_key, self.port = relay, tail, data, cache_key, port
        # Those of LoneFlight, whose own constructor would be a second call for each query.
        self.message, self.question = tail.header + question + tail.opt, question
        self.address, self.started = address, started
        self.carrier = self.twin = self.flight = self.deliver = None
        self.settled = False

    def on_answer(self, answer: UpstreamAnswer) -> None:
        """Settle with the reply made from this answer of an upstream."""
        self.settle(self.relay.slowly(self, answer))

    def relayed(self, data: bytes) -> bytes | None:
        try:
            return self.relay.reply(self, data)
        except Exception:
            self.relay.note_bug(self)
            return None

    def preempt(self) -> None:
        """Drop the question without a reply, since another client gets its place in flight."""
        self.leave()
        self.settle(self.relay.slowly(self, None))


class Relay:
    """The fast path of one socket.

    `slowly` makes the reply from an answer that `reply` cannot relay; with None it concludes a dropped question.
    """

    def __init__(
        self,
        fast_routes: FastRoutes,
        socket_counters: QueryCounters,
        clock: Callable[[], float],
        slowly: Callable[[Crossing, UpstreamAnswer | None], bytes | None],
    ) -> None:
        self._udp = socket_counters.transport == "udp"
        self._tails = Tails(fast_routes, self._udp)
        self._known_tails = self._tails.known
        self._socket_counters = socket_counters
        self._clock = clock
        self.slowly = slowly

    def __call__(self, data: bytes, address: bytes, port: int, started: float) -> Crossing | None:
        """The deferred reply to a plain question received at `started`; None: the query must take the chain.

        `data` contains a complete header.
        """
        tails = self._known_tails.get(data[2:HEADER_SIZE])
        if tails is None or len(data) == HEADER_SIZE:
            return None
        label = data[HEADER_SIZE]  # length of the first label
        if not 0 < label <= MAX_LABEL:
            return None
        try:
            tail = tails[data[HEADER_SIZE + 1 + label :]]
        except KeyError:
            tail = self._tails.read(data)
        if tail is None:
            return None
        question = data[HEADER_SIZE : tail.question_end]
        # The octets of type, class and label lengths are below the letters, so `lower` leaves them.
        if question != question.lower() or (tail.guard is not None and tail.guard.looping):
            return None
        key = b""
        if tail.cache is not None:
            key = question + tail.key_end
            if tail.cache.memory.knows(key):
                return None
        crossing = Crossing(
            relay=self,
            tail=tail,
            data=data,
            question=question,
            cache_key=key,
            address=address,
            port=port,
            started=started,
        )
        if tail.alone:
            joined = tail.single_flight.join_alone(crossing, self._udp)
        else:
            joined = tail.single_flight.join(crossing.message, question, tail.wanted, self._udp, crossing, started)
        return crossing if joined else None

    def note_bug(self, crossing: Crossing) -> None:
        """Log and count the exception being handled."""
        self._socket_counters.panics += 1
        log.exception("bug: the reply to a plain question of %d octets", len(crossing.data))

    def reply(self, crossing: Crossing, upstream: bytes) -> bytes | None:
        """The reply to the client, made of the octets of a plain reply of the upstream (`response_reader.read_plain`).

        Both are counted, and the answer is stored in `cache`. None, without effect, if the reply is not plain, if a TTL
        exceeds the maximum, or if the reply to the client would be too long.
        """
        tail = crossing.tail
        octets = upstream[_COUNTS_AT:_COUNTS_END]
        head = tail.heads.get(octets) or tail.read_head(octets)
        if head is None:
            return None
        header, count, entry_head = head
        at = HEADER_SIZE + len(crossing.question)
        first = at + POINTER_RECORD_HEAD_SIZE
        end = at + count * tail.record_size
        octets = upstream[at:first]
        record = tail.records.get(octets) or tail.read_record(octets)
        if (
            record is None
            or end - HEADER_SIZE > tail.available
            or len(upstream) < end
            or upstream[HEADER_SIZE:at] != crossing.question
        ):
            return None
        ttl, record_head = record
        several = None
        if count == 1:
            addresses = upstream[first:end]
        else:
            several = tail.rdatas(upstream, at, count)
            if several is None:
                return None
            addresses = b"".join(several)
        if tail.cache is not None:
            kept = tail.cache.keep_addresses(
                crossing.cache_key, entry_head + addresses, ttl, tail.recursion_desired, crossing.address
            )
            if kept != ttl:
                record_head = tail.record_head(kept)
        if several is not None:
            addresses = record_head.join(tail.in_order(several))
        data = crossing.data
        made = b"".join((data[:2], header, crossing.question, record_head, addresses, tail.reply_opt))
        asked, sent = len(data), len(made)
        seconds = self._clock() - crossing.started
        crossing.candidate.answered(Rcode.NOERROR, seconds)
        cell = tail.cells.get(BUCKET_OF_SIZE[asked] << 4 | BUCKET_OF_SIZE[sent]) or self._cell(tail, asked, sent)
        self._socket_counters.count(cell, seconds, asked, sent)
        return made

    def _cell(self, tail: Tail, asked: int, sent: int) -> Cell:
        """The counter cell for a question and a reply of so many octets."""
        label, qtype = tail.fast_route.label, type_label(tail.qtype)
        asked_in, sent_in = BUCKET_OF_SIZE[asked], BUCKET_OF_SIZE[sent]
        kind = ReplyKind(
            origin=label,
            qtype=qtype,
            rcode="NOERROR",
            plugin="forward",
            dnssec_ok=tail.dnssec_ok,
            outcome="",
            topology_key="",
            query_bucket=asked_in,
            response_bucket=sent_in,
        )
        cell = tail.cells[asked_in << 4 | sent_in] = self._socket_counters.cell(kind)
        return cell
