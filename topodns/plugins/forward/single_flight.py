"""Single-flight: equal queries in flight to the upstreams of one directive share one exchange and get its answer."""

from functools import partial
from itertools import islice
from typing import Final, Protocol

from topodns.plugins.forward.flight import Answer, Flight, FlightContext, Key
from topodns.plugins.forward.limits import InFlight, Waiter

AT_ONCE: Final = 64  # waiters answered in one turn of the event loop; each takes about 20 us


class FlightWaiter(Waiter, Protocol):
    """A `Waiter` with its flight."""

    flight: "SharedFlight"

    def on_answer(self, answer: Answer) -> None:
        """Receive the result of the flight. Must not raise."""


_NO_WAITERS: Final[dict[FlightWaiter, None]] = {}


class SingleFlight:
    """The flights of one directive, by key: a query joins the one with its key, or starts it.

    At most `max_concurrent` queries wait (0: no limit), besides the limits of `in_flight`. `force_tcp` and
    `prefer_udp` of the directive decide over which transport upstreams without TLS are asked.
    """

    __slots__ = ("_context", "_over_tcp", "flights", "in_flight", "max_concurrent", "waiting")

    def __init__(self, context: FlightContext, in_flight: InFlight) -> None:
        settings = context.settings
        self._context = context
        # Whether a query goes over TCP to an upstream without TLS: when the client used TCP, when it used UDP.
        self._over_tcp = (settings.force_tcp or not settings.prefer_udp, settings.force_tcp)
        self.flights: dict[Key, SharedFlight] = {}  # those that are not over
        self.in_flight = in_flight
        self.max_concurrent = settings.max_concurrent
        self.waiting = 0  # queries that wait, which may share flights

    def join(
        self, message: bytes, question: bytes, dnssec_ok: bool, udp: bool, waiter: FlightWaiter, asked: float
    ) -> bool:
        """Attach the waiter to the flight of this message, which is started unless it is in progress.

        There are never two flights for one message over the same transport (RFC 5452 section 5). `udp`: the client's
        query came over UDP. `asked` is the time of that query (monotonic seconds; 0.0: now), from which the deadline of
        a new flight counts. False, and the waiter gets no answer, when too many queries wait, of this directive, in
        total or of this client. See `Flight` for the other arguments; the waiter may get its answer before this
        returns.
        """
        if 0 < self.max_concurrent <= self.waiting or not self.in_flight.enter(waiter):
            return False
        self.waiting += 1
        key = (message, self._over_tcp[udp])
        flight = self.flights.get(key)
        if flight is not None:
            waiter.flight = flight
            flight.waiters[waiter] = None
            return True
        flight = self.flights[key] = SharedFlight(self._context, key, question, dnssec_ok, waiter, self)
        waiter.flight = flight
        flight.start(asked)
        return True


class SharedFlight(Flight):
    """A flight with the queries that wait for its answer."""

    __slots__ = ("_table", "waiters")

    def __init__(
        self,
        context: FlightContext,
        key: Key,
        question: bytes,
        dnssec_ok: bool,
        waiter: FlightWaiter,
        table: SingleFlight,
    ) -> None:
        Flight.__init__(self, context, key, question, dnssec_ok)  # super() takes three times as long in Python 3.11
        self.waiters: dict[FlightWaiter, None] = {waiter: None}
        self._table = table

    def drop(self, waiter: FlightWaiter) -> None:
        """Remove a preempted waiter, which gets no answer. Without any other waiter, the flight is cancelled."""
        table = self._table
        del self.waiters[waiter]
        table.waiting -= 1
        if not self.waiters and not self.over:
            del table.flights[self.key]
            self.cancel()

    def _ended(self, answer: Answer) -> None:
        del self._table.flights[self.key]
        self._answer_waiters(answer)

    def _answer_waiters(self, answer: Answer) -> None:
        """Give the answer to the first AT_ONCE waiters, and to the others in later turns of the event loop."""
        waiters = self.waiters
        if len(waiters) > AT_ONCE:
            now = dict.fromkeys(islice(waiters, AT_ONCE))
            for waiter in now:
                del waiters[waiter]
            self._context.timers.call_later(0.0, partial(self._answer_waiters, answer))
        else:
            now, self.waiters = waiters, _NO_WAITERS
        # A flight and its waiters refer to each other, and so do a flight and its queries. Without this release, each
        # query would leave a reference cycle to the garbage collector.
        table = self._table
        table.waiting -= len(now)
        leave = table.in_flight.leave
        for waiter in now:
            leave(waiter)
        for waiter in now:
            waiter.on_answer(answer)
