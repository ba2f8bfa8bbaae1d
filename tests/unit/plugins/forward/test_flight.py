"""Upstreams that are down, slow, lying or broken: an answer from another one, or SERVFAIL in time.

192.0.2.1 is asked first, unless a test names a policy.
"""

from weakref import ref

import pytest

from tests.support.forward_with_upstreams import ForwardScene
from tests.support.query_builders import ask, client
from tests.support.scripted_upstream import Behaviour, garbage, refuses, says, silent, whatever
from tests.support.virtual_timers import VirtualTimers
from topodns.dns.message import Ede, EdeCode, Edns, Flag
from topodns.dns.rrtype import Rcode
from topodns.plugins.forward.flight import HEDGED_AT_ONCE, SLACK, HedgeTimer
from topodns.plugins.forward.settings import UpstreamPolicy
from topodns.query.upstream import Transport

WWW = says("www.example.org. 300 IN A 192.0.2.7")
QUERY = ask("www.example.org")


def other_question(message: bytes) -> bytes:
    return WWW(message[:12] + b"\x04bank\x07example\0" + message[-4:])


def other_type(message: bytes) -> bytes:
    return says()(message[:-4] + b"\0\x1c\0\x01")


FAILING: dict[str, tuple[Behaviour, float]] = {
    "is silent": (silent, 2.0),
    "refuses connections": (refuses, 0.0),
    "sends garbage": (garbage, 0.0),
    "sends a header only": (lambda message: message[:2] + b"\x81\x80" + bytes(8), 0.0),
    "sends nothing": (lambda _: b"", 0.0),
    "answers another question": (other_question, 0.0),
    "answers for another type": (other_type, 0.0),
}


@pytest.mark.parametrize(("failing", "seconds"), FAILING.values(), ids=FAILING)
def test_the_next_upstream_is_asked_as_soon_as_one_fails(failing: Behaviour, seconds: float) -> None:
    scene = ForwardScene(failing, WWW)
    found = scene.asked_and_answered(QUERY)
    assert (found.rcode, found.resolution.upstream) == (Rcode.NOERROR, "192.0.2.2:53")
    assert (found.seconds, scene.asked) == (seconds, [1, 1])


ALONE: dict[str, tuple[Behaviour, float, Ede]] = {
    "silent": (silent, 4.0, Ede(EdeCode.NO_REACHABLE_AUTHORITY, "192.0.2.1:53: i/o timeout")),
    "refusing": (refuses, 0.1, Ede(EdeCode.NETWORK_ERROR, "192.0.2.1:53: connection refused")),
    "garbage": (
        garbage,
        0.1,
        Ede(EdeCode.NETWORK_ERROR, "192.0.2.1:53: reply that cannot be read: message ends too early"),
    ),
    "another question": (other_question, 0.1, Ede(EdeCode.NETWORK_ERROR, "192.0.2.1:53: reply to another question")),
}
FOR_CLIENTS = {
    "silent": "no upstream has answered in time",
    "refusing": "no upstream could be reached",
    "garbage": "no upstream has given an answer that can be used",
    "another question": "no upstream has given an answer that can be used",
}


@pytest.mark.parametrize(("failing", "seconds", "ede"), ALONE.values(), ids=ALONE)
def test_without_another_upstream_it_is_servfail_after_two_tries(failing: Behaviour, seconds: float, ede: Ede) -> None:
    scene = ForwardScene(failing, names_upstreams=True)
    found = scene.asked_and_answered(QUERY)
    assert (found.rcode, found.ede, found.seconds) == (Rcode.SERVFAIL, ede, seconds)
    assert (found.resolution.upstream, scene.asked) == ("192.0.2.1:53", [2])


@pytest.mark.parametrize("kind", ALONE)
def test_clients_get_the_reason_without_the_address_and_the_log_has_both(kind: str) -> None:
    failing, seconds, ede = ALONE[kind]
    found = ForwardScene(failing).asked_and_answered(QUERY, within=seconds)
    assert found.ede == Ede(ede.code, FOR_CLIENTS[kind])
    assert found.resolution.problem == ede.text


def test_the_problem_of_each_upstream_is_named() -> None:
    found = ForwardScene(silent, refuses, read_timeout=1.0, names_upstreams=True).asked_and_answered(QUERY)
    expected = "192.0.2.1:53: i/o timeout; 192.0.2.2:53: connection refused"
    assert found.ede == Ede(EdeCode.NETWORK_ERROR, expected)


