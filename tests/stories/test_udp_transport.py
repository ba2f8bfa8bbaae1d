"""Asking an upstream over UDP, whatever it does, on both event loops."""

import socket
from collections.abc import Callable

import pytest

from tests.support.event_loops import PATIENCE, either_loop, eventually, needs_ipv6
from tests.support.faulty_upstream import ANSWER, Behaviour, bad_upstream
from tests.support.upstream_faults import (
    LIES,
    answers,
    as_large_as_can_be,
    backwards,
    one_after_another,
    other_case,
    says,
    says_first,
    says_from,
    silent,
    slow,
    truncated,
    wrong_id,
    wrong_name,
)
from tests.support.upstream_queries import (
    BRIEF,
    REFUSED,
    TIMED_OUT,
    UDP,
    addresses,
    ask,
    ask_briefly,
    ask_within,
    in_flight,
    open_files,
    open_sockets,
    reply,
    result,
    send,
    upstream_at,
)
from topodns.net.upstream.address import UpstreamLimits
from topodns.query.upstream import Failure

pytestmark = either_loop


def unused_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


async def test_every_query_has_a_port_and_an_id_of_its_own(loop_name: str) -> None:
    with bad_upstream(backwards(200)) as server:
        async with upstream_at(server.port) as upstream:
            outcomes = [ask(upstream, UDP) for _ in range(200)]
            assert in_flight(upstream) == open_sockets(upstream) == 200
            for outcome in outcomes:
                assert await addresses(outcome) == [ANSWER]
        ids, ports = ([asked.message[:2] for asked in server.asked], [asked.port for asked in server.asked])
        assert len(set(ports)) == 200
        assert len(set(ids)) > 190  # of 65,536: a few of 200 may well be equal
        assert sorted(ids) != ids
        assert sorted(ports) != ports


async def test_a_port_is_not_kept_for_the_next_query(loop_name: str) -> None:
    with bad_upstream(answers) as server:
        async with upstream_at(server.port) as upstream:
            for _ in range(50):
                await addresses(ask(upstream, UDP))
            assert len({asked.port for asked in server.asked}) > 45
            assert upstream.counts[UDP].misses == 50
            assert upstream.counts[UDP].hits == 0


@pytest.mark.parametrize("lie", LIES)
async def test_a_message_that_is_no_reply_is_ignored_and_the_wait_goes_on(
    loop_name: str, lie: Callable[[bytes], bytes]
) -> None:
    with bad_upstream(says_first(lie)) as server:
        async with upstream_at(server.port) as upstream:
            assert await addresses(ask(upstream, UDP)) == [ANSWER]
            assert upstream.counts[UDP].strays == 1


@pytest.mark.parametrize(
    "behaviour", [pytest.param(silent, id="silent"), *(pytest.param(says(lie), id=lie.__name__) for lie in LIES)]
)
async def test_without_a_reply_the_time_is_used_to_its_end(loop_name: str, behaviour: Behaviour) -> None:
    with bad_upstream(behaviour) as server:
        async with upstream_at(server.port) as upstream:
            assert await result(ask_briefly(upstream, UDP)) == TIMED_OUT
            assert open_sockets(upstream) == 0
            assert upstream.counts[UDP].timed_out == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.66"])
async def test_a_reply_from_another_port_or_address_is_not_there(loop_name: str, host: str) -> None:
    with bad_upstream(says_from(host)) as server:
        async with upstream_at(server.port) as upstream:
            assert await addresses(ask(upstream, UDP)) == [ANSWER]


async def test_a_reply_may_spell_the_name_as_it_likes(loop_name: str) -> None:
    with bad_upstream(says(other_case)) as server:
        async with upstream_at(server.port) as upstream:
            assert (await reply(ask(upstream, UDP, "www.Example.org A"))).answer == [
                f"WWW.eXAMPLE.ORG. 60 IN A {ANSWER}"
            ]


async def test_a_truncated_reply_is_a_reply(loop_name: str) -> None:
    with bad_upstream(says(truncated)) as server:
        async with upstream_at(server.port) as upstream:
            assert "tc" in (await reply(ask(upstream, UDP))).flag_names


