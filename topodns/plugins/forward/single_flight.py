"""Queries that wait for upstreams: equal ones share one exchange (single-flight), and their number is limited.

Of one directive a query joins the flight of its message. In total, and for each client, `InFlight` limits the queries
that wait.
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
from topodns.query.upstream import Failure

MAX_TOTAL: Final = 4096
MAX_PER_CLIENT: Final = 256  # that a client may have in any case, until all places are taken
AT_ONCE: Final = 64  # waiters answered in one turn of the event loop; each takes about 20 us


class Waiter(Protocol):
    """One client's query that waits for an upstream."""

    address: bytes  # of the client, packed

    def preempt(self) -> None:
        """Drop the query without a reply, since another client gets its place. Must not raise."""


class InFlight:
    """The queries that wait for upstreams, of all `forward` directives; one object per process.

    A client may use places that others do not need: a new query may wait if fewer of the client's queries wait than the
    larger of `max_per_client` and half of the free places. When all places are taken, the newest query of the client
    with the most waiting queries is dropped: the new one itself, or a waiting one that makes room for it.
    """

    __slots__ = (
        *("_by_client", "_max_per_client", "_max_total", "_ranking", "dropped_by_client", "dropped_in_total"),
        *("preempted", "total"),
    )

    def __init__(self, max_total: int = MAX_TOTAL, max_per_client: int = MAX_PER_CLIENT) -> None:
        self._max_per_client = max_per_client
        self._max_total = max_total
        self._by_client: dict[bytes, dict[Waiter, None]] = {}  # the newest last
        self._ranking: Ranking | None = None  # since all places were taken, until half of them are free
        self.total = 0
        self.dropped_in_total = 0  # by the limit in total
        self.dropped_by_client = 0  # by the limit per client
        self.preempted = 0  # waiting queries that made room for a client with fewer

    def bound(self, most: int) -> None:
        """Lower the limit in total to `most` queries; it is never raised."""
        self._max_total = min(self._max_total, most)

    def enter(self, waiter: Waiter) -> bool:
        """Take a place for one more query; False if it must not wait.

        `leave` must follow, unless the query is preempted; after False, `note_drop`. The newest query of another client
        may be preempted to make room.
        """
        address = waiter.address
        mine = self._by_client.get(address)
        waiting = 0 if mine is None else len(mine)
        free = self._max_total - self.total
        if waiting >= self._max_per_client and 2 * waiting >= free:
            return False
        if free <= 0:
            # Between two clients that would have equally many, the waiting query stays: an exchange gains nothing.
            if self._ranked().most <= waiting + 1:
                return False
            self._preempt()
            return self.enter(waiter)  # preempting has side effects: check everything again
        self.total += 1
        if mine is None:
            self._by_client[address] = {waiter: None}
        else:
            mine[waiter] = None
        if self._ranking is not None:
            self._ranking.move(address, waiting, waiting + 1)
        return True

    def leave(self, waiter: Waiter) -> None:
        """Release the place of a query that no longer waits."""
        self.total -= 1
        address = waiter.address
        mine = self._by_client[address]
        del mine[waiter]
        if not mine:
            del self._by_client[address]
        if self._ranking is not None:
            self._ranking.move(address, len(mine) + 1, len(mine))
            if 2 * self.total < self._max_total:
                self._ranking = None

    def note_drop(self, address: bytes) -> None:
        """Count a query of this client that `enter` refused, by the limit that was the reason."""
        waiting = len(self._by_client.get(address, ()))
        if waiting >= self._max_per_client and 2 * waiting >= self._max_total - self.total:
            self.dropped_by_client += 1
        else:
            self.dropped_in_total += 1

    def _ranked(self) -> "Ranking":
        ranking = self._ranking
        if ranking is None:
            ranking = self._ranking = Ranking()
            for address, waiters in self._by_client.items():
                ranking.move(address, 0, len(waiters))
        return ranking

    def _preempt(self) -> None:
        newest = next(reversed(self._by_client[self._ranked().first()]))
        self.leave(newest)
        self.preempted += 1
        newest.preempt()


class Ranking:
    """Clients by the number of their waiting queries.

    It is needed only while all places are taken. `InFlight` then makes it, in 1 ms for 4,096 clients, and keeps it
    until half of the places are free, so that a query does not pay for it at other times.
    """

    __slots__ = ("_by_number", "most")

    def __init__(self) -> None:
        self._by_number: list[dict[bytes, None]] = [{}]  # index 0 stays empty
        self.most = 0  # the largest number of one client's waiting queries

    def move(self, address: bytes, before: int, now: int) -> None:
        """The client had `before` waiting queries and has `now`; 0: it is not here."""
        by_number = self._by_number
        if before:
            del by_number[before][address]
        if now:
            while now >= len(by_number):
                by_number.append({})
            by_number[now][address] = None
            if now > self.most:
                self.most = now
        while self.most and not by_number[self.most]:
            self.most -= 1

    def first(self) -> bytes:
        """Of the clients with the most waiting queries, the one that has had so many for the longest time."""
        return next(iter(self._by_number[self.most]))


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
