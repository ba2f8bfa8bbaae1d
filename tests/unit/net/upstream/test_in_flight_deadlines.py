"""One timer for the deadlines of all queries in flight."""

from collections.abc import Callable

from tests.support.virtual_timers import VirtualTimers
from topodns.net.upstream.in_flight import AT_ONCE, Deadlines
from topodns.query.upstream import Failure, UpstreamQuery


class Wait(UpstreamQuery):
    """A query of a transport that only notes when it is due."""

    __slots__ = ("put_off", "then", "transport")

    def __init__(self, transport: "InFlight", due: float) -> None:
        self.carrier = self.transport = transport
        self.deadline = self.due = due
        self.put_off = 0.0  # seconds
        self.then: Callable[[], None] = lambda: None

    def on_reply(self, result: bytes | Failure) -> None:
        raise AssertionError("not here")


class InFlight:
    """A transport with such queries, and the deadlines that sweep them."""

    def __init__(self) -> None:
        self.timers, self.expired = VirtualTimers(), list[float]()
        self.queries: dict[Wait, None] = {}
        self.deadlines = Deadlines(self.timers, 0.25)
        self.deadlines.add(lambda: self.queries)

    def wait(self, seconds: float) -> Wait:
        query = Wait(self, self.timers.time() + seconds)
        self.queries[query] = None
        self.deadlines.arm()
        return query

    def exchange(self, query: UpstreamQuery, timeout: float, now: float) -> None:
        raise AssertionError("not here")

    def on_due(self, query: UpstreamQuery, now: float) -> None:
        assert isinstance(query, Wait)
        assert now == self.timers.time()
        self.expired.append(now)
        if query.put_off:
            query.due, query.put_off = now + query.put_off, 0.0
        else:
            self.cancel(query)
        query.then()

    def cancel(self, query: UpstreamQuery) -> None:
        assert isinstance(query, Wait)
        query.carrier = None
        self.queries.pop(query, None)


def test_a_due_query_expires_within_a_period_and_once() -> None:
    transport = InFlight()
    for seconds in (0.6, 1.0, 3.0):
        transport.wait(seconds)
    transport.timers.advance(2)
    assert transport.expired == [1000.75, 1001.0]
    assert len(transport.queries) == 1
    transport.timers.advance(2)
    assert transport.expired == [1000.75, 1001.0, 1003.0]


def test_a_query_that_is_in_flight_no_longer_does_not_expire() -> None:
    transport = InFlight()
    transport.wait(1).cancel()
    transport.timers.advance(2)
    assert transport.expired == []


def test_there_is_one_timer_while_there_is_a_query_and_none_otherwise() -> None:
    transport = InFlight()
    for _ in range(100):
        transport.wait(1)
    assert transport.timers.pending == 1
    transport.timers.advance(0.9)
    assert transport.timers.pending == 1
    transport.timers.advance(1)
    assert (transport.timers.pending, transport.deadlines.armed) == (0, None)


def test_queries_of_all_transports_expire() -> None:
    transport, other = InFlight(), dict[Wait, None]()
    transport.deadlines.add(lambda: other)
    query = transport.wait(1)
    other[query] = transport.queries.pop(query)
    assert list(transport.deadlines.in_flight()) == [query]
    query.then = other.clear
    transport.timers.advance(2)
    assert transport.expired == [1001.0]


def test_an_expiry_may_settle_others_that_are_due() -> None:
    transport = InFlight()
    pair = [transport.wait(1), transport.wait(1)]
    pair[0].then = lambda: transport.cancel(pair[1])
    pair[1].then = lambda: transport.cancel(pair[0])
    transport.timers.advance(2)
    assert len(transport.expired) == 1


def test_an_expiry_may_wait_anew() -> None:
    transport = InFlight()

    def again() -> None:
        transport.wait(1)

    transport.wait(1).then = again
    transport.timers.advance(3)
    assert transport.expired == [1001.0, 1002.0]
    assert transport.timers.pending == 0


def test_a_query_that_is_postponed_is_due_again_later() -> None:
    transport = InFlight()
    query = transport.wait(0.5)
    query.put_off = 1.5
    transport.timers.advance(1)
    assert query in transport.queries
    transport.timers.advance(3)
    assert transport.expired == [1000.5, 1002.0]
    assert query not in transport.queries


def test_of_many_that_are_due_together_some_expire_in_each_turn_of_the_loop() -> None:
    transport = InFlight()
    timers, expired = transport.timers, transport.expired
    turns: list[int] = []

    def look() -> None:
        turns.append(len(expired))
        if len(expired) < 3 * AT_ONCE:
            timers.call_later(0.0, look)

    def again() -> None:
        transport.wait(9)

    for _ in range(3 * AT_ONCE):
        transport.wait(1).then = again
    timers.call_later(0.99, lambda: timers.call_later(0.01, look))
    timers.advance(1.2)
    assert turns == [AT_ONCE, 2 * AT_ONCE, 3 * AT_ONCE]
    assert len(transport.queries) == 3 * AT_ONCE
    timers.advance(9)
    assert (len(transport.queries), timers.pending) == (0, 0)
