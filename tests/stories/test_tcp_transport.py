"""Asking an upstream over TCP, whatever it does with the connection and says on it, on both event loops."""

import contextlib
import socket
from collections.abc import Callable, Iterator

import pytest

from tests.support.event_loops import either_loop, eventually, needs_ipv6
from tests.support.faulty_upstream import ANSWER, Act, Asked, Behaviour, bad_upstream
from tests.support.upstream_faults import (
    LIES,
    answers,
    as_large_as_can_be,
    backwards,
    closes,
    dripping,
    half_a_reply,
    one_after_another,
    other_case,
    resets,
    says,
    says_first,
    silent,
    slow,
    wrong_id,
)
from tests.support.upstream_queries import (
    BRIEF,
    REFUSED,
    TCP,
    TIMED_OUT,
    TLS,
    addresses,
    ask,
    ask_briefly,
    ask_within,
    in_flight,
    open_files,
    open_sockets,
    reply,
    result,
    upstream_at,
)
from topodns.dns.wire_format import MAX_MESSAGE
from topodns.net.upstream.address import UpstreamLimits
from topodns.query.upstream import Failure

pytestmark = either_loop

LOST = Failure("connection closed by the upstream", timed_out=False)
RESET = Failure("connection reset by peer", timed_out=False)


@contextlib.contextmanager
def deaf_port() -> Iterator[int]:
    """A port whose connections are never set up: the queue of those that wait to be accepted is full."""
    with contextlib.ExitStack() as sockets:
        listener = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port = listener.getsockname()[1]
        for _ in range(4):
            sock = sockets.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", port))
        yield port


async def test_queries_are_pipelined_and_replies_come_in_any_order(loop_name: str) -> None:
    with bad_upstream(backwards(50)) as server:
        async with upstream_at(server.port) as upstream:
            outcomes = [ask(upstream, TCP, f"n{number}.example.org A") for number in range(50)]
            for number, outcome in enumerate(outcomes):
                assert (await reply(outcome)).answer == [f"n{number}.example.org. 60 IN A {ANSWER}"]
        ids = [asked.message[:2] for asked in server.asked]
        assert len({(asked.connection, asked.message[:2]) for asked in server.asked}) == 50
        assert ids != sorted(ids)
        assert server.connections == 1  # all were waiting for the first one to be there


@pytest.mark.parametrize("lie", LIES)
async def test_a_message_that_is_no_reply_is_ignored_and_the_wait_goes_on(
    loop_name: str, lie: Callable[[bytes], bytes]
) -> None:
    with bad_upstream(says_first(lie)) as server:
        async with upstream_at(server.port) as upstream:
            assert await addresses(ask(upstream, TCP)) == [ANSWER]
            assert upstream.counts[TCP].strays == 1


@pytest.mark.parametrize(
    "behaviour", [pytest.param(silent, id="silent"), *(pytest.param(says(lie), id=lie.__name__) for lie in LIES)]
)
async def test_without_a_reply_the_time_is_used_to_its_end(loop_name: str, behaviour: Behaviour) -> None:
    with bad_upstream(behaviour) as server:
        async with upstream_at(server.port) as upstream:
            assert await result(ask_briefly(upstream, TCP)) == TIMED_OUT
            assert upstream.counts[TCP].timed_out == 1


@pytest.mark.parametrize("fault", [resets, closes, half_a_reply])
async def test_n03_a_query_whose_connection_is_lost_is_sent_again(loop_name: str, fault: Behaviour) -> None:
    with bad_upstream(one_after_another(answers, fault, answers)) as server:
        async with upstream_at(server.port) as upstream:
            assert await addresses(ask(upstream, TCP)) == [ANSWER]
            assert await addresses(ask(upstream, TCP)) == [ANSWER]
            assert upstream.counts[TCP].resent == 1
        assert [asked.connection for asked in server.asked] == [1, 1, 2]


@pytest.mark.parametrize(
    ("fault", "failure"),
    [
        pytest.param(resets, RESET, id="resets"),
        pytest.param(closes, LOST, id="closes"),
        pytest.param(half_a_reply, LOST, id="half_a_reply"),
        pytest.param(says(lambda message: b"short"), LOST, id="no DNS message"),
        pytest.param(says(lambda message: b""), LOST, id="empty message"),
    ],
)
async def test_n03_an_upstream_that_loses_every_connection_fails_soon(
    loop_name: str, fault: Behaviour, failure: Failure
) -> None:
    with bad_upstream(fault) as server:
        async with upstream_at(server.port) as upstream:
            assert await result(ask(upstream, TCP)) == failure
            assert open_sockets(upstream) == 0
        assert server.connections == len(server.asked) == 3


async def test_queries_that_wait_while_a_connection_is_lost_are_all_sent_again(loop_name: str) -> None:
    kept: list[Asked] = []

    def resets_after_twenty(asked: Asked) -> list[Act]:
        kept.append(asked)
        if len(kept) < 20:
            return []
        return resets(asked) if len(kept) == 20 else answers(asked)

    with bad_upstream(resets_after_twenty) as server:
        async with upstream_at(server.port) as upstream:
            for outcome in [ask(upstream, TCP) for _ in range(20)]:
                assert await addresses(outcome) == [ANSWER]
            assert upstream.counts[TCP].resent == 20
        assert len(server.asked) == 40


