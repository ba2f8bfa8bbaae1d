"""Connections to an upstream, in virtual time: those that are silent, message ids, and messages that are no replies."""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.dns_messages import query
from tests.support.upstream_faults import reply_to
from tests.support.upstream_queries import open_connections
from tests.support.virtual_timers import VirtualTimer, VirtualTimers
from topodns.dns.tcp_framing import MessageReader, frame
from topodns.dns.wire_format import HEADER_SIZE
from topodns.net.upstream.address import LOST, Counts, UpstreamLimits, resolve_endpoint
from topodns.net.upstream.in_flight import Deadlines, RandomIds
from topodns.net.upstream.tcp_connection import UpstreamConnection
from topodns.net.upstream.tcp_transport import TcpCarrier
from topodns.query.upstream import Failure, UpstreamQuery


class Loop:
    """An event loop as far as a carrier needs one, in which connections are opened at once."""

    def __init__(self) -> None:
        self.timers = VirtualTimers()
        self.time = self.timers.time

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> VirtualTimer:
        return self.timers.call_later(delay, lambda: callback(*args))

    def call_soon(self, callback: Callable[..., object], *args: object) -> VirtualTimer:
        return self.call_later(0, callback, *args)

    def create_task(self, course: Coroutine[Any, Any, None], name: str) -> Any:
        course.close()
        return _Done()


class _Done:
    def add_done_callback(self, _: object) -> None:
        """Nothing is done."""


class Line:
    """The upstream's end of one connection."""

    def __init__(self, connection: UpstreamConnection) -> None:
        self.connection = connection
        self.asked: list[bytes] = []  # messages that have not been answered
        self.closed = False
        self.paused = 0  # how often the connection has stopped to read
        self._reader = MessageReader()
        connection.connection_made(cast(asyncio.BaseTransport, self))

    def get_extra_info(self, _: str) -> Any:
        return SimpleNamespace(setsockopt=lambda *_: None)

    def write(self, data: bytes) -> None:
        self.asked += self._reader.receive_data(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.paused += 1

    def resume_reading(self) -> None:
        """All that was said has been taken."""

    def close(self) -> None:
        self.closed = True

    abort = close

    def answer(self, name: str = "") -> None:
        """The queries for this name, or all."""
        wanted = [message for message in self.asked if name.encode() in message[12:]]
        self.asked = [message for message in self.asked if message not in wanted]
        for message in wanted:
            self.connection.data_received(frame(reply_to(message)))

    def answer_in_turn(self, busy_with: str) -> None:
        """The queries before the first whose name begins so."""
        while self.names and not self.names[0].startswith(busy_with):
            self.connection.data_received(frame(reply_to(self.asked.pop(0))))

    @property
    def names(self) -> list[str]:
        return [message[13 : 13 + message[12]].decode() for message in self.asked]


class Asked(UpstreamQuery):
    """A query whose results are noted."""

    __slots__ = ("_results",)

    def __init__(self, name: str, results: list[bytes | Failure]) -> None:
        message = query(f"{name}.example A")
        self.message, self.question = message[2:], message[HEADER_SIZE:]
        self.carrier = self.twin = None
        self._results = results

    def on_reply(self, result: bytes | Failure) -> None:
        self._results.append(result)


class Scene:
    """A carrier with `lines` to its upstream, and what came of each name that it was asked for."""

    def __init__(self, **limits: Any) -> None:
        loop = Loop()
        self.timers = loop.timers
        self.counts = Counts()
        self.lines: list[Line] = []
        self.on_reply: dict[str, list[bytes | Failure]] = {}
        as_loop = cast(asyncio.AbstractEventLoop, loop)
        settings = UpstreamLimits(max_age=0, **limits)
        self.deadlines = Deadlines(self.timers, settings.sweep)
        endpoint = resolve_endpoint("192.0.2.1", 53, None, "", "")
        self.carrier = TcpCarrier(as_loop, endpoint, settings, self.deadlines, RandomIds(), self.counts)

    def ask(self, *names: str, timeout: float = 2.0) -> Asked:
        """Ask for each name, in a turn of the loop of its own. Returns the query of the last one."""
        for name in names:
            asked = Asked(name, self.on_reply.setdefault(name, []))
            self.carrier.exchange(asked, timeout, self.timers.time())
            self.settle()
        return asked

    @property
    def in_flight(self) -> int:
        """The number of queries without a result, those sent twice counted twice."""
        return len(list(self.deadlines.in_flight()))

    def settle(self) -> None:
        """Connections that were wanted are open, and all octets written have arrived."""
        known = [line.connection for line in self.lines]
        opened = [*self.carrier._connections, *self.carrier._isolated._connections]
        self.lines += [Line(each) for each in opened if each not in known]
        self.timers.advance(0)

    def advance(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.05)):
            self.timers.advance(0.05)
            self.settle()

    def answered(self, name: str) -> bool:
        (on_reply,) = self.on_reply[name]
        return isinstance(on_reply, bytes)


