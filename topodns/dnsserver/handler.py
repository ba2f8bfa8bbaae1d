"""Bytes in, bytes out: what comes before and after a block's steps, for one socket.

The ladder of refusals stands in `Handler.answer`, `_answer_anew` and `_resolve`, in order. Nothing a message says can
raise past here: what is not foreseen is SERVFAIL, a traceback and a count.
"""

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from topodns.dns.message import RCODE_NAMES, Option, Query, Rcode, Response, RRType
from topodns.dns.names import Name, name_text
from topodns.dns.wire import HEADER_SIZE, WireError, read_query
from topodns.dns.wire_write import MAX_TCP_PAYLOAD, MIN_UDP_PAYLOAD, write_error, write_response
from topodns.resolve.blocks import Block, BlockTable
from topodns.resolve.course import Course, Outcome, pursue
from topodns.resolve.forward import Answer
from topodns.resolve.hot import HotTable
from topodns.resolve.relay import Crossing, Relay
from topodns.resolve.step import Answered, BadOption, Client, Dropped, Resolution, Scope
from topodns.resolve.tally import Cell, Kind, Tally, type_label
from topodns.settings.server import DEFAULT_UDP_SIZE

log = logging.getLogger(__name__)

KEEPALIVE: Final = (int(Option.TCP_KEEPALIVE), (100).to_bytes(2, "big"))  # RFC 7828: our 10 s, in units of 100 ms

PROBE_CLASS: Final = 0xFF00  # for private use (RFC 6895 section 3.2)

_OPCODE: Final = 0x78  # in the third octet
_SERVFAIL: Final = int(Rcode.SERVFAIL)
_TRANSFERS: Final = frozenset({int(RRType.AXFR), int(RRType.IXFR)})
_DROPPED: Final = "dropped"  # CoreDNS's label for what no block was asked

Replied = bytes | None | Outcome[bytes | None]
"""The reply, None for silence, or the outcome that will be one of them."""


class Asked(NamedTuple):
    """One query on its way. `block` is None where no server block is for the name."""

    data: bytes
    query: Query
    client: Client
    block: Block | None
    started: float


