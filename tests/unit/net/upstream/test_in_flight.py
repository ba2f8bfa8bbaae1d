"""Queries in flight: the message that is the reply to one, ids, one timer for all deadlines, and queries sent again."""

from collections.abc import Callable
from math import inf

import pytest

from tests.support.virtual_timers import VirtualTimers
from topodns.net.upstream.in_flight import AT_ONCE, Deadlines, RandomIds, Retransmission, is_reply, separate
from topodns.query.upstream import Failure, UpstreamQuery

QUESTION = b"\3www\7Example\3org\0\0\x41\0\1"  # HTTPS, whose type is the letter A


def message(question: bytes, flags: bytes = b"\x81\x80", count: bytes = b"\0\1", rest: bytes = b"") -> bytes:
    return b"id" + flags + count + bytes(6) + question + rest


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(message(QUESTION), id="as asked"),
        pytest.param(message(QUESTION, rest=b"records"), id="with records"),
        pytest.param(message(b"\3WWW\7eXAMPLE\3ORG\0\0\x41\0\1"), id="in another case"),
        pytest.param(message(QUESTION, b"\x87\x80"), id="truncated, authoritative"),
        pytest.param(message(QUESTION, b"\x81\x82"), id="SERVFAIL"),
    ],
)
def test_a_response_with_the_question_is_the_reply(found: bytes) -> None:
    assert is_reply(found, QUESTION)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"id\x81\x80", id="part of a header"),
        pytest.param(message(b""), id="a header alone"),
        pytest.param(message(QUESTION[:-1]), id="part of the question"),
        pytest.param(message(QUESTION, b"\1\0"), id="QR is clear"),
        pytest.param(message(QUESTION, b"\xa1\x80"), id="another opcode"),
        pytest.param(message(QUESTION, count=b"\0\0"), id="QDCOUNT is 0"),
        pytest.param(message(QUESTION, count=b"\0\2"), id="QDCOUNT is 2"),
        pytest.param(message(b"\3www\7example\3com\0\0\x41\0\1"), id="another name"),
        pytest.param(message(b"\3www\7example\3org\4evil\0\0\x41\0\1"), id="a longer name"),
        pytest.param(message(b"\7example\3org\0\0\x41\0\1", rest=b"more"), id="a shorter name"),
        pytest.param(message(b"\3www\7example\3org\0\0\x61\0\1"), id="the type that is 0x41 as a small letter"),
        pytest.param(message(b"\3www\7example\3org\0\0\x41\0\3"), id="another class"),
        pytest.param(message(b"\xc0\x0c\0\x41\0\1", rest=QUESTION), id="a pointer for a name"),
    ],
)
def test_anything_else_is_no_reply(found: bytes) -> None:
    assert not is_reply(found, QUESTION)


def test_ids_are_two_random_octets_each_and_never_repeated() -> None:
    drawn: list[bytes] = []

    def randomness(octets: int) -> bytes:
        drawn.append(bytes((place + len(drawn)) % 251 for place in range(octets)))
        return drawn[-1]

    ids = RandomIds(randomness)
    seen = b"".join(ids.draw() for _ in range(5000))
    assert len(drawn) > 1
    assert seen == b"".join(drawn)[: len(seen)]


def test_ids_cover_their_whole_range() -> None:
    ids = RandomIds()
    drawn = {ids.draw() for _ in range(20_000)}
    assert len(drawn) > 15_000  # about 17,200 different ones of 65,536 are expected
    assert {each[0] for each in drawn} == {each[1] for each in drawn} == set(range(256))


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        ("ab0181810000000000000000", True),
        ("ab0181840000000000000000", True),
        ("ab0181850000000000000000", True),
        ("ab0181820000000000000000", False),
        ("ab0181800000000000000000", False),
        ("ab0101010000000000000000", False),
        ("ab0181810001000000000000", False),
    ],
    ids=["FORMERR", "NOTIMP", "REFUSED", "SERVFAIL", "NOERROR", "a query", "a question announced"],
)
def test_a_bare_header_is_a_reply_where_it_says_that_the_query_was_not_understood(header: str, taken: bool) -> None:
    assert is_reply(bytes.fromhex(header), b"\3www\0\0\1\0\1") is taken


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


class Original(UpstreamQuery):
    __slots__ = ("results",)

    def __init__(self) -> None:
        self.message, self.question = b"message", b"question"
        self.carrier = self.twin = None
        self.deadline = self.due = 5.0
        self.results: list[bytes | Failure] = []

    def on_reply(self, result: bytes | Failure) -> None:
        self.results.append(result)


def test_it_asks_the_same_and_the_reply_to_it_is_that_of_the_original() -> None:
    original = Original()
    again = Retransmission(original)
    assert (again.message, again.question, again.carrier) == (b"message", b"question", None)
    again.on_reply(b"reply")
    assert original.results == [b"reply"]


def test_only_the_original_has_a_time_at_which_it_is_due() -> None:
    assert Retransmission(Original()).due == inf


@pytest.mark.parametrize("of_the_original", [True, False])
def test_each_gives_the_other_one_until_they_are_separated(of_the_original: bool) -> None:
    original = Original()
    again = Retransmission(original)
    assert (original.twin, again.twin) == (again, original)
    one, other = (original, again) if of_the_original else (again, original)
    assert separate(one) is other
    assert (original.twin, again.twin) == (None, None)
