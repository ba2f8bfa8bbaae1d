"""The fast path of a plain question to `forward` and back: octets in, octets out, without a `Query`.

Plain is a question for A or AAAA, class IN, in lower case, with EDNS without options or none: most forwarded ones are.
In a server block with nothing but `cache`, `loop`, `loadbalance` and the origins of `kubernetes` before `forward`, the
plugins treat all such questions alike and need not be called one by one. A query or answer that is not plain takes the
chain, with the same result: tests compare both.

A `Tail` is the octets of a plain question after its first label, which most questions of a cluster share. `Tails`
parses a tail once, and finds it by its octets from then on. All that these questions have in common is made once for
each tail, and so are the parts of their replies.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from topodns.dns.message import Flag
from topodns.dns.name import MAX_LABEL, MAX_WIRE
from topodns.dns.response_reader import plain_flags
from topodns.dns.rrtype import ADDRESS_TYPES, Rcode, RRClass, RRType
from topodns.dns.wire_format import (
    HEADER_SIZE,
    POINTER_RECORD_HEAD_SIZE,
    QNAME_POINTER,
    QUESTION_TAIL_SIZE,
    pack_header_without_id,
    pack_question_tail,
    pack_root_record_head,
    reply_limit,
)
from topodns.dnsserver.fast_forward.eligibility import FastRoute, FastRoutes
from topodns.dnsserver.plain_question import HEADS, OPT_BEGIN, OPT_ENDS
from topodns.plugins.cache.entry import address_entry_head
from topodns.plugins.forward.flight import PASSED_ON, UpstreamAnswer
from topodns.plugins.forward.sanitize import DNSSEC_RECORDS, MAX_TTL, PLAIN_RECORDS
from topodns.plugins.forward.single_flight import LoneFlight
from topodns.query.counters import BUCKET_OF_SIZE, Cell, QueryCounters, ReplyKind, type_label

log = logging.getLogger(__name__)

_MAX_HEADS: Final = 32  # reply heads kept for each tail
_MAX_RECORDS: Final = 1024  # record heads kept for each fast route and type
_TTL_AT: Final = 6  # offset of the TTL in a record whose owner is a pointer
_TTL_END: Final = 10
_ANSWERED: Final = Flag.RD | Flag.CD  # flags that the reply copies from the question
_SIZES: Final = {RRType.A: 4, RRType.AAAA: 16}  # octets of the RDATA
_MAX_KNOWN: Final = 512  # tails kept, of some 600 octets each

# Address records: all of one size, without names in them. Other types are too rare to be worth it.
_TYPES: Final = {pack_question_tail(rtype, RRClass.IN): rtype for rtype in ADDRESS_TYPES}
_COUNTS_AT: Final = 2  # offset of flags, QDCOUNT and ANCOUNT in a message
_COUNTS_END: Final = 8


class ReplyHead(NamedTuple):
    """The head of a plain reply: for these flags and numbers of records of the upstream's."""

    header: bytes  # of the reply to the client, after its id
    records: int  # in the answer section, 1 or more
    entry_head: bytes  # of the cache's entry (`plugins.cache.entry.address_entry_head`)


class RecordHead(NamedTuple):
    """The head of an answer record of the upstream's: the octets before its RDATA, to which the pointer belongs."""

    ttl: int  # seconds, to be sent to the client; `push` may lower it further
    octets: bytes  # of the record to the client, with this TTL