@pytest.mark.parametrize("count", [1, 2, 5, 15])
@pytest.mark.parametrize("policy", UpstreamPolicy)
@pytest.mark.parametrize("attempts", [None, 0])
def test_silence_of_all_ends_after_four_seconds(count: int, policy: UpstreamPolicy, attempts: int | None) -> None:
    scene = ForwardScene(*[silent] * count, policy=policy, max_connect_attempts=attempts, max_fails=0)
    found = scene.asked_and_answered(QUERY)
    assert found.rcode == Rcode.SERVFAIL
    assert found.seconds == pytest.approx(4.0, abs=0.11)


def test_a_long_read_timeout_is_cut_to_the_time_left() -> None:
    scene = ForwardScene(silent, read_timeout=30.0)
    assert scene.asked_and_answered(QUERY).seconds == 4.0
    assert scene.upstreams[0].asked[0].timeout == 4.0


ATTEMPTS = {"two each": (None, [2, 2]), "one": (1, [1, 0]), "three": (3, [2, 1])}


@pytest.mark.parametrize(("limit", "asked"), ATTEMPTS.values(), ids=ATTEMPTS)
def test_max_connect_attempts_limits_the_tries_that_fail(limit: int | None, asked: list[int]) -> None:
    scene = ForwardScene(refuses, refuses, max_connect_attempts=limit, max_fails=0)
    assert scene.asked_and_answered(QUERY).rcode == Rcode.SERVFAIL
    assert scene.asked == asked


def test_without_a_limit_rounds_go_on_with_pauses_until_time_is_up() -> None:
    scene = ForwardScene(refuses, refuses, max_connect_attempts=0, max_fails=0)
    assert scene.asked_and_answered(QUERY).rcode == Rcode.SERVFAIL
    assert scene.asked == [40, 40]


def test_an_upstream_that_restarts_answers_in_the_second_round() -> None:
    scene = ForwardScene(refuses)
    waiting = scene.ask(QUERY)
    scene.upstreams[0].behave(WWW)
    scene.timers.advance(0.1)
    assert (waiting.rcode, waiting.seconds) == (Rcode.NOERROR, 0.1)


FAILOVER = says(rcode=Rcode.SERVFAIL), says(rcode=Rcode.REFUSED), WWW


def test_failover_asks_the_next_one_after_these_codes() -> None:
    scene = ForwardScene(*FAILOVER, failover=frozenset({Rcode.SERVFAIL, Rcode.REFUSED}))
    found = scene.asked_and_answered(QUERY)
    assert (found.rcode, found.resolution.upstream, scene.asked) == (Rcode.NOERROR, "192.0.2.3:53", [1, 1, 1])


def test_failover_leaves_other_codes_alone() -> None:
    scene = ForwardScene(*FAILOVER, failover=frozenset({Rcode.SERVFAIL}))
    assert scene.asked_and_answered(QUERY).rcode == Rcode.REFUSED
    assert scene.asked == [1, 1, 0]


def test_after_failover_through_all_the_last_answer_counts() -> None:
    scene = ForwardScene(*FAILOVER[:2], failover=frozenset({Rcode.SERVFAIL, Rcode.REFUSED}))
    found = scene.asked_and_answered(QUERY)
    assert (found.rcode, found.resolution.upstream, scene.asked) == (Rcode.REFUSED, "192.0.2.2:53", [1, 1])


def test_an_answer_that_is_not_good_enough_is_better_than_none() -> None:
    scene = ForwardScene(says(rcode=Rcode.SERVFAIL), refuses, failover=frozenset({Rcode.SERVFAIL}))
    found = scene.asked_and_answered(QUERY)
    assert (found.resolution.upstream, found.ede) == ("192.0.2.1:53", None)


def test_after_truncation_and_silence_over_tcp_the_next_upstream_is_asked_over_udp() -> None:
    scene = ForwardScene(silent, WWW, prefer_udp=True)
    scene.upstreams[0].behave(says(flags=Flag.TC), silent)
    assert scene.asked_and_answered(QUERY).rcode == Rcode.NOERROR
    transports = [asked.transport for upstream in scene.upstreams for asked in upstream.asked]
    assert transports == [Transport.UDP, Transport.TCP, Transport.UDP]


def cut_within_a_record(message: bytes) -> bytes:
    whole = says("www.example.org. 300 IN A 192.0.2.7", flags=Flag.TC)(message)
    assert isinstance(whole, bytes)
    return whole[:-2]


def test_a_reply_over_udp_that_is_truncated_within_a_record_is_truncated_for_the_client() -> None:
    found = ForwardScene(cut_within_a_record).asked_and_answered(QUERY)
    response = found.resolution.response
    assert (response.rcode, response.answer, response.flags & Flag.TC) == (Rcode.NOERROR, (), Flag.TC)


