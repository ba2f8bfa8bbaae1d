"""The fast path of a plain question to `kubernetes`: octets in, octets out.

Plain is a question for A, AAAA or SRV, class IN, with its name in lower case, and without EDNS, or with EDNS without
options or with one: the node identity that a node cache adds.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Final, NamedTuple

from topodns.dns.message import Edns, Flag, Option, RRset
from topodns.dns.name import MAX_LABEL, MAX_WIRE, Name
from topodns.dns.rrtype import ADDRESS_TYPES, RCODE_NAMES, Rcode, RRClass, RRType
from topodns.dns.soa import SHARED_WITH_NAMES, soa_rrset
from topodns.dns.wire_format import (
    COMPRESSIBLE,
    DNSSEC_OK,
    HEADER_SIZE,
    OPTION_HEAD_SIZE,
    POINTER,
    POINTER_RECORD_HEAD_SIZE,
    QNAME_POINTER,
    QUESTION_TAIL_SIZE,
    ROOT_RECORD_HEAD_SIZE,
    SRV_HEAD_SIZE,
    pack_header_without_id,
    pack_pointer_record_head,
    pack_question_tail,
    pack_record_head,
    pack_root_record_head,
    reply_limit,
)
from topodns.dnsserver.fast_kubernetes.eligibility import FastZone
from topodns.dnsserver.packet_cache.table import OF_OPTIONS, PacketCache, variants_of_soa
from topodns.dnsserver.plain_question import HEADS, OPT_BEGIN, OPT_ENDS
from topodns.plugins.kubernetes.answer import answer, parse
from topodns.plugins.kubernetes.handler import scope_and_facts
from topodns.plugins.kubernetes.question import Answer, SchemaName, ServiceName, ZoneQuestion
from topodns.plugins.loadbalance.handler import LoadBalancer
from topodns.query.client_claim import MAX_NODE_NAME, read_claim
from topodns.query.counters import BUCKET_OF_SIZE, TYPE_LABELS, Cell, QueryCounters, ReplyKind
from topodns.query.packet_entry import Variants
from topodns.topology.claims import Claim
from topodns.topology.select import UNLOCATED_REASONS, Location, Selection

_SIZE_AT: Final = QUESTION_TAIL_SIZE + len(OPT_BEGIN)  # of the UDP payload size, behind the name
_SIZE_END: Final = _SIZE_AT + 2


class _Tail(NamedTuple):
    """The octets of a plain question behind its name, but for the UDP payload size: type, class and OPT record."""

    qtype: int
    edns: int  # OPT records: 0 or 1
    dnssec_ok: bool


_QUESTIONS: Final = {pack_question_tail(qtype, RRClass.IN): qtype for qtype in (*ADDRESS_TYPES, RRType.SRV)}
_BARE_TAILS: Final = {octets: _Tail(qtype, 0, False) for octets, qtype in _QUESTIONS.items()}
_EDNS_TAILS: Final = {
    octets + OPT_BEGIN + end: _Tail(qtype, 1, bool(bits))
    for octets, qtype in _QUESTIONS.items()
    for end, bits in OPT_ENDS.items()
}
# The node identity alone, by the octets of OPT's RDATA: RDLENGTH, the option's code and its length.
_IDENTITY_HEADS: Final = {
    OPTION_HEAD_SIZE + size: struct.pack("!HHH", OPTION_HEAD_SIZE + size, Option.NODE_IDENTITY, size)
    for size in range(MAX_NODE_NAME + 1)
}
_RDLENGTH_AT: Final = QUESTION_TAIL_SIZE + ROOT_RECORD_HEAD_SIZE - 4  # behind the name, without the UDP payload size
_MAX_CLAIMS: Final = 1024  # kept, of at most 700 octets each: a node cache has one
_MOST_SRV: Final = 16_000  # octets: pointers reach targets in the first 16,384 of a message
_MAX_DENIALS: Final = 2048  # kept for an origin, of about 400 octets each
_MAX_CELLS: Final = 2048  # label sets whose counter cell is found without a ReplyKind
_COPIED: Final = Flag.RD | Flag.CD
_SVC: Final = "\x03svc"
_SHARED: Final = tuple(label[1:].decode() for label in SHARED_WITH_NAMES)
_new: Final = tuple.__new__  # a NamedTuple's own __new__ is a second call
_WRITTEN: Final = (Rcode.NOERROR, Rcode.NXDOMAIN)
# The flags of a reply, its rcode in the last four bits, by (the flags of the question, rcode, whether it is truncated).
_FLAGS: Final = {
    (flags, rcode, truncated): Flag.QR | Flag.AA | flags & _COPIED | rcode | (Flag.TC if truncated else 0)
    for (flags, _), rcode, truncated in product(HEADS.values(), range(16), (False, True))
}


class Responder:
    """The fast path of one socket to these zones."""

    def __init__(
        self,
        zones: Iterable[FastZone],
        table: PacketCache,
        socket_counters: QueryCounters,
        clock: Callable[[], float],
    ) -> None:
        """No zone is at or below another one."""
        # By origins in wire form, as text, whose slices cost less than octets that are decoded one by one.
        self._zones = {served.origin.wire.decode("latin-1"): served for served in zones}
        self._services = {_SVC + wire: served for wire, served in self._zones.items()}
        self._table = table
        self._udp = socket_counters.transport == "udp"
        # Of replies to queries without EDNS, as stub resolvers send them.
        self._bare_limits = {each: reply_limit(self._udp, 0, each.payload_size) for each in self._zones.values()}
        self._socket_counters = socket_counters
        self._cells = _Cells(socket_counters)
        self._denials = {served: _Denials(served, self._cells) for served in self._zones.values()}
        self._clock = clock
        self._claims: dict[bytes, Claim] = {}  # by the option's octets

    def __call__(self, data: bytes, address: bytes, started: float) -> bytes | None:
        """The reply to a plain question received at `started`, also counted; None: the query must take the chain.

        `data` contains a complete header. The packet cache keeps the reply to a question that came before.
        """
        head = HEADS.get(data[2:HEADER_SIZE])
        if head is None:
            return None
        name_end = data.find(0, HEADER_SIZE) + 1
        name = data[HEADER_SIZE:name_end]
        tail, claim = _BARE_TAILS.get(data[name_end:]), None
        if tail is None:
            tail, claim = self._with_edns(data[name_end : name_end + _SIZE_AT] + data[name_end + _SIZE_END :])
        if tail is None or tail.edns != head[1] or not name.islower() or len(name) > MAX_WIRE:
            return None
        text = name.decode("latin-1")
        length = name[0]
        at = 1 + length
        space = name[at] if at < len(name) else 0
        served = self._services.get(text[at + 1 + space :])
        if served is not None and 0 < length <= MAX_LABEL and 0 < space <= MAX_LABEL:
            service, namespace = text[1:at], text[at + 1 : at + 1 + space]
            schema_name: SchemaName | None = _new(ServiceName, (namespace, service, "", "", "", "", ""))
            labels: Name = (service, namespace, "svc")
        else:
            served, labels = self._split(name, text)
            if served is None or not labels or labels[-1] in _SHARED:
                return None  # at the apex, and under the names of its SOA, of which less is then written
            kubernetes = served.kubernetes
            schema_name = parse(
                labels, served.origin.multicluster, kubernetes.settings.zonal, kubernetes.topology is not None
            )
        limit, origin = self._bare_limits[served], served.origin
        if tail.edns:
            size_at = name_end + _SIZE_AT
            limit = reply_limit(self._udp, data[size_at] << 8 | data[size_at + 1], served.payload_size)
        question = _new(ZoneQuestion, (labels, tail.qtype, address, limit, origin, origin.wire, None, claim))
        return self._answer(data, name_end, head[0], tail, served, schema_name, question, started)

    def _answer(
        self,
        data: bytes,
        name_end: int,
        flags: int,
        tail: _Tail,
        served: FastZone,
        name: SchemaName | None,
        question: ZoneQuestion,
        started: float,
    ) -> bytes | None:
        """The reply to a plain question of this name; `flags` are those of its header."""
        found = answer(served.kubernetes, name, question)
        if found.ede is not None or found.targets or found.rcode not in _WRITTEN:
            return None
        if found.selection is not None and _may_wait(found.selection, found.location):
            return None
        asked, key, balancer = len(data), data[2:], served.balancer
        kept = question.claim is None and self._table.was_seen(key)  # no packet cache keeps a reply to a claim
        if not found.rdatas:
            head, records, cell = self._denials[served].parts(name_end, asked, flags, tail, found)
            reply = data[:2] + head + data[HEADER_SIZE : name_end + QUESTION_TAIL_SIZE] + records
        else:
            if kept and balancer is not None:
                # Ordered as a whole, as the packet cache goes on from this order.
                found, balancer = _ordered(found, tail.qtype, balancer), None
            positive = _reply(data, name_end, flags, tail, served.payload_size, balancer, found, question.limit)
            if positive is None:
                return None
            reply = positive
            cell = self._cells.of(tail, served, found, asked, len(reply))
        self._socket_counters.count(cell, self._clock() - started, asked, len(reply))
        if kept:
            scope, facts = scope_and_facts(found, name)
            self._table.keep(
                key=key,
                reply=reply,
                address=question.address,
                scope=scope,
                facts=facts,
                valid_until=None,
                rotating=_rotating(served, tail.qtype, found),
                cell=cell,
                variants=_variants(served, tail.qtype, found, reply),
            )
        return reply

    def _with_edns(self, octets: bytes) -> tuple[_Tail | None, Claim | None]:
        """The tail without its option, and the claim, if the node identity is the only option; (None, None) if the
        tail is not that of a plain question.

        `octets` are those of the message behind its name, but for the UDP payload size.
        """
        tail = _EDNS_TAILS.get(octets)
        if tail is not None:
            return tail, None
        at = _RDLENGTH_AT + 2
        head = _IDENTITY_HEADS.get(len(octets) - at)
        if head is None or not octets.startswith(head, _RDLENGTH_AT):
            return None, None
        option = octets[at:]
        claim = self._claims.get(option)
        if claim is None:
            if len(self._claims) >= _MAX_CLAIMS:
                self._claims.clear()
            claim = self._claims[option] = read_claim(
                Edns(0, 0, False, ((Option.NODE_IDENTITY, option[OPTION_HEAD_SIZE:]),))
            )
        return _EDNS_TAILS.get(octets[:_RDLENGTH_AT] + b"\0\0"), claim

    def _split(self, name: bytes, text: str) -> tuple[FastZone | None, Name]:
        """The zone of a name in wire form, and its labels in front of the origin; (None, ()) without a zone."""
        at, end, zones = 0, len(name) - 1, self._zones
        labels: list[str] = []
        while at < end:
            served = zones.get(text[at:])
            if served is not None:
                return served, tuple(labels)
            after = at + 1 + name[at]
            if name[at] > MAX_LABEL:
                break
            labels.append(text[at + 1 : after])
            at = after
        return None, ()


class _Cells:
    """The counter cells of one socket's replies, found without a ReplyKind."""

    def __init__(self, socket_counters: QueryCounters) -> None:
        self._socket_counters = socket_counters
        self._cells: dict[tuple[object, ...], Cell] = {}

    def of(self, tail: _Tail, served: FastZone, found: Answer, asked: int, sent: int) -> Cell:
        """The cell of a reply of `sent` octets with this answer to a query of `asked` octets."""
        asked_in, sent_in = BUCKET_OF_SIZE[asked], BUCKET_OF_SIZE[sent]
        rcode, selection = found.rcode, found.selection
        outcome, topology_key = ("", "") if selection is None else (selection.reason, selection.key)
        key = (tail.qtype, tail.dnssec_ok, served.label, rcode, outcome, topology_key, asked_in << 4 | sent_in)
        cell = self._cells.get(key)
        if cell is None:
            kind = ReplyKind(
                origin=served.label,
                qtype=TYPE_LABELS[tail.qtype],
                rcode=RCODE_NAMES[rcode],
                plugin="kubernetes",
                dnssec_ok=tail.dnssec_ok,
                outcome=outcome,
                topology_key=topology_key,
                query_bucket=asked_in,
                response_bucket=sent_in,
            )
            if len(self._cells) >= _MAX_CELLS:
                self._cells.clear()
            cell = self._cells[key] = self._socket_counters.cell(kind)
        return cell


