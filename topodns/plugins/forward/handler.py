"""The `forward` plugin: which names it takes, the messages to upstreams, the resolution of an answer, and `next`.

A message is built anew, so that only the question and some flags of a client's query are passed on. It is without its
id, which the transport adds.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from topodns.dns.message import Ede, EdeCode, Edns, Flag, Query, Response
from topodns.dns.name import ROOT, Name, is_below_any
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.wire_format import (
    DNSSEC_OK,
    HEADER_SIZE,
    OPTION_HEAD_SIZE,
    QUESTION_TAIL_SIZE,
    ROOT_RECORD_HEAD_SIZE,
    pack_header_without_id,
    pack_option_head,
    pack_question_tail,
    pack_root_record_head,
)
from topodns.plugins.forward.flight import DEADLINE, FlightContext, HedgeTimer, UpstreamAnswer
from topodns.plugins.forward.sanitize import PLAIN_RECORDS, wanted_of
from topodns.plugins.forward.settings import HEDGE_AFTER, Forward
from topodns.plugins.forward.single_flight import SharedFlight, SingleFlight
from topodns.plugins.forward.upstreams import ForwardCounts, UpstreamPool
from topodns.plugins.forward.waiting_limit import InFlight
from topodns.query.deferred import Deferred, Outcome, Timers
from topodns.query.plugin import Client, Dropped, Resolution, Scope, forwarded_options
from topodns.query.upstream import QUESTION_AT, Upstream

Options = tuple[tuple[int, bytes], ...]
"""EDNS options: code and data."""

PAYLOAD_SIZE: Final = 1232  # our own UDP payload size, whatever the client's is (RFC 9715)

_COPIED: Final = Flag.RD | Flag.AD | Flag.CD  # all flags with a meaning in a query (RFC 4035 3.2, RFC 6840 5.7)
# For each set of copied flags, the header of a query without and with an OPT record.
_HEADERS: Final = {
    flags: (pack_header_without_id(flags, 1, 0, 0, 0), pack_header_without_id(flags, 1, 0, 0, 1))
    for flags in (rd | ad | cd for rd in (0, Flag.RD) for ad in (0, Flag.AD) for cd in (0, Flag.CD))
}
_CLIENT: Final = Scope.CLIENT
_TOO_MANY: Final = Ede(EdeCode.OTHER, "as many questions wait for upstreams as max_concurrent allows")


class Outgoing:
    """Builds the messages to the upstreams of one directive, all with the same EDNS `options`.

    EDNS is hop by hop (RFC 6891 section 6.2.6): the OPT record is our own, holds only these options and the
    `forwarded_options` of the query, and is present if the query has one or there are options. Equal messages are the
    same question.
    """

    def __init__(self, options: Options = ()) -> None:
        packed = b"".join(pack_option_head(code, len(data)) + data for code, data in options)
        plain, dnssec_ok = _opt_record(0, packed), _opt_record(DNSSEC_OK, packed)
        self.options = options
        self._always = bool(options)
        # Indexed by whether the client sent an OPT record, then by its DO bit, which needs an OPT record.
        self._opts = ((plain if options else b"", b""), (plain, dnssec_ok))

    def question_message(self, query: Query) -> bytes:
        """The query for an upstream: the name in lower case, RD, AD, CD and DO as in the client's query."""
        edns = query.edns
        # Length octets are below 64, so bytes.lower leaves them alone.
        question = query.spelling.lower() + pack_question_tail(query.qtype, query.qclass)
        known = edns is not None
        opt = self.opt(known, edns is not None and edns.dnssec_ok)
        if edns is not None and edns.options:
            opt = self._with_forwarded(opt, edns, PAYLOAD_SIZE - HEADER_SIZE - len(question))
        return self.header(query.flags, known) + question + opt

    def header(self, flags: int, edns: bool) -> bytes:
        """The header of a message with these flags; `edns`: the client sent an OPT record."""
        return _HEADERS[flags & _COPIED][edns or self._always]

    def opt(self, edns: bool, dnssec_ok: bool) -> bytes:
        """The OPT record of the message, b"" for none. `edns`: the client sent one; `dnssec_ok`: with DO."""
        return self._opts[edns][dnssec_ok]

    def _with_forwarded(self, opt: bytes, edns: Edns, limit: int) -> bytes:
        """The OPT record with the `forwarded_options` of the query, in at most `limit` octets.

        Options that would make it longer are left out, and those of a code that is among our own `options`: two node
        identities would contradict each other.
        """
        options, own = opt[ROOT_RECORD_HEAD_SIZE:], {code for code, _ in self.options}
        for code, data in forwarded_options(edns):
            size = ROOT_RECORD_HEAD_SIZE + len(options) + OPTION_HEAD_SIZE + len(data)
            if code not in own and size <= limit:
                options += pack_option_head(code, len(data)) + data
        return _opt_record(DNSSEC_OK if edns.dnssec_ok else 0, options)


def _opt_record(flags: int, options: bytes) -> bytes:
    return pack_root_record_head(0, RRType.OPT, PAYLOAD_SIZE, flags, len(options)) + options


class AwaitedAnswer(Outcome[UpstreamAnswer | None]):
    """The `FlightWaiter` of a deferred answer: settles with the answer, or None when it is preempted."""

    __slots__ = ("address", "flight")

    flight: SharedFlight | None
    on_answer = Outcome[UpstreamAnswer | None].settle

    def __init__(self, address: bytes) -> None:
        super().__init__()
        self.address = address

    def preempt(self) -> None:
        if self.flight is not None:
            self.flight.drop(self)
        self.settle(None)


