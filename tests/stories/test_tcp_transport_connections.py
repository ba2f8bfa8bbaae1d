"""Which connections to an upstream there are: how many, how old, how idle, and what the loss of one costs."""

from collections import Counter

from tests.support.event_loops import either_loop, eventually
from tests.support.faulty_upstream import ANSWER, Act, Asked, bad_upstream
from tests.support.upstream_faults import answers, one_after_another, resets, silent, slow
from tests.support.upstream_queries import (
    BRIEF,
    TCP,
    TIMED_OUT,
    UDP,
    addresses,
    ask,
    ask_briefly,
    open_sockets,
    result,
    upstream_at,
)
from topodns.net.upstream.address import UpstreamLimits

pytestmark = either_loop


async def test_one_query_at_a_time_needs_one_connection(loop_name: str) -> None:
    with bad_upstream(answers) as server:
        async with upstream_at(server.port) as upstream:
            for _ in range(20):
                assert await addresses(ask(upstream, TCP)) == [ANSWER]
            counts = upstream.counts[TCP]
            assert (counts.hits, counts.misses) == (19, 1)
        assert server.connections == 1


async def test_a_query_beside_another_has_a_second_connection_opened(loop_name: str) -> None:
    with bad_upstream(answers) as server:
        async with upstream_at(server.port) as upstream:
            await addresses(ask(upstream, TCP))
            for _ in range(10):
                for outcome in [ask(upstream, TCP) for _ in range(20)]:
                    assert await addresses(outcome) == [ANSWER]
        assert server.connections == 2
        assert len({asked.port for asked in server.asked}) == 2
        by_connection = [sum(asked.connection == number for asked in server.asked) for number in (1, 2)]
        assert min(by_connection) > 50  # each takes its share of the 201


async def test_udp_and_tcp_do_not_share_anything(loop_name: str) -> None:
    with bad_upstream(answers) as server:
        async with upstream_at(server.port) as upstream:
            for transport in (UDP, TCP):
                assert await addresses(ask(upstream, transport)) == [ANSWER]
        assert [asked.transport for asked in server.asked] == ["udp", "tcp"]


async def test_an_unused_connection_is_closed(loop_name: str) -> None:
    with bad_upstream(answers) as server:
        async with upstream_at(server.port, UpstreamLimits(expire=0.05)) as upstream:
            assert await addresses(ask(upstream, TCP)) == [ANSWER]
            await eventually(lambda: open_sockets(upstream) == server.open_connections == 0)
            assert await addresses(ask(upstream, TCP)) == [ANSWER]
        assert [asked.connection for asked in server.asked] == [1, 2]


async def test_an_old_connection_takes_no_query_and_closes_when_its_last_one_is_answered(loop_name: str) -> None:
    kept: list[Asked] = []

    def keeps_one_for_the_next_connection(asked: Asked) -> list[Act]:
        if asked.connection == 1 and len(kept) < 1:
            kept.append(asked)
            return []
        return answers(asked) if asked.connection == 1 else [*answers(kept[0]), *answers(asked)]

    with bad_upstream(keeps_one_for_the_next_connection) as server:
        async with upstream_at(server.port, UpstreamLimits(max_age=BRIEF, connections=1)) as upstream:
            waits = ask(upstream, TCP)
            while server.connections < 2:
                assert await addresses(ask(upstream, TCP)) == [ANSWER]
            assert await addresses(waits) == [ANSWER]
            assert upstream.counts[TCP].resent == 0
            await eventually(lambda: server.open_connections == 0)  # the new one is old soon as well


async def test_a_connection_without_an_age_lives_on(loop_name: str) -> None:
    with bad_upstream(one_after_another(answers, slow(BRIEF), answers)) as server:
        async with upstream_at(server.port, UpstreamLimits(max_age=0)) as upstream:
            for _ in range(3):
                await addresses(ask(upstream, TCP))
        assert server.connections == 1


async def test_no_more_idle_connections_are_kept_than_max_idle_conns(loop_name: str) -> None:
    with bad_upstream(answers) as server:
        async with upstream_at(server.port, UpstreamLimits(max_idle_conns=1)) as upstream:
            await addresses(ask(upstream, TCP))
            both = [ask(upstream, TCP) for _ in range(2)]
            await eventually(lambda: server.connections == 2)
            both += [ask(upstream, TCP) for _ in range(20)]
            for outcome in both:
                assert await addresses(outcome) == [ANSWER]
            await eventually(lambda: server.open_connections == 1)
            assert open_sockets(upstream) == 1