_Records = tuple[bytes, bool, int, int]
"""(records behind the question, as octets; whether some are left out; how many are in answer and additional section).

A NamedTuple would cost two calls more for each reply.
"""


_Denial = tuple[bytes, bytes, Cell]
"""A negative reply: (its header without the id, its records behind the question, the cell that counts it)."""


class _Denials:
    """The negative replies of one origin, each kept but for its id and its question.

    They always fit: with a name of 255 octets the SOA record and OPT leave room in 512.
    """

    __slots__ = ("_cells", "_kept", "_serial", "_served", "_state")

    def __init__(self, served: FastZone, cells: _Cells) -> None:
        self._served, self._state, self._cells = served, served.kubernetes.state, cells
        self._serial, self._kept = self._state.serial, dict[tuple[object, ...], _Denial]()  # with this serial

    def parts(self, name_end: int, asked: int, flags: int, tail: _Tail, found: Answer) -> _Denial:
        """The parts of the reply with this answer. Of the query: where its name ends, its octets, its flags."""
        if self._serial != self._state.serial or len(self._kept) > _MAX_DENIALS:
            self._serial, self._kept = self._state.serial, {}
        selection = found.selection
        decided = None if selection is None else (selection.reason, selection.key)
        shape = (name_end, asked, flags, tail, found.rcode, decided)
        kept = self._kept.get(shape)
        if kept is None:
            kept = self._kept[shape] = self._made(name_end, asked, flags, tail, found)
        return kept

    def _made(self, name_end: int, asked: int, flags: int, tail: _Tail, found: Answer) -> _Denial:
        served = self._served
        _, rtype, ttl, (rdata,), rclass = soa_rrset(served.origin.wire, self._serial, served.kubernetes.settings.ttl)
        numbers_at = len(rdata) - COMPRESSIBLE[RRType.SOA].after
        owner = (POINTER | name_end - len(served.origin.wire)).to_bytes(
            2, "big"
        )  # where the question's name ends in it
        rdata = rdata[:numbers_at].replace(served.origin.wire, owner) + rdata[numbers_at:]
        records = owner + pack_record_head(rtype, rclass, ttl, len(rdata)) + rdata + _opt(tail, served.payload_size)
        head = pack_header_without_id(_FLAGS[flags, found.rcode, False], 1, 0, 1, tail.edns)
        sent = name_end + QUESTION_TAIL_SIZE + len(records)
        return head, records, self._cells.of(tail, served, found, asked, sent)