class Forwarding:
    """Forwards queries to the upstreams of one directive; equal queries in flight share one exchange.

    `upstreams` are those of `settings.upstreams`, in the same order. `followed`: the next plugin is a `forward` as
    well, so that `next` applies (as in CoreDNS). Answers have the scope CLIENT, because only a cache that counts down
    their TTLs may keep them.
    """

    def __init__(
        self,
        settings: Forward,
        upstreams: Sequence[Upstream],
        timers: Timers,
        rng: Random,
        in_flight: InFlight,
        counts: ForwardCounts,
        followed: bool = False,
        options: Options = (),
        deadline: float = DEADLINE,
        names_upstreams: bool = False,
        may_hedge: Callable[[], bool] = lambda: True,
    ) -> None:
        """`deadline`: seconds within which a query is answered, with SERVFAIL if need be.

        `names_upstreams`: whether the extended error of such a SERVFAIL contains the addresses of the upstreams.
        `may_hedge`: whether a hedged attempt may be made now.
        `options`: EDNS options sent with every query, beside those that it forwards.
        """
        self.outgoing = Outgoing(options)
        self._settings = settings
        self._takes_all = ROOT in settings.origins and not settings.excepted
        self._in_flight = in_flight
        self._counts = counts
        self._may_pass = followed and (bool(settings.next_rcodes) or settings.next_on_nodata)
        self._pool = UpstreamPool(settings=settings, upstreams=upstreams, timers=timers, rng=rng, counts=counts)
        hedge_timer = HedgeTimer(HEDGE_AFTER, timers) if settings.hedges else None
        attempts = _max_attempts(settings)
        context = FlightContext(
            settings=settings,
            pool=self._pool,
            timers=timers,
            counts=counts,
            hedge_timer=hedge_timer,
            max_attempts=attempts,
            deadline=deadline,
            names_upstreams=names_upstreams,
            may_hedge=may_hedge,
        )
        self.single_flight = SingleFlight(context, in_flight)

    def __call__(self, query: Query, client: Client) -> Resolution | Deferred[Resolution | None] | None:
        """The answer, None for a name that is not forwarded. Raises Dropped when too many queries wait already.

        The deferred answer raises Dropped when the query is preempted, and is None when the query goes on to the next
        `forward` (`next`). REFUSED beyond `max_concurrent`; SERVFAIL with the reason as an extended error (EDE) when no
        upstream answers in time.
        """
        if not (self._takes_all or self._takes(query.qname)):
            return None
        single_flight = self.single_flight
        if 0 < single_flight.max_concurrent <= single_flight.waiting:
            self._counts.max_concurrent_rejects += 1
            return Resolution(Response(Rcode.REFUSED, flags=0, ede=_TOO_MANY), "forward", _CLIENT)
        message = self.outgoing.question_message(query)
        question = message[QUESTION_AT : QUESTION_AT + len(query.spelling) + QUESTION_TAIL_SIZE]
        edns = query.edns
        wanted = PLAIN_RECORDS if edns is None else wanted_of(edns)
        awaited = AwaitedAnswer(client.address)
        if not single_flight.join(message, question, wanted, client.transport == "udp", awaited, client.asked):
            self._in_flight.note_drop(client.address)
            raise Dropped("forward")
        return self._resolve(awaited)

    @property
    def all_down(self) -> bool:
        """Whether all upstreams are down (see `UpstreamHealth`)."""
        return self._pool.all_down

    def watch(self) -> None:
        """Also probe upstreams without traffic from now on, so that `UpstreamCounts.reachable` is up to date.

        Not with `max_fails 0`.
        """
        self._pool.watch()

    def close(self) -> None:
        """Stop the probes. Flights in progress finish; the owner of the upstreams closes these."""
        self._pool.close()

    def _takes(self, qname: Name) -> bool:
        origins = self._settings.origins
        if not is_below_any(qname, origins):
            return False
        # FROM itself is forwarded even if `except` lists it, as in CoreDNS.
        return qname in origins or not is_below_any(qname, self._settings.excepted)

    async def _resolve(self, awaited: AwaitedAnswer) -> Resolution | None:
        answer = await awaited
        if answer is None:
            raise Dropped("forward")
        if self._may_pass and self._passes(answer):
            return None
        return self.resolution(answer)

    def resolution(self, answer: UpstreamAnswer) -> Resolution:
        """A resolution for one waiter, with a response of its own that the plugins above may change."""
        response = Response(
            answer.rcode,
            answer.answer,
            answer.authority,
            answer.additional,
            answer.flags,
            0,
            answer.ede,
            answer.options,
        )
        return Resolution(response, "forward", _CLIENT, upstream=answer.upstream, problem=answer.problem)

    def _passes(self, answer: UpstreamAnswer) -> bool:
        """Whether the query goes on to the next `forward`."""
        if answer.failed:
            return False
        if answer.rcode in self._settings.next_rcodes:
            return True
        return self._settings.next_on_nodata and answer.rcode == Rcode.NOERROR and not answer.answer


def _max_attempts(settings: Forward) -> int:
    given = settings.max_connect_attempts
    return 2 * len(settings.upstreams) if given is None else given