def two_lines(**limits: Any) -> Scene:
    """Two open connections, of which the second has been used last, so that the next query takes the first."""
    scene = Scene(**limits)
    for names in ("xy", "z"):
        scene.ask(*names)
        for line in scene.lines:
            line.answer()
    assert len(scene.lines) == 2
    assert scene.carrier._filling is scene.lines[1].connection
    return scene


def test_the_queries_on_a_silent_connection_are_sent_again_over_the_other_one_and_the_oldest_alone() -> None:
    scene = two_lines()
    scene.ask("a", "b", "c", "d", "e")
    first, second = scene.lines
    assert (first.names, second.names) == (["a", "c", "e"], ["b", "d"])
    scene.advance(0.4)
    second.answer()
    scene.advance(0.2)
    alone = scene.lines[2]
    assert (second.names, alone.names) == (["c", "e"], ["a"])
    alone.answer()
    second.answer()
    assert all(scene.answered(name) for name in "abcde")
    assert (scene.counts.resent, scene.counts.timed_out, scene.in_flight) == (3, 0, 0)


def test_all_that_waits_there_is_sent_again_as_soon_as_one_query_has_waited_for_half_a_second() -> None:
    scene = two_lines()
    scene.ask("a")
    scene.advance(0.3)
    scene.ask("b", "c")
    first, second = scene.lines
    assert first.names == ["a", "c"]
    scene.advance(0.3)
    assert (second.names, scene.lines[2].names) == (["b", "c"], ["a"])


def test_a_silent_connection_gets_no_new_query_and_closes_once_another_one_is_heard() -> None:
    scene = two_lines()
    scene.ask("a", "b")
    first, second = scene.lines
    second.answer("b")
    scene.advance(0.6)
    scene.ask("c", "d", "e")
    alone = scene.lines[2]
    assert (first.names, second.names, alone.names) == (["a"], ["c", "d", "e"], ["a"])
    alone.answer("a")
    scene.settle()
    assert first.closed
    scene.ask("f")
    assert first.names == ["a"]


def test_a_late_reply_is_the_answer_where_it_is_the_first_and_ignored_where_it_is_not() -> None:
    scene = two_lines()
    scene.ask("a", "b", "c")
    first, second = scene.lines
    second.answer("b")
    scene.advance(0.6)
    first.answer("a")
    second.answer("c")
    first.answer("c")
    assert all(scene.answered(name) for name in "ac")
    assert scene.counts.strays == 1


def test_a_connection_that_speaks_again_is_used_again() -> None:
    scene = two_lines()
    scene.ask("a", "b")
    first, second = scene.lines
    second.answer("b")
    scene.advance(0.6)
    assert (first.names, second.names, scene.lines[2].names) == (["a"], [], ["a"])
    first.answer()
    assert not first.closed
    assert scene.lines[2].closed  # the upstream may still be busy there
    scene.ask("c", "d")
    assert (first.names, second.names) == (["c"], ["d"])