class Tail:
    """A parsed tail (the octets of a plain question after its first label) under one header: what all such questions
    have in common, and their replies.
    """

    __slots__ = (
        *("_balancer", "alone", "available", "cache", "cells", "dnssec_ok", "fast_route", "flags", "guard", "header"),
        *("heads", "key_end", "opt", "qtype", "question_end", "rdlength", "record_size", "record_start", "records"),
        *("recursion_desired", "reply_opt", "single_flight", "wanted"),
    )

    def __init__(
        self, fast_route: FastRoute, flags: int, qtype: int, opt: bytes, limit: int, cells: dict[int, Cell]
    ) -> None:
        """`flags`: RD, AD and CD of the question. `opt`: its OPT record or b"". `limit`: most octets of the reply."""
        outgoing = fast_route.forwarding.outgoing
        bits = OPT_ENDS[opt[5:]] if opt else 0
        self.fast_route = fast_route
        self.guard = fast_route.guard
        self.cache = fast_route.cache
        self.single_flight = fast_route.forwarding.single_flight
        self.flags = flags
        self.recursion_desired = bool(flags & Flag.RD)
        self.qtype = qtype
        self.dnssec_ok = bool(bits)
        self.wanted = DNSSEC_RECORDS if bits else PLAIN_RECORDS
        # Whether a query can be its own flight.
        self.alone = not bits and not self.single_flight.context.settings.failover
        self.question_end = -len(opt) or None  # end of the question section in the message, for a slice
        # A cached answer may serve a later client that wants AD, so ask for it, as `cache` does off the fast path.
        seen = 0 if self.cache is None else Flag.AD
        self.header = outgoing.header(flags | seen, bool(opt))  # of the message to the upstream, which has no id
        self.opt = outgoing.opt(bool(opt), self.dnssec_ok)  # likewise
        # The end of the key that `plugins.cache.entry.key_of` makes.
        self.key_end = (flags & Flag.CD | bits).to_bytes(2, "big")
        self.available = limit - HEADER_SIZE - len(opt)  # octets for question and answer
        self.heads: dict[bytes, ReplyHead] = {}  # by flags, QDCOUNT and ANCOUNT of the upstream's reply
        self.records = fast_route.records[qtype]  # RecordHead by the octets of the upstream's
        # Of each record before and after its TTL.
        self.record_start = QNAME_POINTER.to_bytes(2, "big") + pack_question_tail(qtype, RRClass.IN)
        self.rdlength = _SIZES[qtype].to_bytes(2, "big")
        self.record_size = POINTER_RECORD_HEAD_SIZE + _SIZES[qtype]
        self.reply_opt = pack_root_record_head(0, RRType.OPT, fast_route.payload_size, bits, 0) if opt else b""
        self._balancer = fast_route.balancer
        self.cells = cells  # counter cells of the replies, by the size buckets of question and reply

    def read_head(self, octets: bytes) -> ReplyHead | None:
        """The head for these flags, QDCOUNT and ANCOUNT of a reply, also kept for later ones; None if it is not plain:
        not NOERROR, truncated, or without an answer.
        """
        flags, count = plain_flags(octets), int.from_bytes(octets[4:], "big")
        if flags is None or not count:
            return None
        flags &= PASSED_ON
        shown = flags
        if self.cache is not None and not self.flags & Flag.AD and not self.dnssec_ok:
            shown &= ~Flag.AD  # as `cache` does: AD is for those who ask for it (RFC 6840 section 5.8)
        header = pack_header_without_id(
            shown | Flag.QR | self.flags & _ANSWERED, 1, count, 0, 1 if self.reply_opt else 0
        )
        head = ReplyHead(header, count, address_entry_head(flags, self.qtype))
        if len(self.heads) >= _MAX_HEADS:  # an upstream may send any
            self.heads.clear()
        self.heads[octets] = head
        return head

    def read_record(self, octets: bytes) -> RecordHead | None:
        """The head for these octets before the RDATA of a record, also kept for later ones; None if it is not plain:
        not an address of the question's type at its name, or with a TTL above the maximum.
        """
        ttl = int.from_bytes(octets[_TTL_AT:_TTL_END], "big")
        if octets != self.record_start + octets[_TTL_AT:_TTL_END] + self.rdlength or ttl > MAX_TTL:
            return None
        if self.cache is not None:
            ttl = self.cache.positive_ttl(ttl)
        if len(self.records) >= _MAX_RECORDS:
            self.records.clear()
        head = self.records[octets] = RecordHead(ttl, self.record_head(ttl))
        return head

    def record_head(self, ttl: int) -> bytes:
        """The octets before the RDATA of a record for the client."""
        return self.record_start + ttl.to_bytes(4, "big") + self.rdlength

    def rdatas(self, upstream: bytes, at: int, records: int) -> list[bytes] | None:
        """The RDATAs of so many records, which the message has room for, from offset `at` on.

        None if they are no RRset with the head of the first record, or if `loadbalance` orders them by more than
        chance.
        """
        if self._balancer is not None and not self._balancer.round_robin:
            return None
        head, rdatas = upstream[at : at + POINTER_RECORD_HEAD_SIZE], []
        for start in range(at, at + records * self.record_size, self.record_size):
            if not upstream.startswith(head, start):
                return None
            rdatas.append(upstream[start + POINTER_RECORD_HEAD_SIZE : start + self.record_size])
        return rdatas

    def in_order(self, rdatas: Sequence[bytes]) -> Sequence[bytes]:
        """The RDATAs in the order for one client."""
        return rdatas if self._balancer is None else self._balancer.ordered(rdatas, len(rdatas))