def test_with_prefer_udp_it_is_asked_for_over_tcp() -> None:
    scene = ForwardScene(cut_within_a_record, prefer_udp=True)
    scene.upstreams[0].behave(cut_within_a_record, WWW)
    found = scene.asked_and_answered(QUERY)
    assert len(found.resolution.response.answer) == 1
    assert [asked.transport for asked in scene.upstreams[0].asked] == [Transport.UDP, Transport.TCP]


def test_over_tcp_a_reply_that_ends_within_a_record_is_of_no_use() -> None:
    assert ForwardScene(cut_within_a_record, force_tcp=True).asked_and_answered(QUERY).rcode == Rcode.SERVFAIL


def test_formerr_with_and_without_edns_is_the_answer() -> None:
    scene = ForwardScene(says(rcode=Rcode.FORMERR), WWW)
    found = scene.asked_and_answered(ask("www.example.org", edns=Edns(1232, 0, False)))
    assert (found.rcode, scene.asked) == (Rcode.FORMERR, [2, 0])


@pytest.mark.parametrize("policy", [UpstreamPolicy.RANDOM, UpstreamPolicy.ROUND_ROBIN])
def test_where_upstreams_are_alike_a_second_one_is_asked_after_half_a_second(policy: UpstreamPolicy) -> None:
    scene = ForwardScene(WWW, WWW, policy=policy)
    for upstream in scene.upstreams:
        upstream.delay = 0.8
    found = scene.asked_and_answered(QUERY)
    assert (found.rcode, found.seconds, sorted(scene.asked)) == (Rcode.NOERROR, 0.8, [1, 1])


def test_one_dead_upstream_of_two_loses_nothing_and_no_answer_takes_a_second() -> None:
    scene = ForwardScene(silent, whatever, policy=UpstreamPolicy.RANDOM)
    scene.upstreams[0].probes_fail = True
    waiting = []
    for number in range(1000):
        waiting.append(scene.ask(ask(f"n{number}.example.org")))
        scene.timers.advance(0.01)
    scene.timers.advance(1.0)
    assert {each.rcode for each in waiting if each.arrived} == {Rcode.NOERROR}
    assert all(each.seconds is not None and each.seconds <= 0.6 for each in waiting)
    assert {each.seconds for each in waiting[600:]} == {0.0}  # its probes have failed by then


def test_with_three_dead_upstreams_of_four_each_half_second_brings_another() -> None:
    scene = ForwardScene(silent, silent, silent, whatever, policy=UpstreamPolicy.ROUND_ROBIN)
    waits = [scene.asked_and_answered(ask(f"{n}.example.org"), within=2.0).seconds for n in range(4)]
    assert max(wait for wait in waits if wait is not None) < 2.0


def test_sequential_upstreams_say_different_things_so_a_slow_one_is_waited_for() -> None:
    scene = ForwardScene(WWW, says(rcode=Rcode.NXDOMAIN))
    scene.upstreams[0].delay = 1.9
    found = scene.asked_and_answered(QUERY)
    assert (found.rcode, found.seconds, scene.asked) == (Rcode.NOERROR, 1.9, [1, 0])


def test_the_limit_of_tries_holds_for_the_second_one_too() -> None:
    scene = ForwardScene(WWW, WWW, policy=UpstreamPolicy.RANDOM, max_connect_attempts=1)
    for upstream in scene.upstreams:
        upstream.delay = 0.8
    scene.asked_and_answered(QUERY)
    assert sum(scene.asked) == 1


def test_a_reply_that_comes_too_late_is_counted_and_goes_nowhere() -> None:
    scene = ForwardScene(WWW, WWW, policy=UpstreamPolicy.ROUND_ROBIN)
    scene.upstreams[1].delay, scene.upstreams[0].delay = 1.0, 0.1  # the second one is asked first
    found = scene.asked_and_answered(QUERY)
    assert (found.resolution.upstream, found.seconds) == ("192.0.2.1:53", 0.6)
    replies = [scene.counts.upstream(each.name).durations["NOERROR"].count() for each in scene.upstreams]
    assert replies == [1, 1]


def test_a_bug_in_our_own_code_is_servfail(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: bytes, __: bytes) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("topodns.plugins.forward.flight.read_plain", broken)
    scene = ForwardScene(WWW)
    assert scene.asked_and_answered(QUERY).rcode == Rcode.SERVFAIL
    assert [record.message for record in caplog.records] == ["bug: the response of 192.0.2.1:53 for www.example.org."]
    assert scene.in_flight.total == 0


