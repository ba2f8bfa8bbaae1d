"""DSO sessions over the pooled connections to an upstream: beside queries, and for as long as they are needed."""

import asyncio

from tests.support.dso_upstream import Noted
from tests.support.event_loops import either_loop, eventually
from tests.support.faulty_upstream import ANSWER, bad_upstream
from tests.support.push_upstream import PushingUpstream, closes_the_connection, not_implemented
from tests.support.upstream_queries import TCP, addresses, ask, upstream_at
from topodns.dns.dso import DsoMessage, DsoType, Tlv, write_dso
from topodns.net.upstream.address import UpstreamLimits

pytestmark = either_loop

SHORT_LIVED = UpstreamLimits(expire=0.1, max_age=0.2)


async def test_a_session_opens_a_connection_which_queries_use_as_well(loop_name: str) -> None:
    user = Noted()
    with bad_upstream(PushingUpstream(ANSWER)) as server:
        async with upstream_at(server.port) as upstream:
            assert upstream.begin_session(user)
            await eventually(lambda: user.session is not None)
            for _ in range(5):
                assert await addresses(ask(upstream, TCP)) == [ANSWER]
            assert server.connections == 1
        await eventually(lambda: [end.problem for end in user.ends] == ["connection closed"])


async def test_a_session_that_is_needed_keeps_its_connection_beyond_age_and_idle_time(loop_name: str) -> None:
    user = Noted()
    with bad_upstream(PushingUpstream(ANSWER)) as server:
        async with upstream_at(server.port, SHORT_LIVED) as upstream:
            upstream.begin_session(user)
            await eventually(lambda: user.session is not None)
            await asyncio.sleep(0.6)  # three times the age; nothing else shows that nothing happens
            assert (user.ends, server.open_connections) == ([], 1)
            for _ in range(5):  # beyond its age it has no more queries: they spread over the replicas
                assert await addresses(ask(upstream, TCP)) == [ANSWER]
            assert (user.ends, server.connections) == ([], 2)
            user.active = False
            await eventually(lambda: server.open_connections == 0)
            assert [end.refused for end in user.ends] == [False]


async def test_a_connection_whose_session_was_refused_still_carries_queries_and_gets_no_second_session(
    loop_name: str,
) -> None:
    first, second = Noted(), Noted()
    pushing = PushingUpstream(ANSWER)
    pushing.on_dso = not_implemented
    with bad_upstream(pushing) as server:
        async with upstream_at(server.port) as upstream:
            upstream.begin_session(first)
            await eventually(lambda: [end.refused for end in first.ends] == [True])
            assert await addresses(ask(upstream, TCP)) == [ANSWER]
            assert not upstream.begin_session(second)
            assert (server.connections, len(pushing.seen)) == (1, 1)


async def test_queries_beside_a_session_that_makes_the_upstream_close_are_answered(loop_name: str) -> None:
    user = Noted()
    pushing = PushingUpstream(ANSWER)
    pushing.on_dso = closes_the_connection
    with bad_upstream(pushing) as server:
        async with upstream_at(server.port) as upstream:
            upstream.begin_session(user)
            outcomes = [ask(upstream, TCP) for _ in range(20)]
            for outcome in outcomes:
                assert await addresses(outcome) == [ANSWER]
            await eventually(lambda: [end.refused for end in user.ends] == [False])


async def test_queries_keep_a_session_that_nothing_else_needs(loop_name: str) -> None:
    """RFC 8490 section 6.3: the inactivity timer counts from the latest message that is no Keepalive."""
    user = Noted()
    user.active = False
    with bad_upstream(PushingUpstream(ANSWER)) as server:
        async with upstream_at(server.port, UpstreamLimits(expire=30)) as upstream:
            upstream.begin_session(user)
            await eventually(lambda: user.session is not None)
            loop = asyncio.get_running_loop()
            line = user.session._line  # type: ignore[union-attr]
            before = loop.time()
            outcome = ask(upstream, TCP)
            assert line.last_query() >= before
            assert await addresses(outcome) == [ANSWER]
            settled = line.last_query()
            assert (before <= settled <= loop.time(), line.replies) == (True, 1)


async def test_messages_without_an_id_reach_the_session_beside_queries_with_any_id(loop_name: str) -> None:
    user = Noted()
    pushing = PushingUpstream(ANSWER)
    with bad_upstream(pushing) as server:
        async with upstream_at(server.port) as upstream:
            upstream.begin_session(user)
            await eventually(lambda: user.session is not None)
            message = write_dso(DsoMessage(0, False, 0, Tlv(DsoType.PUSH, b"x")))
            outcomes = []
            for _ in range(100):
                outcomes += [ask(upstream, TCP) for _ in range(10)]
                pushing.do(server, lambda: pushing.channel_of_last().send(message))
            for outcome in outcomes:
                assert await addresses(outcome) == [ANSWER]
            await eventually(lambda: user.got == [message] * 100)
            assert upstream.counts[TCP].strays == 0


async def test_an_upstream_that_is_closed_begins_no_session(loop_name: str) -> None:
    with bad_upstream(PushingUpstream()) as server:
        async with upstream_at(server.port) as upstream:
            upstream.close()
            assert not upstream.begin_session(Noted())
            assert server.connections == 0


async def test_a_session_with_an_upstream_that_is_not_there_ends_without_a_refusal(loop_name: str) -> None:
    user = Noted()
    with bad_upstream(PushingUpstream()) as server:
        port = server.port
    async with upstream_at(port) as upstream:
        assert upstream.begin_session(user)
        await eventually(lambda: [end.refused for end in user.ends] == [False])