async def test_a_late_reply_is_dropped(loop_name: str) -> None:
    with bad_upstream(one_after_another(answers, slow(2 * BRIEF), slow(3 * BRIEF))) as server:
        async with upstream_at(server.port) as upstream:
            assert await addresses(ask(upstream, TCP)) == [ANSWER]
            assert await result(ask_briefly(upstream, TCP)) == TIMED_OUT
            asked_again = ask(upstream, TCP, "other.example.org A")
            assert (await reply(asked_again)).answer == [f"other.example.org. 60 IN A {ANSWER}"]


async def test_a_port_without_a_listener_fails_at_once(loop_name: str) -> None:
    with bad_upstream(answers) as server:
        port = server.port
    async with upstream_at(port) as upstream:
        outcomes = [ask(upstream, TCP) for _ in range(20)]
        assert [await result(outcome) for outcome in outcomes] == [REFUSED] * 20
        assert open_sockets(upstream) == 0


async def test_a_connection_that_is_never_set_up_is_no_longer_waited_for_than_the_query(loop_name: str) -> None:
    with deaf_port() as port:
        before = open_files()
        async with upstream_at(port) as upstream:
            outcomes = [ask_briefly(upstream, TCP) for _ in range(5)]
            assert [await result(outcome) for outcome in outcomes] == [TIMED_OUT] * 5
            assert upstream.counts[TCP].timed_out == 5
            await eventually(lambda: open_sockets(upstream) == 0)
        await eventually(lambda: open_files() == before)


async def test_a_query_with_no_time_left_does_not_cost_others_their_connection(loop_name: str) -> None:
    with bad_upstream(answers) as server:
        async with upstream_at(server.port) as upstream:
            hurried = ask_within(0.0, upstream, TCP)
            assert await addresses(ask(upstream, TCP)) == [ANSWER]
            assert hurried.settled
        assert server.connections == 1


@pytest.mark.parametrize("behaviour", [dripping, says(other_case)])
async def test_a_reply_may_come_in_pieces_and_in_any_spelling(loop_name: str, behaviour: Behaviour) -> None:
    with bad_upstream(behaviour) as server:
        async with upstream_at(server.port) as upstream:
            assert await addresses(ask(upstream, TCP)) == [ANSWER]


async def test_the_largest_message_there_is_comes_whole(loop_name: str) -> None:
    with bad_upstream(says(as_large_as_can_be)) as server:
        async with upstream_at(server.port) as upstream:
            for outcome in [ask(upstream, TCP) for _ in range(3)]:
                on_reply = await result(outcome)
                assert isinstance(on_reply, bytes)
                assert len(on_reply) == MAX_MESSAGE


async def test_more_queries_than_there_may_be_in_flight_fail_at_once(loop_name: str) -> None:
    with contextlib.ExitStack() as running:
        server = running.enter_context(bad_upstream(silent))
        async with upstream_at(server.port, UpstreamLimits(in_flight=10)) as upstream:
            first = [ask(upstream, TCP) for _ in range(10)]
            await eventually(lambda: len(server.asked) == 10)
            more = [ask(upstream, TCP) for _ in range(12)]
            assert [outcome.settled for outcome in first + more] == [False] * 20 + [True] * 2
            assert await result(more[-1]) == Failure("too many queries in flight", timed_out=False)
            running.close()  # so that no query waits for the others


async def test_an_upstream_that_does_not_read_costs_no_memory_and_no_time(loop_name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        before = open_files()
        async with upstream_at(listener.getsockname()[1], UpstreamLimits(in_flight=100, sweep=0.01)) as upstream:
            outcomes = [ask_briefly(upstream, TCP) for _ in range(1000)]
            assert sum(outcome.settled for outcome in outcomes) == 800  # two connections
            assert await result(outcomes[0]) == TIMED_OUT
            await eventually(lambda: in_flight(upstream) == 0)
        await eventually(lambda: open_files() == before)


async def test_it_asks_from_the_source_address(loop_name: str) -> None:
    with bad_upstream(answers) as server:
        async with upstream_at(server.port, source_address="127.0.0.77") as upstream:
            assert await addresses(ask(upstream, TCP)) == [ANSWER]
        assert [asked.host for asked in server.asked] == ["127.0.0.77"]


@needs_ipv6
async def test_it_asks_over_ipv6(loop_name: str) -> None:
    with bad_upstream(answers, host="::1") as server:
        async with upstream_at(server.port, host="::1") as upstream:
            assert await addresses(ask(upstream, TCP)) == [ANSWER]


async def test_without_a_context_there_is_no_tls(loop_name: str) -> None:
    async with upstream_at(853) as upstream:
        assert await result(ask(upstream, TLS)) == Failure("not to be asked over tcp-tls", timed_out=False)


async def test_a_thousand_exchanges_leave_nothing_open(loop_name: str) -> None:
    behaviours: list[Behaviour] = [*[answers] * 90, silent, says(wrong_id), closes, half_a_reply, resets]
    with bad_upstream(one_after_another(*behaviours * 50)) as server:
        before = open_files()
        async with upstream_at(server.port) as upstream:
            for _ in range(5):
                results = [await result(each) for each in [ask_within(1.0, upstream, TCP) for _ in range(200)]]
                assert any(isinstance(each, bytes) for each in results)
        await eventually(lambda: open_files() == before + server.open_connections == before)