class Handler:
    """Answers the messages of one socket from its server blocks, and keeps what may be kept in `table`."""

    def __init__(
        self,
        blocks: BlockTable,
        table: HotTable,
        tally: Tally,
        clock: Callable[[], float],
        local_port: int,
        own_name: Name | None = None,
    ) -> None:
        """`own_name`: questions of no known class for it get a NOERROR, which no other instance gives (RFC 6895)."""
        self.blocks = blocks
        self.table = table
        self.tally = tally
        self._clock = clock
        self.local_port = local_port
        self._own_name = own_name
        self._udp = tally.transport == "udp"
        self._relay = Relay(blocks.roads, tally, clock, self._conclude_relayed) if blocks.roads else None

    def succeeded_by(self, blocks: BlockTable, table: HotTable) -> "Handler":
        """A handler of the same socket for other blocks: a reload."""
        return Handler(blocks, table, self.tally, self._clock, self.local_port, self._own_name)

    def answer(self, data: bytes, address: bytes, port: int) -> Replied:
        """The reply to a message from this packed address, or its outcome. Over TCP, a ready-made one if there is."""
        if len(data) < HEADER_SIZE or data[2] & 0x80 or port == 0:
            return None  # RFC 8906 asks for answers, but not to fragments, to answers (CVE-2024-2169), or to nobody
        ready = None if self._udp else self._lookup(data, address)
        if ready is not None:
            return ready
        started = self._clock()
        try:
            if self._relay is not None and (relayed := self._relay(data, address, port, started)) is not None:
                return relayed
            return self._answer_anew(data, address, port, started)
        except Exception:
            self._note_bug(f"a message of {len(data)} octets")
            return self._refuse_unread(data, Rcode.SERVFAIL, started)

    def _lookup(self, data: bytes, address: bytes) -> bytes | None:
        """What the UDP loop does by itself, for TCP."""
        key = data[2:]
        entry = self.table.common.get(key)
        if entry is None:
            entry = self.table.views.get(address, {}).get(key)
        if entry is None:
            return None
        tail, cell, rotate = entry
        if rotate is not None:
            tail = rotate()
        if tail is None:
            return None  # it has aged
        self.tally.count(cell, 0.0)
        return data[:2] + tail

    def _answer_anew(self, data: bytes, address: bytes, port: int, started: float) -> Replied:
        if data[2] & _OPCODE:
            return self._refuse_unread(data, Rcode.NOTIMP, started)
        try:
            query = read_query(data)
        except WireError as unreadable:
            return self._refuse_unread(data, unreadable.rcode, started)
        if query.qclass == PROBE_CLASS and query.qname == self._own_name:
            return write_error(data, Rcode.NOERROR)  # neither counted nor logged: nobody's question but our own
        client = Client(address, port, self.tally.transport, self.local_port, started)
        asked = Asked(data, query, client, self.blocks.match(query, client), started)
        try:
            answered = self._resolve(asked)
        except Exception as problem:
            return self._conclude(asked, self._instead(asked, problem))
        if isinstance(answered, Resolution):
            return self._conclude(asked, answered)
        reply: Outcome[bytes | None] = Outcome()
        pursue(self._conclude_later(asked, answered), reply.settle)
        return reply

    def _resolve(self, asked: Asked) -> Answered:
        """No step is asked about a version of EDNS to come, transfers, and classes that nobody here knows."""
        query, block = asked.query, asked.block
        if query.edns is not None and query.edns.version > 0:
            return _decided(Rcode.BADVERS)
        if block is None or query.qtype in _TRANSFERS or query.qclass not in self.blocks.classes:
            return _decided(Rcode.REFUSED)
        return block.chain.resolve(query, asked.client)

    async def _conclude_later(self, asked: Asked, course: Course[Resolution]) -> bytes | None:
        try:
            resolution: Resolution | Dropped = await course
        except Exception as problem:
            resolution = self._instead(asked, problem)
        try:
            return self._conclude(asked, resolution)
        except Exception:
            self._note_bug(f"a message of {len(asked.data)} octets")
            return self._refuse_unread(asked.data, Rcode.SERVFAIL, asked.started)

    def _conclude_relayed(self, crossing: Crossing, answer: Answer) -> bytes | None:
        """The long way back of a question that went the short way there."""
        data = crossing.data
        try:
            query = read_query(data)
            client = Client(crossing.address, crossing.port, self.tally.transport, self.local_port)
            asked = Asked(data, query, client, self.blocks.match(query, client), crossing.started)
            return self._conclude(asked, crossing.tail.road.resolution(answer, query, client))
        except Exception:
            self._note_bug(f"a message of {len(data)} octets")
            return self._refuse_unread(data, Rcode.SERVFAIL, crossing.started)

    def _instead(self, asked: Asked, problem: Exception) -> Resolution | Dropped:
        """What becomes of a query whose steps raised this."""
        if isinstance(problem, Dropped):
            return problem
        if isinstance(problem, BadOption):
            return _decided(Rcode.FORMERR)
        self._note_bug(f"{name_text(asked.query.qname)} {type_label(asked.query.qtype)}", problem)
        return _decided(Rcode.SERVFAIL)

    def _conclude(self, asked: Asked, resolution: Resolution | Dropped) -> bytes | None:
        """The reply, written, counted, and kept where it may be."""
        _, query, _, block, _ = asked
        if isinstance(resolution, Dropped):
            if block is not None:
                self._finish_dropped(asked, block, resolution.plugin)
            return None
        try:
            reply = self._write(query, resolution.response, block)
        except Exception as problem:
            self._note_bug(f"{name_text(query.qname)} {type_label(query.qtype)}", problem)
            resolution = _decided(Rcode.SERVFAIL)
            reply = self._write(query, resolution.response, block)
        self._finish(asked, resolution, reply)
        return reply

    def _note_bug(self, asked: str, problem: Exception | None = None) -> None:
        self.tally.panics += 1
        log.error("bug: %s over %s", asked, self.tally.transport, exc_info=problem or True)

    def _write(self, query: Query, response: Response, block: Block | None) -> bytes:
        payload_size = block.payload_size if block is not None else DEFAULT_UDP_SIZE
        edns = query.edns
        if not self._udp:
            if edns is not None and edns.option(Option.TCP_KEEPALIVE) is not None:
                response.options = (*response.options, KEEPALIVE)
            return write_response(query, response, MAX_TCP_PAYLOAD, payload_size)
        limit = MIN_UDP_PAYLOAD
        if edns is not None:
            limit = max(MIN_UDP_PAYLOAD, min(edns.udp_payload_size, payload_size))
        return write_response(query, response, limit, payload_size)

    def _finish(self, asked: Asked, resolution: Resolution, reply: bytes) -> None:
        data, query, client, block, started = asked
        cell = self._cell(query, block, resolution, len(reply))
        seconds = self._clock() - started
        self.tally.count(cell, seconds)
        if block is None:
            return
        if block.client_dependent:
            resolution.scope = Scope.CLIENT
        if not self._report(block, query, client, resolution, reply, seconds):
            self.table.offer(data, query, client.address, reply, resolution, cell, block.rotate)

    def _finish_dropped(self, asked: Asked, block: Block, plugin: str) -> None:
        _, query, client, _, started = asked
        seconds = self._clock() - started
        dnssec_ok = query.edns is not None and query.edns.dnssec_ok
        kind = Kind(block.label, type_label(query.qtype), "", plugin, dnssec_ok, "", "", query.size, 0, block.view_name)
        self.tally.count(self.tally.cell(kind), seconds)
        self._report(block, query, client, None, None, seconds)

    def _cell(self, query: Query, block: Block | None, resolution: Resolution, size: int) -> Cell:
        selection = resolution.selection
        return self.tally.cell(
            Kind(
                block.label if block is not None else _DROPPED,
                type_label(query.qtype),
                RCODE_NAMES.get(resolution.response.rcode, "other"),
                resolution.plugin,
                query.edns is not None and query.edns.dnssec_ok,
                selection.reason if selection is not None else resolution.note,
                selection.key if selection is not None else "",
                query.size,
                size,
                block.view_name if block is not None else "",
                resolution.missed,
                resolution.prefix,
            )
        )

    def _report(
        self,
        block: Block,
        query: Query,
        client: Client,
        resolution: Resolution | None,
        reply: bytes | None,
        seconds: float,
    ) -> bool:
        if block.errors is not None and resolution is not None and _is_failure(resolution):
            block.errors(query, resolution.response.ede.text if resolution.response.ede else "see the log")
        return block.log is not None and block.log(query, client, resolution, reply, seconds)

    def _refuse_unread(self, data: bytes, rcode: Rcode, started: float) -> bytes:
        reply = write_error(data, rcode)
        kind = Kind(_DROPPED, "other", rcode.name, "", False, "", "", len(data), len(reply))
        self.tally.count(self.tally.cell(kind), self._clock() - started)
        return reply


def _is_failure(resolution: Resolution) -> bool:
    """A failure that the cache repeats was told of when it came."""
    return resolution.response.rcode == _SERVFAIL and resolution.plugin != "cache"


def _decided(rcode: Rcode) -> Resolution:
    """A response of the server itself: not authoritative, and cheap enough not to be kept."""
    return Resolution(Response(rcode, flags=0), "", Scope.CLIENT)