def _opt(tail: _Tail, payload_size: int) -> bytes:
    """The OPT record of the reply; none for a query without EDNS."""
    if not tail.edns:
        return b""
    return pack_root_record_head(0, RRType.OPT, payload_size, DNSSEC_OK if tail.dnssec_ok else 0, 0)


def _may_wait(selection: Selection, location: Location | None) -> bool:
    """Whether the client has no location, so that the query may wait for its Pod, and its prefix is counted."""
    return selection.reason in UNLOCATED_REASONS or (location is not None and not location.node_name)


def _ordered(found: Answer, qtype: int, balancer: LoadBalancer) -> Answer:
    """The answer with its addresses in random order."""
    rdatas, additional = found.rdatas, found.additional
    if len(rdatas) > 1 and qtype != RRType.SRV:
        rdatas = tuple(balancer.ordered(rdatas, len(rdatas)))
    return found._replace(rdatas=rdatas, additional=balancer.shuffled(additional) if additional else ())


def _rotating(served: FastZone, qtype: int, found: Answer) -> Sequence[RRset]:
    """The records whose order changes with each hit in the packet cache: addresses with `loadbalance`."""
    if served.balancer is None or qtype == RRType.SRV or len(found.rdatas) < 2:
        return ()
    return (RRset(b"", qtype, found.ttl, found.rdatas),)


