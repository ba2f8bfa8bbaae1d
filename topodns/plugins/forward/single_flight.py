"""Single-flight: equal queries that wait for upstreams share one exchange.

Of one directive a query joins the flight of its message.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, Final, Protocol

from topodns.net.upstream.address import Counts
from topodns.net.upstream.client import Connections
from topodns.net.upstream.udp_transport import UdpSockets
from topodns.plugins.forward.flight import Attempt, Flight, FlightContext, Key, UpstreamAnswer, take_plain
from topodns.plugins.forward.sanitize import PLAIN_RECORDS, Wanted
from topodns.plugins.forward.upstreams import ForwardCounts
from topodns.plugins.forward.waiting_limit import InFlight, Waiter
from topodns.query.upstream import Failure

AT_ONCE: Final = 64  # waiters answered in one turn of the event loop; each takes about 20 us


class ForwardShared:
    """Counters and limits of all `forward` directives of the process, which all generations share."""

    __slots__ = ("connections", "counts", "in_flight", "udp_sockets")

    def __init__(self) -> None:
        self.counts = ForwardCounts()
        self.in_flight = InFlight()
        self.udp_sockets = UdpSockets()  # of all upstreams
        self.connections: defaultdict[str, Connections] = defaultdict(lambda: defaultdict(Counts))  # by upstream

    def bound_udp_sockets(self, most: int) -> None:
        """Limit the UDP sockets to upstreams to `most`, and the queries in flight to two thirds of `most`.

        So each query gets a socket, and some may get a second one (`UdpSockets`).
        """
        self.udp_sockets.most = most
        self.in_flight.bound(self.udp_sockets.questions)


class FlightWaiter(Waiter, Protocol):
    """A `Waiter` with its flight."""

    flight: "SharedFlight | None"

    def on_answer(self, answer: UpstreamAnswer) -> None:
        """Receive the result of the flight. Must not raise."""


_NO_WAITERS: Final[dict[FlightWaiter, None]] = {}


class SingleFlight:
    """The flights of one directive, by key: a query joins the one with its key, or starts it.

    At most `max_concurrent` queries wait (0: no limit), besides the limits of `in_flight`. `force_tcp` and
    `prefer_udp` of the directive decide over which transport upstreams without TLS are asked.
    """

    __slots__ = ("_over_tcp", "_timeout", "context", "flights", "in_flight", "max_concurrent", "waiting")

    def __init__(self, context: FlightContext, in_flight: InFlight) -> None:
        settings = context.settings
        self.context = context
        # Whether a query goes over TCP to an upstream without TLS: when the client used TCP, when it used UDP.
        self._over_tcp = (settings.force_tcp or not settings.prefer_udp, settings.force_tcp)
        self.flights: dict[Key, SharedFlight | LoneFlight] = {}  # those that are not over
        self.in_flight = in_flight
        self.max_concurrent = settings.max_concurrent
        self._timeout = min(settings.read_timeout, context.deadline)  # seconds, of a first attempt
        self.waiting = 0  # queries that wait, which may share flights

    def join(
        self, message: bytes, question: bytes, wanted: Wanted, udp: bool, waiter: FlightWaiter, asked: float
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
        if flight is None:
            SharedFlight(self, key, question, wanted, waiter, asked)
        else:
            flight.share().add(waiter)
        return True

    def join_alone(self, waiter: "LoneFlight", udp: bool) -> bool:
        """`join` for a query without DO that can be a flight: it is one itself if no equal query is in flight."""
        if 0 < self.max_concurrent <= self.waiting or not self.in_flight.enter(waiter):
            return False
        self.waiting += 1
        over_tcp = self._over_tcp[udp]
        key = (waiter.message, over_tcp)
        flight = self.flights.get(key)
        if flight is not None:
            flight.share().add(waiter)
            return True
        context = self.context
        candidate = context.pool.only or context.pool.pick(())
        if candidate is None:
            SharedFlight(self, key, waiter.question, PLAIN_RECORDS, waiter, waiter.started)
            return True
        self.flights[key] = waiter
        waiter.key, waiter.table = key, self
        waiter.candidate = candidate
        waiter.transport = transport = candidate.transports[over_tcp]
        carrier = candidate.upstream.carriers.get(transport)
        if carrier is None:
            candidate.upstream.exchange(waiter, transport, self._timeout, waiter.started)
        else:
            carrier.exchange(waiter, self._timeout, waiter.started)
        if context.hedge_timer is not None and not waiter.over:
            context.hedge_timer.watch(waiter, waiter.started)
        return True


class SharedFlight(Flight):
    """A flight with the queries that wait for its answer. It is in `table.flights` from its beginning to its end."""

    __slots__ = ("_table", "waiters")

    def __init__(
        self,
        table: SingleFlight,
        key: Key,
        question: bytes,
        wanted: Wanted,
        waiter: FlightWaiter,
        asked: float,
        first: Attempt | None = None,
    ) -> None:
        """`waiter`: the query that waits from the beginning. The others are as for `Flight`."""
        self.waiters: dict[FlightWaiter, None] = {waiter: None}
        self._table = table
        waiter.flight = table.flights[key] = self
        # super() takes three times as long in Python 3.11.
        Flight.__init__(self, table.context, key, question, wanted, asked, first)

    def share(self) -> "SharedFlight":
        """This flight, as `LoneFlight.share`."""
        return self

    def add(self, waiter: FlightWaiter) -> None:
        waiter.flight = self
        self.waiters[waiter] = None

    def drop(self, waiter: FlightWaiter) -> None:
        """Remove a preempted waiter, which gets no answer. Without any other waiter, the flight is cancelled."""
        table = self._table
        del self.waiters[waiter]
        table.waiting -= 1
        if not self.waiters and not self.over:
            del table.flights[self.key]
            self.cancel()

    def _ended(self, answer: UpstreamAnswer) -> None:
        del self._table.flights[self.key]
        self._answer_waiters(answer)

    def _answer_waiters(self, answer: UpstreamAnswer) -> None:
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


class LoneFlight(Attempt, ABC):
    """A query that is its own flight: it waits alone for its first attempt, which most queries need only.

    It is its first attempt, and the deferred reply to its client, too: one object for a query. `share` makes a flight
    when an equal query joins, the reply is late, or the attempt fails or gets a reply that is not plain.

    The one constructor is that of the subclass, since a second call takes 3 % of the instructions of a query: it sets
    `message`, `question`, `started` (monotonic seconds, from which the deadline counts) and `address`, `settled` to
    False, and `carrier`, `twin`, `flight` and `deliver` to None. `SingleFlight.join_alone` sets the others, which only
    a query that is a flight has.
    """

    __slots__ = ("_place", "_reply", "address", "deliver", "flight", "key", "settled", "table")

    address: bytes  # of the client, packed
    flight: SharedFlight | None  # once shared
    key: Key
    settled: bool
    table: SingleFlight
    deliver: Callable[[Any, bytes | None], object] | None  # of `deliver_to`
    _place: object
    _reply: bytes | None  # settled before `deliver_to`

    @property
    def over(self) -> bool:
        """Whether the query waits no longer."""
        return self.settled if self.flight is None else self.flight.over

    def deliver_to(self, take: Callable[[Any, bytes | None], object], place: object) -> None:
        """Implements `DeferredReply`."""
        if self.settled:
            take(place, self._reply)
        else:
            self.deliver, self._place = take, place

    def settle(self, reply: bytes | None) -> None:
        """Deliver this reply. Called once."""
        self.settled = True
        deliver = self.deliver
        if deliver is None:
            self._reply = reply
        else:
            deliver(self._place, reply)

    @abstractmethod
    def on_answer(self, answer: UpstreamAnswer) -> None: ...

    @abstractmethod
    def relayed(self, data: bytes) -> bytes | None:
        """The reply to the client, made of a reply of the upstream that needs no other care, and both are counted;
        None, without effect, of any other reply. Must not raise.
        """

    @abstractmethod
    def preempt(self) -> None: ...

    def on_reply(self, result: bytes | Failure) -> None:
        """Receive the result of the first attempt."""
        if self.flight is None and isinstance(result, bytes):
            reply = self.relayed(result)
            if reply is not None:
                self._end()
                self.settle(reply)
                return
            answer = take_plain(self.table.context, self, result)
            if answer is not None:
                self._end()
                self.on_answer(answer)
                return
        self.share().on_reply(self, result)

    def share(self) -> SharedFlight:
        """The flight that goes on for this query, with it as a waiter."""
        flight = self.flight
        if flight is None:
            flight = SharedFlight(
                self.table, self.key, self.question, PLAIN_RECORDS, waiter=self, asked=self.started, first=self
            )
        return flight

    def hedge(self) -> bool:
        """As `Flight.hedge`."""
        return self.share().hedge()

    def leave(self) -> None:
        """Wait no longer, since another query gets the place: as `SharedFlight.drop`."""
        if self.flight is not None:
            self.flight.drop(self)
            return
        self.table.waiting -= 1
        del self.table.flights[self.key]
        self.cancel()

    def _end(self) -> None:
        table = self.table
        del table.flights[self.key]
        table.waiting -= 1
        table.in_flight.leave(self)