def test_a_name_that_is_slow_on_a_connection_that_is_heard_is_not_sent_again() -> None:
    scene = two_lines()
    scene.ask("dead", timeout=3.9)
    first, _ = scene.lines
    for number in range(30):
        scene.ask(f"good{number}a", f"good{number}b")
        for line in scene.lines:
            line.answer("good")
        scene.advance(0.1)
    assert first.names == ["dead"]
    assert scene.counts.resent == 0


def test_it_is_silent_also_half_a_second_after_its_last_reply() -> None:
    scene = two_lines()
    scene.ask("a", "b")
    first, second = scene.lines
    scene.advance(0.3)
    scene.ask("c", "d")
    first.answer("c")
    second.answer()
    scene.advance(0.3)
    assert len(scene.lines) == 2
    scene.advance(0.5)
    assert scene.lines[2].names == ["a"]


def test_with_one_connection_a_second_one_is_opened_for_it() -> None:
    scene = Scene()
    scene.ask("a")
    scene.advance(0.6)
    first, second = scene.lines
    assert (first.names, second.names) == (["a"], ["a"])
    second.answer()
    assert scene.answered("a")
    assert first.closed


def test_where_there_may_be_one_connection_only_a_new_one_is_instead_of_the_silent_one() -> None:
    scene = Scene(connections=1)
    scene.ask("a")
    scene.advance(0.6)
    first, second = scene.lines
    second.answer()
    assert scene.answered("a")
    assert first.closed


def test_when_all_are_silent_one_of_them_is_replaced() -> None:
    scene = two_lines()
    scene.ask("a", "b", "c", "d")
    scene.advance(0.6)
    first, second, instead, *alone = scene.lines
    assert (first.names, second.names) == (["a", "c"], ["b", "d", "c"])
    assert (instead.names, sorted(line.names for line in alone)) == (["d", "c"], [["a"], ["b"]])
    instead.answer()
    assert all(scene.answered(name) for name in "cd")


def test_a_query_that_waits_on_two_silent_connections_is_sent_three_times_at_most() -> None:
    scene = two_lines()
    scene.ask("a", "b", "c", "d")
    for _ in range(3):
        scene.advance(0.5)
        scene.ask("later", "latest")
    assert sum("c" in line.names for line in scene.lines) == 3
    scene.advance(1.0)
    assert scene.on_reply["c"] == [Failure("i/o timeout", timed_out=True)]
    for line in scene.lines:
        line.answer()
    assert scene.in_flight == 0


def test_n02_names_that_a_serial_upstream_is_busy_with_delay_the_others_on_their_connection_by_half_a_second() -> None:
    """The upstream answers the queries of a connection one after the other, as CoreDNS does. Each second begins with a
    name that takes it longer than the query waits.
    """
    scene = two_lines()
    asked: dict[str, int] = {}
    for turn in range(120):
        name = f"slow{turn}" if turn % 20 == 0 else f"n{turn}"
        asked[name] = turn
        scene.ask(name)
        scene.advance(0.05)
        for line in scene.lines:
            line.answer_in_turn("slow")
        late = [name for name, since in asked.items() if turn - since > 10 and not scene.on_reply[name]]
        assert all(name.startswith("slow") for name in late)
    assert sum(scene.answered(name) for name in asked if scene.on_reply[name]) == 120 - 6


def test_an_upstream_that_says_nothing_costs_few_connections() -> None:
    scene = Scene()
    for second in range(20):
        scene.ask(*(f"n{second}-{number}" for number in range(10)), timeout=2.0)
        scene.advance(1.0)
    scene.advance(2.0)
    assert len(scene.lines) <= 3 * 22
    assert all(on_reply == [Failure("i/o timeout", timed_out=True)] for on_reply in scene.on_reply.values())
    assert open_connections(scene.carrier) <= 2


def test_the_loss_of_one_of_the_two_connections_leaves_the_query_with_the_other() -> None:
    for lost, left in ((0, 2), (2, 0)):
        scene = two_lines()
        scene.ask("a")
        scene.advance(0.6)
        assert [line.names for line in scene.lines] == [["a"], [], ["a"]]
        scene.lines[lost].connection.fail(LOST)
        assert scene.on_reply["a"] == []
        scene.lines[left].answer()
        assert scene.answered("a")
        assert scene.in_flight == 0