async def test_a_large_datagram_comes_whole(loop_name: str) -> None:
    def most_of_it(message: bytes) -> bytes:
        return as_large_as_can_be(message)[:65_000]  # a datagram over IPv4 has room for 65,507

    with bad_upstream(says(most_of_it)) as server:
        async with upstream_at(server.port) as upstream:
            on_reply = await result(ask(upstream, UDP))
            assert isinstance(on_reply, bytes)
            assert len(on_reply) == 65_000


async def test_a_port_without_a_listener_fails_at_once(loop_name: str) -> None:
    async with upstream_at(unused_port()) as upstream:
        assert await result(ask(upstream, UDP)) == REFUSED
        assert open_sockets(upstream) == 0


async def test_a_source_address_that_is_not_here_fails_at_once(loop_name: str) -> None:
    async with upstream_at(53, source_address="192.0.2.9") as upstream:
        assert await result(ask(upstream, UDP)) == Failure("cannot assign requested address", timed_out=False)
        assert in_flight(upstream) == 0


async def test_a_late_reply_is_dropped(loop_name: str) -> None:
    with bad_upstream(one_after_another(slow(2 * BRIEF), slow(2 * BRIEF))) as server:
        async with upstream_at(server.port) as upstream:
            assert await result(ask_briefly(upstream, UDP)) == TIMED_OUT
            asked_again = ask(upstream, UDP, "other.example.org A")
            assert (await reply(asked_again)).answer == [f"other.example.org. 60 IN A {ANSWER}"]


async def test_several_replies_at_once_count_once(loop_name: str) -> None:
    with bad_upstream(lambda asked: [act for _ in range(5) for act in answers(asked)]) as server:
        async with upstream_at(server.port) as upstream:
            settled: list[bytes | Failure] = []
            outcomes = [ask(upstream, UDP) for _ in range(20)]
            for outcome in outcomes:
                outcome.then(settled.append)
                await result(outcome)
            assert len(settled) == 20


async def test_more_queries_than_there_may_be_sockets_fail_at_once(loop_name: str) -> None:
    with bad_upstream(silent) as server:
        async with upstream_at(server.port, UpstreamLimits(udp_queries=10, sweep=0.01)) as upstream:
            outcomes = [ask_briefly(upstream, UDP) for _ in range(12)]
            assert [outcome.settled for outcome in outcomes] == [False] * 10 + [True] * 2
            assert await result(outcomes[-1]) == Failure("too many queries in flight", timed_out=False)
            await eventually(lambda: open_sockets(upstream) == 0)
            server.behaviour = answers
            assert await addresses(ask(upstream, UDP)) == [ANSWER]


async def test_it_asks_from_the_source_address(loop_name: str) -> None:
    with bad_upstream(answers) as server:
        async with upstream_at(server.port, source_address="127.0.0.77") as upstream:
            assert await addresses(ask(upstream, UDP)) == [ANSWER]
        assert [asked.host for asked in server.asked] == ["127.0.0.77"]


@needs_ipv6
async def test_it_asks_over_ipv6(loop_name: str) -> None:
    with bad_upstream(answers, host="::1") as server:
        async with upstream_at(server.port, host="::1") as upstream:
            assert upstream.name == f"[::1]:{server.port}"
            assert await addresses(ask(upstream, UDP)) == [ANSWER]


async def test_a_thousand_exchanges_leave_nothing_open(loop_name: str) -> None:
    behaviours: list[Behaviour] = [answers, says(wrong_id), says_first(wrong_name), slow(0.001)]
    with bad_upstream(one_after_another(*behaviours * 250)) as server:
        before = open_files()
        async with upstream_at(server.port) as upstream:
            for _ in range(2):
                results = [await result(each) for each in [ask_briefly(upstream, UDP) for _ in range(500)]]
                assert TIMED_OUT in results
                assert any(isinstance(each, bytes) for each in results)
        await eventually(lambda: open_files() == before)


