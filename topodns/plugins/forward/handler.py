"""The `forward` plugin: which names it takes, the resolution of an upstream's answer, and `next`."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from topodns.dns.message import Ede, EdeCode, Query, Response
from topodns.dns.name import ROOT, Name, is_below_any
from topodns.dns.rrtype import Rcode
from topodns.dns.wire_format import QUESTION_TAIL_SIZE
from topodns.plugins.forward.counts import ForwardCounts
from topodns.plugins.forward.flight import DEADLINE, FlightContext, UpstreamAnswer
from topodns.plugins.forward.hedging import HEDGE_AFTER, HedgeTimer, hedges
from topodns.plugins.forward.limits import InFlight
from topodns.plugins.forward.messages import QUESTION_AT, Options, Outgoing
from topodns.plugins.forward.policy import UpstreamPool
from topodns.plugins.forward.sanitize import PLAIN_RECORDS, wanted_of
from topodns.plugins.forward.settings import Forward
from topodns.plugins.forward.single_flight import SharedFlight, SingleFlight
from topodns.query.deferred import Deferred, Outcome, Timers
from topodns.query.plugin import Client, Dropped, Resolution, Scope
from topodns.query.upstream import Upstream

_CLIENT: Final = Scope.CLIENT
_TOO_MANY: Final = Ede(EdeCode.OTHER, "as many questions wait for upstreams as max_concurrent allows")


class AwaitedAnswer(Outcome[UpstreamAnswer | None]):
    """The `FlightWaiter` of a deferred answer: settles with the answer, or None when it is preempted."""

    __slots__ = ("address", "flight")

    flight: SharedFlight | None

    def __init__(self, address: bytes) -> None:
        super().__init__()
        self.address = address

    def on_answer(self, answer: UpstreamAnswer) -> None:
        self.settle(answer)

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
        hedge_timer = HedgeTimer(HEDGE_AFTER, timers) if hedges(settings) else None
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
