"""Messages of an upstream over TCP that are no replies: a few are ignored, more end the connection."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.dns_messages import query
from tests.support.upstream_faults import reply_to
from tests.unit.net.upstream.test_tcp_connection_silence import Line, Scene
from topodns.dns.tcp_framing import frame
from topodns.query.upstream import Failure

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


@settings(max_examples=50)
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