async def test_the_loss_of_one_of_two_connections_loses_no_query(loop_name: str) -> None:
    met = Counter[int]()

    def resets_the_first(asked: Asked) -> list[Act]:
        met[asked.connection] += 1
        return resets(asked) if met[1] == 100 and asked.connection == 1 else answers(asked)

    with bad_upstream(resets_the_first) as server:
        async with upstream_at(server.port) as upstream:
            for _ in range(25):
                for outcome in [ask(upstream, TCP) for _ in range(20)]:
                    assert await addresses(outcome) == [ANSWER]
            assert upstream.counts[TCP].resent > 0


async def test_an_upstream_that_restarts_is_asked_again_without_a_loss(loop_name: str) -> None:
    met: list[Asked] = []

    def ends_both_connections_once(asked: Asked) -> list[Act]:
        """With 20 queries unanswered on them."""
        met.append(asked)
        if len(met) == 61:
            return [Act(channel.reset) for channel in {each.channel for each in met}]
        return silent(asked) if 41 < len(met) < 61 else answers(asked)

    with bad_upstream(ends_both_connections_once) as server:
        async with upstream_at(server.port) as upstream:
            await addresses(ask(upstream, TCP))
            for outcome in [ask(upstream, TCP) for _ in range(20)]:
                await addresses(outcome)
            await eventually(lambda: server.connections == 2)
            for _ in range(2):
                for outcome in [ask(upstream, TCP) for _ in range(20)]:
                    assert await addresses(outcome) == [ANSWER]
            assert upstream.counts[TCP].resent >= 20


async def test_a_connection_that_has_gone_silent_gets_no_more_queries(loop_name: str) -> None:
    met: list[Asked] = []

    def silent_on_the_first(asked: Asked) -> list[Act]:
        met.append(asked)
        return silent(asked) if asked.connection == 1 and len(met) > 1 else answers(asked)

    with bad_upstream(silent_on_the_first) as server:
        async with upstream_at(server.port) as upstream:
            await addresses(ask(upstream, TCP))
            assert await result(ask_briefly(upstream, TCP)) == TIMED_OUT
            assert await addresses(ask(upstream, TCP)) == [ANSWER]
            await eventually(lambda: server.open_connections == 1)


async def test_a_connection_with_many_ids_that_were_given_up_is_replaced(loop_name: str) -> None:
    def silent_about_one_name(asked: Asked) -> list[Act]:
        return silent(asked) if b"silent" in asked.message else answers(asked)

    with bad_upstream(silent_about_one_name) as server:
        async with upstream_at(server.port, UpstreamLimits(in_flight=10, connections=1, sweep=0.01)) as upstream:
            given_up = [ask_briefly(upstream, TCP, "silent.example.org A") for _ in range(6)]
            assert await addresses(ask(upstream, TCP)) == [ANSWER]
            assert [await result(outcome) for outcome in given_up] == [TIMED_OUT] * 6
            assert await addresses(ask(upstream, TCP)) == [ANSWER]
        assert [asked.connection for asked in server.asked] == [1] * 7 + [2]


async def test_a_second_connection_that_does_not_last_is_not_tried_all_the_time(loop_name: str) -> None:
    def one_connection_only(asked: Asked) -> list[Act]:
        return answers(asked) if asked.connection == 1 else resets(asked)

    with bad_upstream(one_connection_only) as server:
        async with upstream_at(server.port, UpstreamLimits(second_attempt=60)) as upstream:
            await addresses(ask(upstream, TCP))
            for _ in range(20):
                for outcome in [ask(upstream, TCP) for _ in range(20)]:
                    assert await addresses(outcome) == [ANSWER]
        assert server.connections == 2


async def test_a_close_waits_for_queries_in_flight(loop_name: str) -> None:
    with bad_upstream(slow(BRIEF)) as server:
        async with upstream_at(server.port) as upstream:
            outcome = ask(upstream, TCP)
            upstream.close()
            assert await addresses(outcome) == [ANSWER]
            await eventually(lambda: server.open_connections == 0)