async def test_a_close_waits_for_queries_in_flight(loop_name: str) -> None:
    with bad_upstream(slow(BRIEF)) as server:
        before = open_files()
        async with upstream_at(server.port) as upstream:
            outcome = ask(upstream, UDP)
            upstream.close()
            assert await result(ask(upstream, UDP)) == Failure("no longer in use", timed_out=False)
            assert await addresses(outcome) == [ANSWER]
        await eventually(lambda: open_files() == before)


async def test_a_query_may_be_asked_because_another_is_settled(loop_name: str) -> None:
    with bad_upstream(answers) as server:
        async with upstream_at(server.port) as upstream:
            done: list[bytes | Failure] = []

            def go_on(on_reply: bytes | Failure) -> None:
                done.append(on_reply)
                if len(done) < 300:
                    ask(upstream, UDP).then(go_on)

            for _ in range(5):
                ask(upstream, UDP).then(go_on)
            await eventually(lambda: len(done) == 304)
            assert all(isinstance(on_reply, bytes) for on_reply in done)


PATIENT_FOR_LITTLE = UpstreamLimits(udp_patience=0.05, sweep=0.01)


async def test_a_query_without_a_reply_is_sent_again_from_another_port_and_the_first_reply_counts(
    loop_name: str,
) -> None:
    with bad_upstream(one_after_another(silent, answers)) as server:
        async with upstream_at(server.port, PATIENT_FOR_LITTLE) as upstream:
            assert await addresses(ask(upstream, UDP)) == [ANSWER]
            counts = upstream.counts[UDP]
            assert (counts.resent, counts.misses, counts.timed_out, open_sockets(upstream)) == (1, 2, 0, 0)
        first, again = server.asked
        assert first.port != again.port
        assert first.message[2:] == again.message[2:]


async def test_a_query_is_sent_twice_and_no_more(loop_name: str) -> None:
    with bad_upstream(silent) as server:
        async with upstream_at(server.port, PATIENT_FOR_LITTLE) as upstream:
            assert await result(ask_within(4 * BRIEF, upstream, UDP)) == TIMED_OUT
            assert upstream.counts[UDP].timed_out == 1
        assert len(server.asked) == 2


async def test_a_late_reply_to_the_first_of_two_is_the_answer(loop_name: str) -> None:
    with bad_upstream(one_after_another(slow(BRIEF), silent)) as server:
        async with upstream_at(server.port, PATIENT_FOR_LITTLE) as upstream:
            assert await addresses(ask(upstream, UDP)) == [ANSWER]
            assert open_sockets(upstream) == 0
        assert len(server.asked) == 2


async def test_no_more_queries_are_under_way_twice_than_allowed(loop_name: str) -> None:
    with bad_upstream(silent) as server:
        limits = UpstreamLimits(udp_patience=0.05, sent_twice=3, udp_queries=10, sweep=0.01)
        async with upstream_at(server.port, limits) as upstream:
            outcomes = [ask_within(3 * BRIEF, upstream, UDP) for _ in range(10)]
            await eventually(lambda: open_sockets(upstream) == 13)
            outcomes.append(ask_briefly(upstream, UDP))
            assert outcomes[-1].settled
            assert [await result(outcome) for outcome in outcomes[:10]] == [TIMED_OUT] * 10
        assert len(server.asked) == 13


async def test_where_another_upstream_is_asked_instead_nothing_is_sent_again(loop_name: str) -> None:
    with bad_upstream(silent) as server:
        async with upstream_at(server.port, UpstreamLimits(udp_patience=0, sweep=0.01)) as upstream:
            assert await result(ask_briefly(upstream, UDP)) == TIMED_OUT
        assert len(server.asked) == 1


async def test_a_query_that_is_cancelled_gives_its_ports_back_and_nothing_comes_of_it(loop_name: str) -> None:
    with bad_upstream(silent) as server:
        async with upstream_at(server.port, PATIENT_FOR_LITTLE) as upstream:
            for waits_for in (1, 2):
                asked = send(PATIENCE, upstream, UDP)
                await eventually(lambda: open_sockets(upstream) == waits_for)  # noqa: B023
                asked.cancel()
                asked.cancel()
                assert open_sockets(upstream) == in_flight(upstream) == 0
                assert not asked.outcome.settled