class Tails:
    """Parses and keeps the tails of one socket's questions."""

    def __init__(self, fast_routes: FastRoutes, udp: bool) -> None:
        self._fast_routes = fast_routes
        self._udp = udp
        self._cells: dict[tuple[str, int, bool], dict[int, Cell]] = {}
        # By the question's header after its id, then by the octets of the tail; None for a tail without a fast path,
        # whatever the first label: names of clusters.
        self.known: dict[bytes, dict[bytes, Tail | None]] = {head: {} for head in HEADS}
        self._kept = 0

    def read(self, data: bytes) -> Tail | None:
        """The tail of this message, also kept for later ones; None if it is no plain question or has no fast path.

        Its header is one of HEADS.
        """
        at, size = HEADER_SIZE, len(data)
        while at < size and (octet := data[at]):
            if octet > MAX_LABEL:
                return None
            at += 1 + octet
        end = at + 1 + QUESTION_TAIL_SIZE
        name, opt = data[HEADER_SIZE : at + 1], data[end:]
        qtype = _TYPES.get(data[at + 1 : end])
        flags, edns = HEADS[data[2:HEADER_SIZE]]
        if qtype is None or len(name) > MAX_WIRE or name != name.lower() or not _is_plain(opt) or edns != bool(opt):
            return None
        fast_route = self._fast_routes.find(name)
        tail = None if fast_route is None else self._tail(fast_route, flags, qtype, opt)
        self._keep(data, name, tail)
        return tail

    def _tail(self, fast_route: FastRoute, flags: int, qtype: int, opt: bytes) -> Tail:
        limit = reply_limit(self._udp, opt[3] << 8 | opt[4] if opt else 0, fast_route.payload_size)
        cells = self._cells.setdefault((fast_route.label, qtype, bool(opt) and bool(OPT_ENDS[opt[5:]])), {})
        return Tail(fast_route=fast_route, flags=flags, qtype=qtype, opt=opt, limit=limit, cells=cells)

    def _keep(self, data: bytes, name: bytes, tail: Tail | None) -> None:
        """Keep the tail, or that it has no fast path (None), if that holds with every first label before it.

        It does not if names under the same parent differ in their fast path, or if a first label of 63 octets would
        make the name too long.
        """
        rest = name[1 + name[0] :]
        if not rest or len(rest) >= MAX_WIRE - MAX_LABEL or self._fast_routes.is_parent(rest):
            return
        if self._kept >= _MAX_KNOWN:
            self._kept = 0
            for tails in self.known.values():
                tails.clear()
        self._kept += 1
        self.known[data[2:HEADER_SIZE]][data[HEADER_SIZE + 1 + name[0] :]] = tail


def _is_plain(opt: bytes) -> bool:
    return not opt or (opt[:3] == OPT_BEGIN and opt[5:] in OPT_ENDS)


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
        """Settle with the reply made from this answer of an upstream, or by the chain if it asks for the client."""
        cache = self.tail.cache
        if cache is not None and cache.asks_for_client(answer.rcode, answer.ede):
            self.relay.again(self)
        else:
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
    `again` answers a question by the chain.
    """

    def __init__(
        self,
        fast_routes: FastRoutes,
        socket_counters: QueryCounters,
        clock: Callable[[], float],
        slowly: Callable[[Crossing, UpstreamAnswer | None], bytes | None],
        again: Callable[[Crossing], object],
    ) -> None:
        self._udp = socket_counters.transport == "udp"
        self._tails = Tails(fast_routes, self._udp)
        self._known_tails = self._tails.known
        self._socket_counters = socket_counters
        self._clock = clock
        self.slowly = slowly
        self.again = again

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
            naming = tail.cache.naming
            if (naming is not None and naming.wanted) or tail.cache.memory.knows(key):
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