def _variants(served: FastZone, qtype: int, found: Answer, reply: bytes) -> Variants | None:
    """The query variants that this reply answers: see `packet_cache.table.variants_of`.

    With addresses of the question's name alone all that the block allows, with names in RDATA (SRV) no other spelling.
    """
    allowed = served.variants
    if allowed is None or not allowed.spellings or (found.rdatas and qtype != RRType.SRV):
        return allowed
    return OF_OPTIONS if found.rdatas else variants_of_soa(reply)


def _reply(
    data: bytes,
    name_end: int,
    flags: int,
    tail: _Tail,
    payload_size: int,
    balancer: LoadBalancer | None,
    found: Answer,
    limit: int,
) -> bytes | None:
    """The reply with as many records as fit; None for SRV records beyond _MOST_SRV."""
    opt = _opt(tail, payload_size) if tail.edns else b""
    question = data[HEADER_SIZE : name_end + QUESTION_TAIL_SIZE]
    left = limit - name_end - QUESTION_TAIL_SIZE - len(opt)
    if tail.qtype == RRType.SRV:
        records = _srv(question, balancer, found, left)
        if records is None:
            return None
    else:
        records = _addresses(tail.qtype, balancer, found, left)
    octets, truncated, number, addresses = records
    header = pack_header_without_id(_FLAGS[flags, found.rcode, truncated], 1, number, 0, addresses + tail.edns)
    return data[:2] + header + question + octets + opt