def test_a_query_without_any_reply_times_out_once() -> None:
    scene = two_lines()
    scene.ask("a")
    scene.advance(2.1)
    assert scene.on_reply["a"] == [Failure("i/o timeout", timed_out=True)]
    assert (scene.counts.timed_out, scene.in_flight) == (1, 0)


def test_no_more_queries_are_under_way_twice_than_allowed() -> None:
    scene = two_lines(sent_twice=3)
    scene.ask(*(f"n{number}" for number in range(10)))
    first, second = scene.lines
    second.answer()
    scene.advance(0.7)
    alone = scene.lines[2]
    assert (len(first.names), len(second.names), len(alone.names)) == (5, 2, 1)
    second.answer()
    alone.answer()
    scene.advance(0.05)
    assert scene.counts.resent == 3


def test_a_query_that_is_cancelled_is_forgotten_wherever_it_was_sent() -> None:
    for waits in (0.1, 0.7):
        scene = two_lines()
        sent = scene.ask("a")
        scene.advance(waits)
        sent.cancel()
        sent.cancel()
        for line in scene.lines:
            line.answer()
        assert (scene.on_reply["a"], scene.in_flight) == ([], 0)
        assert all(line.connection.in_flight == 0 for line in scene.lines)
        sent = scene.ask("b")
        for line in scene.lines:
            line.answer()
        assert scene.answered("b")
        sent.cancel()
        assert all(line.connection.in_flight == 0 for line in scene.lines)


def test_queries_of_one_turn_of_the_loop_take_one_connection_and_the_next_turn_s_the_other() -> None:
    scene = two_lines()
    for turn in ("ab", "cd"):
        for name in turn:
            asked = Asked(name, scene.on_reply.setdefault(name, []))
            scene.carrier.exchange(asked, 2.0, scene.timers.time())
        scene.settle()
    assert sorted(line.names for line in scene.lines) == [["a", "b"], ["c", "d"]]


def test_a_full_connection_takes_no_more_queries_of_the_turn() -> None:
    scene = two_lines(in_flight=2)
    results = []
    for name in "abcde":
        results.append(scene.on_reply.setdefault(name, []))
        scene.carrier.exchange(Asked(name, results[-1]), 2.0, scene.timers.time())
    scene.settle()
    assert sorted(line.names for line in scene.lines) == [["a", "b"], ["c", "d"]]
    assert results[4] == [Failure("too many queries in flight", timed_out=False)]


def test_a_query_that_another_one_s_failure_cancels_is_neither_sent_again_nor_failed() -> None:
    scene = Scene(connections=1)
    other = Asked("other", scene.on_reply.setdefault("other", []))

    class Cancels(Asked):
        __slots__ = ()

        def on_reply(self, result: bytes | Failure) -> None:
            other.cancel()

    for each in (Cancels("cancels", []), other):
        scene.carrier.exchange(each, 2.0, scene.timers.time())
    (connection,) = scene.carrier._connections
    connection.fail(LOST)  # before it is open
    scene.settle()
    assert (scene.on_reply["other"], scene.in_flight, scene.lines) == ([], 0, [])


def connection_drawing(*idents: bytes) -> UpstreamConnection:
    loop = Loop()
    ids = RandomIds(lambda octets: b"".join(idents).ljust(octets, b"\xff"))
    limits = UpstreamLimits(max_age=0)
    endpoint = resolve_endpoint("192.0.2.1", 53, None, "", "")
    as_loop = cast(asyncio.AbstractEventLoop, loop)
    carrier = TcpCarrier(as_loop, endpoint, limits, Deadlines(loop.timers, limits.sweep), ids, Counts())
    return UpstreamConnection(carrier, as_loop, limits, ids, Counts(), 0)


