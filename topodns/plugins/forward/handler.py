"""The step of one `forward` directive: which questions it takes, how many at a time, and what comes of them."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from topodns.dns.message import Ede, EdeCode, Query, Rcode, Response
from topodns.dns.names import ROOT, Name, is_subdomain
from topodns.dns.wire import HEADER_SIZE
from topodns.resolve.course import Course, Timers
from topodns.resolve.exchange import Upstream
from topodns.resolve.forward.answer import Answer
from topodns.resolve.forward.counts import ForwardCounts
from topodns.resolve.forward.flight import DEADLINE, Flight, Key, Plan
from topodns.resolve.forward.impatience import Impatience
from topodns.resolve.forward.limits import InFlight
from topodns.resolve.forward.outgoing import Options, Outgoing
from topodns.resolve.forward.pool import Pool
from topodns.resolve.step import Client, Dropped, Resolution, Scope
from topodns.settings.forward import Forward, Policy

# Seconds without a word after which a second upstream is asked, too: longer than nearly every answer takes, and short
# enough that a client notices nothing of an upstream that died without a sound.
PATIENCE: Final = 0.5

_CLIENT: Final = Scope.CLIENT
_QUESTION_TAIL: Final = 4  # octets of type and class
_TOO_MANY: Final = Ede(EdeCode.OTHER, "as many questions wait for upstreams as max_concurrent allows")


class Forwarding:
    """Asks the upstreams of one directive; equal questions that are under way at the same time are asked once.

    `upstreams` are those of `settings.upstreams`, in the same order. `followed`: the next step is a `forward` as
    well, so that `next` has a meaning (as in CoreDNS). Its answers are to be kept by a cache that ages them, so their
    scope is CLIENT.
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
    ) -> None:
        """`deadline`: seconds in which a question is answered, by SERVFAIL if need be.

        `options`: what upstreams are told with every question, whoever asks it.
        """
        self.outgoing = Outgoing(options)
        self._settings = settings
        self._takes_all = ROOT in settings.origins and not settings.excepted
        self._max_concurrent = settings.max_concurrent
        # Whether a question goes over TCP, where an upstream knows both: of a client over TCP, of one over UDP.
        self._over_tcp = (settings.force_tcp or not settings.prefer_udp, settings.force_tcp)
        self._in_flight = in_flight
        self._counts = counts
        self._may_pass = followed and (bool(settings.next_rcodes) or settings.next_on_nodata)
        self._pool = Pool(settings, upstreams, timers, rng, counts)
        impatience = _impatience(settings, timers)
        self._plan = Plan(settings, self._pool, timers, counts, impatience, _max_attempts(settings), deadline)
        self._flights: dict[Key, Flight] = {}
        self._waiting = 0  # questions, however few flights they wait for

    def __call__(self, query: Query, client: Client) -> Resolution | Course[Resolution | None] | None:
        """None where the name is not forwarded. Raises Dropped where too many questions wait already.

        REFUSED beyond `max_concurrent`. SERVFAIL where no upstream has answered in time, with the reason as EDE.
        """
        if not (self._takes_all or self._takes(query.qname)):
            return None
        if 0 < self._max_concurrent <= self._waiting:
            self._counts.max_concurrent_rejects += 1
            return Resolution(Response(Rcode.REFUSED, flags=0, ede=_TOO_MANY), "forward", _CLIENT)
        message = self.outgoing.question_message(query)
        question = message[HEADER_SIZE : HEADER_SIZE + len(query.spelling) + _QUESTION_TAIL]
        dnssec_ok = query.edns is not None and query.edns.dnssec_ok
        udp = client.transport == "udp"
        flight = self.board(message, question, dnssec_ok, udp, client.address, client.asked)
        if flight is None:
            self._in_flight.note_drop(client.address)
            raise Dropped("forward")
        return self._resolve(flight)

    def board(
        self,
        message: bytes,
        question: bytes,
        dnssec_ok: bool,
        udp: bool,
        address: bytes,
        asked: float,
        then: Callable[[Answer], object] | None = None,
    ) -> Flight | None:
        """The flight of this message, new where none is under way (RFC 5452 section 5: never two at a time).

        `asked` is when the client did, 0.0 for now: what was spent on other questions for it counts. None where too
        many questions wait, of all or of this client. See `Flight` for what is what; `then` may be called before this
        returns.
        """
        if 0 < self._max_concurrent <= self._waiting or not self._in_flight.enter(address):
            return None
        self._waiting += 1
        key = (message, self._over_tcp[udp])
        flight = self._flights.get(key)
        if flight is not None:
            flight.addresses.append(address)
            if then is not None:
                flight.then(then)
            return flight
        flight = self._flights[key] = Flight(self._plan, key, question, dnssec_ok, address, self._landed, then)
        flight.start(asked)
        return flight

    @property
    def all_down(self) -> bool:
        """Whether no upstream answers its probes."""
        return self._pool.all_down

    def watch(self) -> None:
        """Know of each upstream, from now on, whether it can be reached, also when nobody asks (see UpstreamCounts)."""
        self._pool.watch()

    def close(self) -> None:
        """Probe no more. Flights go on to their end; their upstreams are their owner's to close."""
        self._pool.close()

    def _takes(self, qname: Name) -> bool:
        origins = self._settings.origins
        if not any(is_subdomain(qname, origin) for origin in origins):
            return False
        # FROM itself is forwarded even where `except` has it, as in CoreDNS.
        return qname in origins or not any(is_subdomain(qname, excepted) for excepted in self._settings.excepted)

    def _landed(self, flight: Flight) -> None:
        """Before those who wait go on."""
        del self._flights[flight.key]
        self._waiting -= len(flight.addresses)
        for address in flight.addresses:
            self._in_flight.leave(address)

    async def _resolve(self, flight: Flight) -> Resolution | None:
        answer = await flight
        if self._may_pass and self._passes(answer):
            return None
        return self.resolution(answer)

    def resolution(self, answer: Answer) -> Resolution:
        """For one of those who wait: a response of its own, which the steps above may change."""
        response = Response(
            answer.rcode, answer.answer, answer.authority, answer.additional, answer.flags, 0, answer.ede
        )
        return Resolution(response, "forward", _CLIENT, upstream=answer.upstream)

    def _passes(self, answer: Answer) -> bool:
        """Whether the next `forward` is asked instead."""
        if answer.failed:
            return False
        if answer.rcode in self._settings.next_rcodes:
            return True
        return self._settings.next_on_nodata and answer.rcode == Rcode.NOERROR and not answer.answer


def _impatience(settings: Forward, timers: Timers) -> Impatience | None:
    """None where upstreams are not alike: those of `sequential` are asked in turn because they say different things."""
    alike = settings.policy is not Policy.SEQUENTIAL and len(settings.upstreams) > 1
    return Impatience(PATIENCE, timers) if alike and settings.read_timeout > PATIENCE else None


def _max_attempts(settings: Forward) -> int:
    given = settings.max_connect_attempts
    return 2 * len(settings.upstreams) if given is None else given
