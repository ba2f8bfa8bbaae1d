"""The `forward` plugin: sends a query to the upstreams of one directive, within its limits, and returns the answer."""

from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import Final

from topodns.dns.message import Ede, EdeCode, Query, Response
from topodns.dns.name import ROOT, Name, is_below_any
from topodns.dns.rrtype import Rcode
from topodns.dns.wire_format import HEADER_SIZE, QUESTION_TAIL_SIZE
from topodns.plugins.forward.counts import ForwardCounts
from topodns.plugins.forward.flight import DEADLINE, Answer, Flight, FlightPlan, FlightWaiter, Key
from topodns.plugins.forward.hedging import Impatience
from topodns.plugins.forward.limits import InFlight
from topodns.plugins.forward.messages import Options, Outgoing
from topodns.plugins.forward.pool import UpstreamPool
from topodns.plugins.forward.settings import Forward, UpstreamPolicy
from topodns.query.deferred import Deferred, Outcome, Timers
from topodns.query.plugin import Client, Dropped, Resolution, Scope
from topodns.query.upstream import Upstream

# Seconds without a reply after which a second upstream is asked as well (hedging): longer than nearly every reply
# takes, and short enough that a client notices nothing when an upstream stops responding.
PATIENCE: Final = 0.5

_CLIENT: Final = Scope.CLIENT
_TOO_MANY: Final = Ede(EdeCode.OTHER, "as many questions wait for upstreams as max_concurrent allows")


class AwaitedAnswer(Outcome[Answer | None]):
    """The `FlightWaiter` of a deferred answer: settles with the answer, or None when it is preempted."""

    __slots__ = ("address", "flight")

    flight: Flight

    def __init__(self, address: bytes) -> None:
        super().__init__()
        self.address = address

    def land(self, answer: Answer) -> None:
        self.settle(answer)

    def preempt(self) -> None:
        self.flight.drop(self)
        self.settle(None)


