"""An upstream that closes the connection at some names: the others on it get their answers."""

from collections import Counter
from collections.abc import Callable

import pytest

from tests.support.event_loops import either_loop, eventually
from tests.support.faulty_upstream import ANSWER, Act, Asked, Behaviour, bad_upstream
from tests.support.upstream_faults import answers, closes, resets, slow
from tests.support.upstream_queries import (
    BRIEF,
    TCP,
    addresses,
    ask,
    in_flight,
    open_sockets,
    result,
    send,
    upstream_at,
)
from topodns.net.upstream.tcp_transport import MOST

pytestmark = either_loop

ENDINGS: list[Callable[[Asked], list[Act]]] = [closes, resets]


def ends_at_bad_names(end: Behaviour, otherwise: Behaviour = answers) -> Behaviour:
    return lambda asked: (end if b"bad" in asked.message else otherwise)(asked)


@pytest.mark.parametrize("end", ENDINGS)
async def test_n03_names_at_which_the_upstream_closes_the_connection_cost_no_other_its_answer(
    loop_name: str, end: Behaviour
) -> None:
    with bad_upstream(ends_at_bad_names(end, slow(0.005))) as server:
        async with upstream_at(server.port) as upstream:
            await addresses(ask(upstream, TCP))
            asked = []
            for number in range(60):
                asked.append(ask(upstream, TCP, f"n{number}.example.org A"))
                if number % 6 == 0:
                    asked.append(ask(upstream, TCP, f"bad{number}.example.org A"))
            results = [await result(outcome) for outcome in asked]
            assert sum(isinstance(each, bytes) for each in results) == 60
            assert await addresses(ask(upstream, TCP)) == [ANSWER]
        sent = Counter(each.message[12:] for each in server.asked)
        assert max(sent.values()) <= 3


async def test_no_more_connections_than_so_many_are_open_for_queries_in_isolation(loop_name: str) -> None:
    with bad_upstream(ends_at_bad_names(closes, slow(0.005))) as server:
        async with upstream_at(server.port) as upstream:
            asked = [ask(upstream, TCP, f"bad{number}.example.org A") for number in range(50)]
            most = 0
            while not all(outcome.settled for outcome in asked):
                await result(ask(upstream, TCP))
                most = max(most, open_sockets(upstream))
            assert most <= MOST + 4  # of the others two take queries, and two may be closing


async def test_a_query_that_waits_for_an_isolated_connection_may_be_cancelled_or_time_out(loop_name: str) -> None:
    def silent_in_isolation(asked: Asked) -> list[Act]:
        return closes(asked) if asked.connection <= 2 else []

    with bad_upstream(silent_in_isolation) as server:
        async with upstream_at(server.port) as upstream:
            asked = [send(4 * BRIEF, upstream, TCP, f"n{number}.example.org A") for number in range(MOST + 10)]
            await eventually(lambda: open_sockets(upstream) >= MOST)
            cancelled = asked[-1]
            cancelled.cancel()
            for each in asked[:-1]:
                assert not isinstance(await result(each.outcome), bytes)
            assert not cancelled.outcome.settled
            assert in_flight(upstream) == 0


async def test_a_close_waits_for_queries_in_isolation(loop_name: str) -> None:
    with bad_upstream(lambda asked: closes(asked) if asked.connection <= 2 else slow(0.02)(asked)) as server:
        async with upstream_at(server.port) as upstream:
            await result(ask(upstream, TCP, "bad.example.org A"))
            asked = [ask(upstream, TCP, f"n{number}.example.org A") for number in range(3 * MOST)]
            await eventually(lambda: any(outcome.settled for outcome in asked))
            upstream.close()
            for outcome in asked:
                await result(outcome)
            await eventually(lambda: server.open_connections == 0)