USELESS = {
    "another name and type": says("bank.example. 300 IN AAAA 2001:db8::66"),
    "another class": says("www.example.org. 300 CH A 192.0.2.66"),
    "seventeen aliases in a row": says(
        "www.example.org. 300 IN CNAME n0.example.",
        *(f"n{n}.example. 300 IN CNAME n{n + 1}.example." for n in range(16)),
        "n16.example. 300 IN A 192.0.2.66",
    ),
}


@pytest.mark.parametrize("useless", USELESS.values(), ids=USELESS)
def test_an_answer_about_anything_else_is_no_answer(useless: Behaviour) -> None:
    """Without the check, a stub would read it as a name that has no address."""
    scene = ForwardScene(useless, WWW)
    assert scene.asked_and_answered(QUERY).resolution.upstream == "192.0.2.2:53"
    assert ForwardScene(useless).asked_and_answered(QUERY).rcode == Rcode.SERVFAIL


def test_time_spent_on_an_earlier_query_for_the_client_counts() -> None:
    """`dns64` and `autopath` ask again: all of it together ends in time."""
    scene = ForwardScene(silent)
    asker = client()._replace(asked=scene.timers.time() - 3.0)
    waiting = scene.ask(QUERY, asker)
    scene.timers.advance(1.0)
    assert waiting.rcode == Rcode.SERVFAIL


class Wait:
    """Notes when it is hedged; wants it `times` times."""

    def __init__(self, timers: VirtualTimers, times: int = 1) -> None:
        self._timers = timers
        self._times = times
        self.over = False
        self.hedged: list[float] = []

    def hedge(self) -> bool:
        self.hedged.append(self._timers.time() - 1000.0)
        return len(self.hedged) < self._times


def test_a_waiting_query_is_hedged_when_its_time_is_up() -> None:
    timers = VirtualTimers()
    hedge_timer, wait = HedgeTimer(0.5, timers), Wait(timers)
    hedge_timer.watch(wait, timers.time())
    timers.advance(0.49)
    assert wait.hedged == []
    timers.advance(5.0)
    assert wait.hedged == [0.5]
    assert timers.pending == 0


def test_and_again_as_long_as_it_wants() -> None:
    timers = VirtualTimers()
    hedge_timer, wait = HedgeTimer(0.5, timers), Wait(timers, times=3)
    hedge_timer.watch(wait, timers.time())
    timers.advance(5.0)
    assert wait.hedged == [0.5, 1.0, 1.5]


def test_a_finished_query_is_not_hedged() -> None:
    timers = VirtualTimers()
    hedge_timer, wait = HedgeTimer(0.5, timers), Wait(timers)
    hedge_timer.watch(wait, timers.time())
    wait.over = True
    timers.advance(5.0)
    assert (wait.hedged, timers.pending) == ([], 0)


def test_many_waits_share_a_timer_and_are_hedged_little_late() -> None:
    timers = VirtualTimers()
    hedge_timer = HedgeTimer(0.5, timers)
    waits = []
    for _ in range(100):
        waits.append(Wait(timers))
        hedge_timer.watch(waits[-1], timers.time())
        assert timers.pending == 1
        timers.advance(0.001)
    timers.advance(5.0)
    late = [wait.hedged[0] - 0.5 - number * 0.001 for number, wait in enumerate(waits)]
    assert all(-1e-9 < seconds < SLACK + 1e-9 for seconds in late)


def test_waits_that_are_over_are_forgotten_as_others_come() -> None:
    timers = VirtualTimers()
    hedge_timer = HedgeTimer(0.5, timers)
    kept = []
    for _ in range(1000):
        wait = Wait(timers)
        hedge_timer.watch(wait, timers.time())
        wait.over = True
        kept.append(ref(wait))
    assert sum(each() is not None for each in kept) == 1


def test_of_many_whose_time_is_up_some_are_hedged_in_each_turn_of_the_loop() -> None:
    timers = VirtualTimers()
    hedge_timer, waits = HedgeTimer(0.5, timers), [Wait(timers) for _ in range(2 * HEDGED_AT_ONCE)]
    for wait in waits:
        hedge_timer.watch(wait, timers.time())
    turns: list[int] = []
    timers.call_later(0.5, lambda: turns.append(sum(bool(wait.hedged) for wait in waits)))
    timers.advance(0.5)
    assert turns == [HEDGED_AT_ONCE]
    assert all(wait.hedged == [0.5] for wait in waits)
