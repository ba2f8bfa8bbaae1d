"""The query handler of one socket: octets in, octets out, around the plugin chain of the matching server block.

Invalid and unsupported queries are refused in `Handler.answer` and `_answer_anew`, in this order. No
message can raise an exception past the handler: an unforeseen one becomes SERVFAIL, a traceback and a count.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from topodns.dns.message import DEFAULT_UDP_SIZE, Option, Query, Response
from topodns.dns.name import Name, name_text
from topodns.dns.rrtype import RCODE_LABELS, Rcode, RRType
from topodns.dns.wire_format import HEADER_SIZE, reply_limit
from topodns.dns.wire_reader import WireError, read_query
from topodns.dns.wire_writer import write_error, write_response
from topodns.dnsserver.fast_forward.relay import Crossing, Relay
from topodns.dnsserver.packet_cache.lookup import ready_reply
from topodns.dnsserver.packet_cache.table import PacketCache
from topodns.dnsserver.router import Block, BlockTable
from topodns.plugins.forward.flight import UpstreamAnswer
from topodns.query.counters import BUCKET_OF_SIZE, TYPE_LABELS, QueryCounters, ReplyKind, size_bucket, type_label
from topodns.query.deferred import Deferred, DeferredReply, outcome_of
from topodns.query.plugin import Answered, BadOption, Client, Dropped, Resolution, Scope

if TYPE_CHECKING:
    from topodns.dnsserver.fast_kubernetes.responder import Responder

log = logging.getLogger(__name__)


KEEPALIVE: Final = (int(Option.TCP_KEEPALIVE), (100).to_bytes(2, "big"))  # RFC 7828: 10 s idle, in units of 100 ms

PROBE_CLASS: Final = 0xFF00  # for private use (RFC 6895 section 3.2)

_OPCODE: Final = 0x78  # in the third octet
_TRANSFERS: Final = frozenset({RRType.AXFR, RRType.IXFR})
_DROPPED: Final = "dropped"  # CoreDNS's label `zone` for queries without a server block

Replied = bytes | DeferredReply | None
"""The reply, None to send none, or one of both later."""


class Asked(NamedTuple):
    """A query being answered. `block` is None if no server block matches."""

    data: bytes
    query: Query
    client: Client
    block: Block | None
    started: float


class Handler:
    """Answers the messages of one socket from its server blocks, and offers replies to the packet cache (`table`)."""

    _respond: "Responder | None"

    def __init__(
        self,
        blocks: BlockTable,
        table: PacketCache,
        socket_counters: QueryCounters,
        clock: Callable[[], float],
        local_port: int,
        own_name: Name | None = None,
    ) -> None:
        """`own_name`: a query for it in PROBE_CLASS gets NOERROR, which no other instance sends (RFC 6895)."""
        self.blocks = blocks
        self.table = table
        self.socket_counters = socket_counters
        self._clock = clock
        self.local_port = local_port
        self._own_name = own_name
        self._udp = socket_counters.transport == "udp"
        self._bare_limit = reply_limit(self._udp, 0, blocks.payload_size)  # of replies to queries without EDNS
        self._relay = (
            Relay(blocks.fast_routes, socket_counters, clock, self._conclude_relayed, self._ask_again)
            if blocks.fast_routes
            else None
        )
        self._respond = None
        if blocks.fast_zones:
            # Imported here: a node cache has no `kubernetes`.
            from topodns.dnsserver.fast_kubernetes.responder import Responder

            self._respond = Responder(blocks.fast_zones, table, socket_counters, clock)

    def succeeded_by(self, blocks: BlockTable, table: PacketCache) -> "Handler":
        """A handler of the same socket for the server blocks of a reload."""
        return Handler(
            blocks=blocks,
            table=table,
            socket_counters=self.socket_counters,
            clock=self._clock,
            local_port=self.local_port,
            own_name=self._own_name,
        )

    def answer(self, data: bytes, address: bytes, port: int) -> Replied:
        """The reply to a message from this packed address, or its outcome. Over TCP, the packet cache comes first; over
        UDP it was looked up before (`answer_batch`). None for responses, for messages shorter than a header, and for
        port 0.
        """
        if len(data) < HEADER_SIZE or data[2] & 0x80 or port == 0:
            return None  # RFC 8906 wants replies, but not to fragments, responses (CVE-2024-2169), or port 0
        if not self._udp and (ready := ready_reply(self.table, data[2:], address)) is not None:
            tail, cell = ready
            self.socket_counters.count(cell, 0.0, len(data), 2 + len(tail))
            return data[:2] + tail
        started = self._clock()
        try:
            if self._relay is not None and (relayed := self._relay(data, address, port, started)) is not None:
                return relayed
            if self._respond is not None and (reply := self._respond(data, address, started)) is not None:
                return reply
            return self._answer_anew(data, address, port, started)
        except Exception:
            self._note_bug(f"a message of {len(data)} octets")
            return self._refuse_unread(data, Rcode.SERVFAIL, started)

    def _answer_anew(self, data: bytes, address: bytes, port: int, started: float) -> Replied:
        """The reply of the chain, or a refusal: NOTIMP for opcodes other than QUERY, the rcode of a WireError, BADVERS
        for EDNS versions above 0, REFUSED for transfers, and for classes and names that no block serves.

        Calls little for what can be done here: each query that misses the packet cache comes here.
        """
        if data[2] & _OPCODE:
            return self._refuse_unread(data, Rcode.NOTIMP, started)
        try:
            query = read_query(data)
        except WireError as unreadable:
            return self._refuse_unread(data, unreadable.rcode, started)
        blocks, edns = self.blocks, query.edns
        if query.qclass == PROBE_CLASS and query.qname == self._own_name:
            return write_error(data, Rcode.NOERROR)  # neither counted nor logged: only this process asks it
        limit = self._bare_limit
        if edns is not None:
            limit = reply_limit(self._udp, edns.udp_payload_size, blocks.payload_size)
        client = Client(
            address=address,
            port=port,
            transport=self.socket_counters.transport,
            local_port=self.local_port,
            asked=started,
            depth=0,
            limit=limit,
        )
        block = blocks.only or blocks.match(query, client)
        asked = Asked(data, query, client, block, started)
        try:
            if edns is not None and edns.version > 0:
                answered: Answered = _decided(Rcode.BADVERS)
            elif block is None or query.qtype in _TRANSFERS or query.qclass not in blocks.classes:
                answered = _decided(Rcode.REFUSED)
            elif block.client_pods is not None and (
                refused := block.client_pods.refusal(query, client, block.whole_scope)
            ):
                answered = refused
            else:
                answered = block.chain.resolve(query, client)
        except Exception as problem:
            return self._conclude(asked, self._instead(asked, problem))
        if isinstance(answered, Resolution):
            return self._conclude(asked, answered)
        return outcome_of(self._conclude_later(asked, answered))

    async def _conclude_later(self, asked: Asked, deferred: Deferred[Resolution]) -> bytes | None:
        """The reply with a deferred answer; not kept if dependencies of any answer changed while it waited.

        Plugins may have read them before the wait, when the change found no entry to remove.
        """
        changes = self.table.changes
        try:
            resolution: Resolution | Dropped = await deferred
        except Exception as problem:
            resolution = self._instead(asked, problem)
        if self.table.changes != changes and isinstance(resolution, Resolution):
            resolution.scope = Scope.CLIENT
        try:
            return self._conclude(asked, resolution)
        except Exception:
            self._note_bug(f"a message of {len(asked.data)} octets")
            return self._refuse_unread(asked.data, Rcode.SERVFAIL, asked.started)

    def _conclude_relayed(self, crossing: Crossing, answer: UpstreamAnswer | None) -> bytes | None:
        """Fallback of the fast path: the upstream's answer is not plain enough to relay as octets.

        Builds the Query and Resolution now, and concludes as for an answer of the chain. `answer` None: send no reply.
        """
        data = crossing.data
        try:
            query = read_query(data)
            accepted = query.edns.udp_payload_size if query.edns is not None else 0
            limit = reply_limit(self._udp, accepted, self.blocks.payload_size)
            client = Client(
                address=crossing.address,
                port=crossing.port,
                transport=self.socket_counters.transport,
                local_port=self.local_port,
                asked=0.0,
                depth=0,
                limit=limit,
            )
            asked = Asked(data, query, client, self.blocks.match(query, client), crossing.started)
            if answer is None:
                return self._conclude(asked, Dropped("forward"))
            return self._conclude(asked, crossing.tail.fast_route.resolution(answer, query, client))
        except Exception:
            self._note_bug(f"a message of {len(data)} octets")
            return self._refuse_unread(data, Rcode.SERVFAIL, crossing.started)

    def _ask_again(self, crossing: Crossing) -> None:
        """Answer a question anew by the chain: the upstream wants to know the client (`plugins.cache.pod_naming`)."""
        replied = self._answer_anew(crossing.data, crossing.address, crossing.port, crossing.started)
        if replied is None or isinstance(replied, bytes):
            crossing.settle(replied)
        else:
            replied.deliver_to(Crossing.settle, crossing)

    def _instead(self, asked: Asked, problem: Exception) -> Resolution | Dropped:
        """The result of a query whose plugins raised `problem`: no reply (Dropped), FORMERR, or SERVFAIL for a bug."""
        if isinstance(problem, Dropped):
            return problem
        if isinstance(problem, BadOption):
            return _decided(Rcode.FORMERR)
        self._note_bug(f"{name_text(asked.query.qname)} {type_label(asked.query.qtype)}", problem)
        return _decided(Rcode.SERVFAIL)

    def _conclude(self, asked: Asked, resolution: Resolution | Dropped) -> bytes | None:
        """Write the reply, count it, log it (`errors`, `log`), and offer it to the packet cache. None: no reply.

        A reply that `log` logs is not offered: the packet cache would not log the next one.
        """
        _, query, _, block, _ = asked
        if isinstance(resolution, Dropped):
            if block is not None:
                self._finish_dropped(asked, block, resolution.plugin)
            return None
        if block is not None and block.client_pods is not None:
            block.client_pods.tell(query, asked.client, block.whole_scope, resolution.response)
        try:
            reply = self._write(asked, resolution.response)
        except Exception as problem:
            self._note_bug(f"{name_text(query.qname)} {type_label(query.qtype)}", problem)
            resolution = _decided(Rcode.SERVFAIL)
            reply = self._write(asked, resolution.response)
        self._finish(asked, resolution, reply)
        return reply

    def _note_bug(self, asked: str, problem: Exception | None = None) -> None:
        self.socket_counters.panics += 1
        log.error("bug: %s over %s", asked, self.socket_counters.transport, exc_info=problem or True)

    def _write(self, asked: Asked, response: Response) -> bytes:
        query, block, edns = asked.query, asked.block, asked.query.edns
        payload_size = block.payload_size if block is not None else DEFAULT_UDP_SIZE
        if not self._udp and edns is not None and edns.option(Option.TCP_KEEPALIVE) is not None:
            response.options = (*response.options, KEEPALIVE)
        # Mostly the limit that the plugins were given: the blocks of a listener have the same payload size.
        limit = asked.client.limit
        if payload_size != self.blocks.payload_size:
            limit = reply_limit(self._udp, edns.udp_payload_size if edns is not None else 0, payload_size)
        return write_response(query, response, limit, payload_size)

    def _finish(self, asked: Asked, resolution: Resolution, reply: bytes) -> None:
        data, query, client, block, started = asked
        selection, rcode, sent = resolution.selection, resolution.response.rcode, len(reply)
        kind = ReplyKind(
            origin=block.label if block is not None else _DROPPED,
            qtype=TYPE_LABELS.get(query.qtype, "other"),
            rcode=RCODE_LABELS[rcode],
            plugin=resolution.plugin,
            dnssec_ok=query.edns is not None and query.edns.dnssec_ok,
            outcome=selection.reason if selection is not None else "",
            topology_key=selection.key if selection is not None else "",
            query_bucket=BUCKET_OF_SIZE[query.size],
            response_bucket=BUCKET_OF_SIZE[sent],
            view=block.view_name if block is not None else "",
            missed=resolution.missed,
            prefix=resolution.prefix,
            detail=resolution.detail,
        )
        seconds = self._clock() - started
        cell = self.socket_counters.count_kind(kind, seconds, query.size, sent)
        if block is None:
            return
        if block.scope > resolution.scope:
            resolution.scope = block.scope
        if rcode == Rcode.SERVFAIL or block.log is not None:
            logged = self._report(block, query, client, resolution, reply, seconds)
            if logged:  # the packet cache must not answer the next one
                return
        self.table.offer(data, query, client.address, reply, resolution, cell, block.rotate, block.variants)

    def _finish_dropped(self, asked: Asked, block: Block, plugin: str) -> None:
        _, query, client, _, started = asked
        seconds = self._clock() - started
        dnssec_ok = query.edns is not None and query.edns.dnssec_ok
        asked_in = size_bucket(query.size)
        kind = ReplyKind(
            origin=block.label,
            qtype=type_label(query.qtype),
            rcode="",
            plugin=plugin,
            dnssec_ok=dnssec_ok,
            outcome="",
            topology_key="",
            query_bucket=asked_in,
            response_bucket=0,
            view=block.view_name,
        )
        self.socket_counters.count_kind(kind, seconds, query.size, 0)
        self._report(block, query, client, None, None, seconds)

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
            block.errors(query, resolution.problem or _failure_text(resolution))
        return block.log is not None and block.log(query, client, resolution, reply, seconds)

    def _refuse_unread(self, data: bytes, rcode: int, started: float) -> bytes:
        reply = write_error(data, rcode)
        kind = ReplyKind(
            origin=_DROPPED,
            qtype="other",
            rcode=RCODE_LABELS[rcode],
            plugin="",
            dnssec_ok=False,
            outcome="",
            topology_key="",
            query_bucket=size_bucket(len(data)),
            response_bucket=size_bucket(len(reply)),
        )
        self.socket_counters.count_kind(kind, self._clock() - started, len(data), len(reply))
        return reply


def _is_failure(resolution: Resolution) -> bool:
    """Whether `errors` logs this resolution: a SERVFAIL. One from the cache is not logged again."""
    return resolution.response.rcode == Rcode.SERVFAIL and resolution.plugin != "cache"


def _failure_text(resolution: Resolution) -> str:
    """What `errors` logs of a SERVFAIL whose plugin gives no reason: an upstream's own, or that of a bug."""
    ede = resolution.response.ede
    if ede is not None and ede.text:
        return ede.text
    return (
        f"{resolution.plugin}: the answer is SERVFAIL" if resolution.plugin else "a bug, with its traceback in the log"
    )


def _decided(rcode: int) -> Resolution:
    """A response of the server itself: not authoritative, and not kept because it is cheap to make."""
    return Resolution(Response(rcode, flags=0), "", Scope.CLIENT)