def _srv(question: bytes, balancer: LoadBalancer | None, found: Answer, left: int) -> _Records | None:
    """As many SRV records as fit, and addresses of their targets; None beyond _MOST_SRV."""
    rdatas, additional = found.rdatas, found.additional
    count = len(rdatas)
    if sum(map(len, rdatas)) + POINTER_RECORD_HEAD_SIZE * count > _MOST_SRV:
        return None
    if balancer is not None and additional:
        additional = balancer.shuffled(additional)
    octets, number, addresses = _srv_records(question, rdatas, found.ttl, additional, left)
    truncated = number < count or addresses < sum(len(rrset.rdatas) for rrset in additional)
    return octets, truncated, number, addresses


def _addresses(qtype: int, balancer: LoadBalancer | None, found: Answer, left: int) -> _Records:
    """As many records of the question's name as fit."""
    rdatas, size, count = found.rdatas, len(found.rdatas[0]), len(found.rdatas)
    fitting = left // (POINTER_RECORD_HEAD_SIZE + size)
    number = fitting if fitting < count else count
    if not number:
        return b"", True, 0, 0
    ordered: Sequence[bytes] = rdatas
    if balancer is not None and count > 1:
        ordered = balancer.ordered(rdatas, number)
    elif number < count:
        ordered = rdatas[:number]
    head = pack_pointer_record_head(QNAME_POINTER, qtype, RRClass.IN, found.ttl, size)
    return head + head.join(ordered), number < count, number, 0


def _srv_records(
    question: bytes, rdatas: Iterable[bytes], ttl: int, additional: Iterable[RRset], left: int
) -> tuple[bytes, int, int]:
    """(SRV records of the reply to this question and the addresses of their targets, number of either that fit).

    `left`: octets that both may take; after the first record that does not fit there are no others. The owners of
    addresses are pointers: to the question's name if it ends in them, as `dns.wire_writer` compresses, else to the
    target of a record, which is never compressed itself (RFC 2782).
    """
    name, start = question[:-QUESTION_TAIL_SIZE], HEADER_SIZE + len(question)
    parts: list[bytes] = []
    targets: dict[bytes, int] = {}
    size = number = 0
    for rdata in rdatas:
        end = size + POINTER_RECORD_HEAD_SIZE + len(rdata)
        if end > left:
            return b"".join(parts), number, 0
        targets.setdefault(rdata[SRV_HEAD_SIZE:], start + size + POINTER_RECORD_HEAD_SIZE + SRV_HEAD_SIZE)
        parts.append(pack_pointer_record_head(QNAME_POINTER, RRType.SRV, RRClass.IN, ttl, len(rdata)) + rdata)
        size, number = end, number + 1
    addresses = 0
    for owner, rtype, ttl_of_address, octets, rclass in additional:
        offset = HEADER_SIZE + len(name) - len(owner) if name.endswith(owner) else targets[owner]
        head = pack_pointer_record_head(POINTER | offset, rtype, rclass, ttl_of_address, len(octets[0]))
        fitting = octets[: (left - size) // (len(head) + len(octets[0]))]
        parts.extend(head + address for address in fitting)
        size, addresses = size + len(fitting) * (len(head) + len(octets[0])), addresses + len(fitting)
        if len(fitting) < len(octets):
            break
    return b"".join(parts), number, addresses