def test_the_id_of_a_subscription_is_not_drawn_again_until_it_ends() -> None:
    connection = connection_drawing(b"aa", b"aa", b"bb", b"aa")
    first = connection.reserve()
    connection.keep(first)
    second = connection.reserve()
    connection.release(first)
    assert (first, second, connection.reserve()) == (b"aa", b"bb", b"aa")


def test_the_session_never_draws_the_id_of_unidirectional_messages() -> None:
    assert connection_drawing(b"\0\0", b"aa").reserve() == b"aa"


FEW = 16
SENT = 3  # times for which a query is sent at most

Stray = Callable[[bytes], bytes]


def another_id(message: bytes) -> bytes:
    return bytes((message[0] ^ 0xFF,)) + reply_to(message)[1:]


def another_question(message: bytes) -> bytes:
    return message[:2] + reply_to(query("other.example A"))[2:]


def no_reply(message: bytes) -> bytes:
    return message


def keepalive(_: bytes) -> bytes:
    return bytes.fromhex("0000 3000 0000 0000 0000 0000 0001 0008 ffffffff 00003a98")


STRAYS = (another_id, another_question, no_reply, keepalive)
each_stray = pytest.mark.parametrize("stray", STRAYS, ids=lambda stray: stray.__name__)


def asked() -> tuple[Scene, Line]:
    """A query in flight on the only connection."""
    scene = Scene(connections=1)
    scene.ask("www")
    return scene, scene.lines[0]


def flood(scene: Scene, line: Line, stray: Stray) -> None:
    line.connection.data_received(frame(stray(line.asked[0])) * 10_000)
    scene.timers.advance(0)  # they are taken
    scene.settle()


@each_stray
def test_a_few_of_them_do_not_end_the_wait_for_the_reply(stray: Stray) -> None:
    scene, line = asked()
    line.connection.data_received(frame(stray(line.asked[0])) * FEW)
    line.answer()
    assert scene.answered("www")
    assert not line.closed
    assert scene.counts.strays == FEW


@each_stray
def test_more_end_the_connection_and_the_query_is_sent_again(stray: Stray) -> None:
    scene, line = asked()
    flood(scene, line, stray)
    assert line.closed
    assert scene.counts.strays == FEW + 2, "one for the query, and the one that is too many"
    scene.lines[1].answer()
    assert scene.answered("www")


@each_stray
def test_a_query_whose_connections_all_end_so_fails_and_says_why(stray: Stray) -> None:
    scene = Scene(connections=1)
    scene.ask("www")
    for number in range(SENT):
        flood(scene, scene.lines[number], stray)
    assert scene.on_reply["www"] == [Failure("more messages from the upstream than queries to it", timed_out=False)]


def test_an_upstream_may_send_each_reply_twice_for_ever() -> None:
    scene, line = asked()
    for number in range(20 * FEW):
        line.connection.data_received(frame(reply_to(line.asked[0])) * 2)
        line.asked.clear()
        scene.ask(f"n{number}")
    assert not line.closed


def test_late_replies_are_not_held_against_an_upstream() -> None:
    scene, line = asked()
    line.answer()
    queries = [scene.ask(f"n{number}") for number in range(5 * FEW)]
    for one in queries:
        one.cancel()
    line.answer()
    scene.ask("last")
    line.answer("last")
    assert scene.answered("last")
    assert not line.closed


@settings(max_examples=20)
@given(sizes=st.lists(st.integers(1, 40_000), min_size=1, max_size=20))
def test_all_replies_are_taken_in_any_pieces_and_not_many_at_once(sizes: list[int]) -> None:
    scene = Scene(connections=1)
    names = [f"n{number}" for number in range(1000)]
    scene.ask(*names)
    line = scene.lines[0]
    stream = b"".join(frame(reply_to(message)) for message in line.asked)
    at = 0
    for size in (*sizes, len(stream)):
        before = sum(map(bool, scene.on_reply.values()))
        line.connection.data_received(stream[at : at + size])
        assert sum(map(bool, scene.on_reply.values())) - before <= 100
        at += size
    scene.timers.advance(0)
    assert all(scene.answered(name) for name in names)