class Forwarding:
    """Forwards queries to the upstreams of one directive; equal queries in flight share one exchange (single-flight).

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
        may_ask_twice: Callable[[], bool] = lambda: True,
    ) -> None:
        """`deadline`: seconds within which a query is answered, with SERVFAIL if need be.

        `names_upstreams`: whether the extended error of such a SERVFAIL contains the addresses of the upstreams.
        `may_ask_twice`: whether a hedged attempt may be made now.
        `options`: EDNS options sent with every query.
        """
        self.outgoing = Outgoing(options)
        self._settings = settings
        self._takes_all = ROOT in settings.origins and not settings.excepted
        self._max_concurrent = settings.max_concurrent
        # Whether a query goes over TCP to an upstream without TLS: when the client used TCP, when it used UDP.
        self._over_tcp = (settings.force_tcp or not settings.prefer_udp, settings.force_tcp)
        self._in_flight = in_flight
        self._counts = counts
        self._may_pass = followed and (bool(settings.next_rcodes) or settings.next_on_nodata)
        self._pool = UpstreamPool(settings, upstreams, timers, rng, counts)
        impatience = _impatience(settings, timers)
        attempts = _max_attempts(settings)
        self._plan = FlightPlan(
            settings, self._pool, timers, counts, impatience, attempts, deadline, names_upstreams, may_ask_twice
        )
        self._flights: dict[Key, Flight] = {}
        self._waiting = 0  # queries that wait, which may share flights

    def __call__(self, query: Query, client: Client) -> Resolution | Deferred[Resolution | None] | None:
        """The answer, None for a name that is not forwarded. Raises Dropped when too many queries wait already.

        The deferred answer raises Dropped when the query is preempted. REFUSED beyond `max_concurrent`;
        SERVFAIL with the reason as an extended error (EDE) when no upstream answers in time.
        """
        if not (self._takes_all or self._takes(query.qname)):
            return None
        if 0 < self._max_concurrent <= self._waiting:
            self._counts.max_concurrent_rejects += 1
            return Resolution(Response(Rcode.REFUSED, flags=0, ede=_TOO_MANY), "forward", _CLIENT)
        message = self.outgoing.question_message(query)
        question = message[HEADER_SIZE : HEADER_SIZE + len(query.spelling) + QUESTION_TAIL_SIZE]
        dnssec_ok = query.edns is not None and query.edns.dnssec_ok
        awaited = AwaitedAnswer(client.address)
        if not self.board(message, question, dnssec_ok, client.transport == "udp", awaited, client.asked):
            self._in_flight.note_drop(client.address)
            raise Dropped("forward")
        return self._resolve(awaited)

    def board(
        self, message: bytes, question: bytes, dnssec_ok: bool, udp: bool, waiter: FlightWaiter, asked: float
    ) -> bool:
        """Attach the waiter to the flight of this message, which is started unless it is in progress.

        There are never two flights for one message (RFC 5452 section 5). `asked` is the time of the client's query, 0.0
        for now, so that time spent on other names for it counts. False when too many queries wait, in total or of this
        client. See `Flight` for the other arguments; the waiter may get its answer before this returns.
        """
        if 0 < self._max_concurrent <= self._waiting or not self._in_flight.enter(waiter):
            return False
        self._waiting += 1
        key = (message, self._over_tcp[udp])
        flight = self._flights.get(key)
        if flight is not None:
            waiter.flight = flight
            flight.waiters[waiter] = None
            return True
        flight = self._flights[key] = Flight(self._plan, key, question, dnssec_ok, waiter, self)
        waiter.flight = flight
        flight.start(asked)
        return True

    @property
    def all_down(self) -> bool:
        """Whether all upstreams are down (see `Health`)."""
        return self._pool.all_down

    def watch(self) -> None:
        """Keep `UpstreamCounts.reachable` of each upstream up to date from now on, also without queries."""
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

    def landed(self, flight: Flight) -> None:
        """See `flight.FlightOwner`."""
        del self._flights[flight.key]

    def answered(self, waiters: Collection[FlightWaiter]) -> None:
        """See `flight.FlightOwner`."""
        self._waiting -= len(waiters)
        for waiter in waiters:
            self._in_flight.leave(waiter)

    def dropped(self, flight: Flight) -> None:
        """See `flight.FlightOwner`."""
        self._waiting -= 1
        if not flight.waiters and not flight.over:
            del self._flights[flight.key]
            flight.cancel()

    async def _resolve(self, awaited: AwaitedAnswer) -> Resolution | None:
        answer = await awaited
        if answer is None:
            raise Dropped("forward")
        if self._may_pass and self._passes(answer):
            return None
        return self.resolution(answer)

    def resolution(self, answer: Answer) -> Resolution:
        """A resolution for one waiter, with a response of its own that the plugins above may change."""
        response = Response(
            answer.rcode, answer.answer, answer.authority, answer.additional, answer.flags, 0, answer.ede
        )
        return Resolution(response, "forward", _CLIENT, upstream=answer.upstream, problem=answer.problem)

    def _passes(self, answer: Answer) -> bool:
        """Whether the query goes on to the next `forward`."""
        if answer.failed:
            return False
        if answer.rcode in self._settings.next_rcodes:
            return True
        return self._settings.next_on_nodata and answer.rcode == Rcode.NOERROR and not answer.answer


def asks_another(settings: Forward) -> bool:
    """Whether a late reply makes the directive ask a further upstream (hedging).

    Not with `sequential`, whose upstreams are asked in turn because they may give different answers.
    """
    alike = settings.policy is not UpstreamPolicy.SEQUENTIAL and len(settings.upstreams) > 1
    return alike and settings.read_timeout > PATIENCE


def _impatience(settings: Forward, timers: Timers) -> Impatience | None:
    return Impatience(PATIENCE, timers) if asks_another(settings) else None


def _max_attempts(settings: Forward) -> int:
    given = settings.max_connect_attempts
    return 2 * len(settings.upstreams) if given is None else given
