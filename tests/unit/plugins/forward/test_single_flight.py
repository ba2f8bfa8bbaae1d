"""Equal questions under way are one query to an upstream; a query that waits alone is its own flight."""

import gc
import weakref
from collections.abc import Callable

import pytest

from tests.support.deferred_results import at_once
from tests.support.dns_messages import ECS
from tests.support.forward_with_upstreams import ForwardScene, Waiting
from tests.support.query_builders import ask, client
from tests.support.scripted_upstream import garbage, refuses, says, silent, whatever
from tests.support.virtual_timers import VirtualTimer
from tests.unit.plugins.forward.scene import slow_scene
from topodns.dns.message import Edns, Flag, Option, Query
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.forward.flight import DEADLINE, UpstreamAnswer
from topodns.plugins.forward.settings import HEDGE_AFTER, UpstreamPolicy
from topodns.plugins.forward.single_flight import AT_ONCE, LoneFlight
from topodns.plugins.forward.waiting_limit import InFlight
from topodns.query.plugin import Client
from topodns.query.upstream import QUESTION_AT

QUERY = ask("www.example.org")

EDNS = Edns(1232, 0, False)


def test_two_hundred_clients_with_one_question_are_one_upstream_query() -> None:
    scene = slow_scene()
    waiting = [scene.ask(QUERY, client(f"10.240.0.{n}")) for n in range(200)]
    scene.timers.advance(0.3)
    assert [each.rcode for each in waiting] == [Rcode.NOERROR] * 200
    assert scene.asked == [1]


class _Turns:
    """How many wait each time that the rest of the program is given its turn."""

    def __init__(self, scene: ForwardScene) -> None:
        self.in_flight: list[int] = []
        call_later = scene.timers.call_later

        def noting(delay: float, callback: Callable[[], object], /) -> VirtualTimer:
            timer = call_later(delay, callback)
            if not delay:
                call_later(0.0, lambda: self.in_flight.append(scene.in_flight.total))
            return timer

        scene.timers.call_later = noting  # type: ignore[method-assign]


def test_queries_that_wait_for_one_answer_get_it_some_in_each_turn_of_the_loop() -> None:
    scene = slow_scene()
    waiting = [scene.ask(QUERY, client(f"10.240.{n >> 8}.{n & 255}")) for n in range(3 * AT_ONCE)]
    turns = _Turns(scene)
    scene.timers.advance(0.3)
    assert turns.in_flight == [AT_ONCE, 0]
    assert [each.rcode for each in waiting] == [Rcode.NOERROR] * 3 * AT_ONCE


def test_while_some_still_wait_for_an_answer_equal_questions_are_asked_anew_and_those_give_way() -> None:
    scene = slow_scene(in_flight=InFlight(max_total=2 * AT_ONCE, max_per_client=2 * AT_ONCE))
    old = [scene.ask(QUERY) for _ in range(2 * AT_ONCE)]
    new: list[Waiting] = []

    def asked_meanwhile() -> None:
        new.extend(scene.ask(QUERY, client("10.240.0.2")) for _ in range(AT_ONCE))
        new.append(scene.ask(QUERY, client("10.240.0.3")))

    scene.upstreams[0].delay = 0.2
    scene.timers.call_later(0.3, asked_meanwhile)  # after the first have their answer, before the others have
    scene.timers.advance(1.0)
    assert sum(each.arrived for each in old) == 2 * AT_ONCE - 1
    assert scene.in_flight.preempted == 1
    assert [each.rcode for each in new] == [Rcode.NOERROR] * (AT_ONCE + 1)
    assert (scene.asked, scene.in_flight.total) == ([2], 0)


SAME = {
    "another spelling": (QUERY, client(), ask("WwW.example.ORG"), client("10.240.0.2")),
    "another id": (QUERY, client(), QUERY._replace(id=1), client()),
    "another EDNS size and options of the client's": (
        ask("www.example.org", edns=EDNS),
        client(),
        ask("www.example.org", edns=Edns(4096, 0, False, ((Option.COOKIE, b"12345678"), (ECS, b"\0\1\0\0")))),
        client("10.240.0.2"),
    ),
}

DIFFERENT = {
    "another type": (QUERY, client(), ask("www.example.org", RRType.AAAA), client()),
    "without RD": (QUERY, client(), ask("www.example.org", flags=0), client()),
    "with CD": (QUERY, client(), ask("www.example.org", flags=Flag.RD | Flag.CD), client()),
    "with EDNS": (QUERY, client(), ask("www.example.org", edns=EDNS), client()),
    "with DO": (
        ask("www.example.org", edns=EDNS),
        client(),
        ask("www.example.org", edns=Edns(1232, 0, True)),
        client(),
    ),
    "over TCP": (QUERY, client(), QUERY, client(transport="tcp")),
}


@pytest.mark.parametrize(("one", "asker", "other", "other_asker"), SAME.values(), ids=SAME)
def test_equal_questions_share_a_flight(one: Query, asker: Client, other: Query, other_asker: Client) -> None:
    scene = slow_scene()
    waiting = scene.ask(one, asker), scene.ask(other, other_asker)
    scene.timers.advance(0.3)
    assert ([each.rcode for each in waiting], scene.asked) == ([Rcode.NOERROR] * 2, [1])


@pytest.mark.parametrize(("one", "asker", "other", "other_asker"), DIFFERENT.values(), ids=DIFFERENT)
def test_questions_that_may_have_different_answers_do_not(
    one: Query, asker: Client, other: Query, other_asker: Client
) -> None:
    scene = slow_scene()
    waiting = scene.ask(one, asker), scene.ask(other, other_asker)
    scene.timers.advance(0.3)
    assert ([each.rcode for each in waiting], scene.asked) == ([Rcode.NOERROR] * 2, [2])


def test_over_one_transport_it_is_the_same_whatever_the_client_s_is() -> None:
    scene = slow_scene(force_tcp=True)
    waiting = scene.ask(QUERY), scene.ask(QUERY, client(transport="tcp"))
    scene.timers.advance(0.3)
    assert ([each.rcode for each in waiting], scene.asked) == ([Rcode.NOERROR] * 2, [1])


def test_with_options_of_ours_the_client_s_edns_makes_no_difference() -> None:
    scene = slow_scene(options=((65518, b"node-a"),))
    waiting = [scene.ask(query) for query in (QUERY, ask("www.example.org", edns=EDNS))]
    scene.timers.advance(0.3)
    assert ([each.rcode for each in waiting], scene.asked) == ([Rcode.NOERROR] * 2, [1])


def test_an_answered_question_is_asked_anew() -> None:
    scene = ForwardScene(whatever)
    for _ in range(3):
        scene.asked_and_answered(QUERY)
    assert scene.asked == [3]


def test_queries_that_join_late_wait_for_the_time_left() -> None:
    scene = ForwardScene(silent)
    scene.ask(QUERY)
    scene.timers.advance(3.0)
    assert scene.asked_and_answered(QUERY, within=1.0).rcode == Rcode.SERVFAIL


class Alone(LoneFlight):
    """Notes what comes of it, and when. A plain reply is relayed if `relays`."""

    __slots__ = ("__weakref__", "_now", "answer", "preempted", "relays", "seconds")

    def __init__(self, scene: ForwardScene, address: bytes, relays: bool) -> None:
        self.message = scene.forwarding.outgoing.question_message(QUERY)
        self.question = self.message[QUESTION_AT:]
        self.address = address
        self.started = scene.timers.time()
        self.settled = False
        self.carrier = self.twin = self.flight = self.deliver = None
        self._now: Callable[[], float] = scene.timers.time
        self.answer: UpstreamAnswer | None = None
        self.preempted = False
        self.relays = relays
        self.seconds = -1.0

    def on_answer(self, answer: UpstreamAnswer) -> None:
        self.answer = answer
        self._end_with(b"answer")

    def relayed(self, data: bytes) -> bytes | None:
        assert data[12:].startswith(self.question)
        return b"relayed" if self.relays else None

    def preempt(self) -> None:
        self.preempted = True
        self.leave()
        self.settle(None)

    def _end_with(self, reply: bytes) -> None:
        self.seconds = self._now() - self.started
        self.settle(reply)


def alone(
    scene: ForwardScene, address: bytes = bytes((10, 240, 0, 1)), taken: bool = True, relays: bool = False
) -> Alone:
    waiter = Alone(scene, address, relays)
    assert scene.forwarding.single_flight.join_alone(waiter, True) is taken
    return waiter


def nothing_is_left(scene: ForwardScene) -> bool:
    single_flight = scene.forwarding.single_flight
    return (single_flight.flights, single_flight.waiting, scene.in_flight.total) == ({}, 0, 0)


def test_a_relayed_reply_comes_without_a_flight_or_an_answer() -> None:
    scene = ForwardScene(whatever)
    waiter = alone(scene, relays=True)
    assert at_once(waiter) == b"relayed"
    assert (waiter.answer, waiter.flight) == (None, None)
    assert nothing_is_left(scene)


def test_the_reply_is_delivered_whether_it_comes_before_or_after_it_is_wanted() -> None:
    for delay in (0.0, 0.1):
        scene = ForwardScene(whatever)
        scene.upstreams[0].delay = delay
        waiter = alone(scene, relays=True)
        delivered: list[tuple[object, bytes | None]] = []
        waiter.deliver_to(lambda place, reply: delivered.append((place, reply)), "peer")  # noqa: B023
        scene.timers.advance(delay)
        assert delivered == [("peer", b"relayed")]


def test_a_plain_reply_that_is_not_relayed_comes_without_a_flight() -> None:
    scene = ForwardScene(whatever)
    waiter = alone(scene)
    assert waiter.answer is not None
    assert waiter.answer.answer[0].rdatas == (bytes((192, 0, 2, 7)),)
    assert waiter.flight is None
    assert nothing_is_left(scene)
    assert scene.counts.upstream("192.0.2.1:53").durations["NOERROR"].count() == 1


def test_an_equal_query_shares_its_exchange_whichever_came_first() -> None:
    for first in (True, False):
        scene = ForwardScene(whatever)
        scene.upstreams[0].delay = 0.3
        waiters = [alone(scene)] if first else []
        waiting = scene.ask(QUERY, client("10.240.0.2"))
        waiters += [alone(scene, bytes((10, 240, 0, 3))), alone(scene, bytes((10, 240, 0, 4)))]
        scene.timers.advance(0.3)
        assert waiting.rcode == Rcode.NOERROR
        assert all(each.answer is not None and each.answer.answer for each in waiters)
        assert scene.asked == [1]
        assert nothing_is_left(scene)


def test_a_reply_that_is_not_plain_is_the_answer_of_a_flight() -> None:
    scene = ForwardScene(says(rcode=Rcode.NXDOMAIN))
    waiter = alone(scene)
    assert waiter.answer is not None
    assert waiter.answer.rcode == Rcode.NXDOMAIN
    assert nothing_is_left(scene)


def test_after_a_failure_the_next_upstream_is_asked() -> None:
    for fails in (refuses, garbage):
        scene = ForwardScene(fails, whatever)
        waiter = alone(scene)
        assert waiter.answer is not None
        assert (waiter.answer.rcode, waiter.answer.upstream) == (Rcode.NOERROR, "192.0.2.2:53")
        assert scene.asked == [1, 1]
        assert nothing_is_left(scene)


def test_a_late_reply_is_hedged_and_the_first_of_both_counts() -> None:
    scene = ForwardScene(silent, whatever, policy=UpstreamPolicy.ROUND_ROBIN)
    waiters = [alone(scene)]
    scene.timers.advance(HEDGE_AFTER + 0.1)
    waiters.append(alone(scene))
    scene.timers.advance(HEDGE_AFTER + 0.1)
    assert all(each.over for each in waiters)
    assert max(each.seconds for each in waiters) <= HEDGE_AFTER + 0.1
    assert sorted(scene.asked) in ([1, 1], [1, 2])
    assert nothing_is_left(scene)


def test_the_deadline_counts_from_the_query() -> None:
    scene = ForwardScene(silent)
    waiter = alone(scene)
    scene.timers.advance(DEADLINE + 0.1)
    assert waiter.answer is not None
    assert (waiter.answer.rcode, waiter.answer.failed) == (Rcode.SERVFAIL, True)
    assert DEADLINE - 0.2 <= waiter.seconds <= DEADLINE
    assert nothing_is_left(scene)


def test_with_all_upstreams_down_it_is_a_flight_from_the_start() -> None:
    scene = ForwardScene(refuses, failfast=True, max_fails=1)
    scene.upstreams[0].probes_fail = True
    alone(scene)
    scene.timers.advance(5.0)
    asked = scene.asked
    waiter = alone(scene)
    assert waiter.answer is not None
    assert (waiter.answer.rcode, scene.asked) == (Rcode.SERVFAIL, asked)
    assert nothing_is_left(scene)


def test_preempted_it_cancels_its_exchange() -> None:
    scene = ForwardScene(silent, in_flight=InFlight(max_total=2, max_per_client=2))
    scene.ask(ask("other.example.org"), client("10.240.0.1"))
    waiter = alone(scene)  # the newest query of the client with the most
    scene.ask(ask("third.example.org"), client("10.240.0.2"))
    assert (waiter.preempted, scene.in_flight.preempted, scene.in_flight.total) == (True, 1, 2)
    scene.timers.advance(DEADLINE + 0.1)
    assert waiter.answer is None
    assert nothing_is_left(scene)


def test_beyond_the_limits_it_is_refused_and_nothing_is_asked() -> None:
    scene = ForwardScene(silent, max_concurrent=1)
    alone(scene)
    alone(scene, bytes((10, 240, 0, 2)), taken=False)
    assert scene.asked == [1]


def test_it_is_freed_without_the_garbage_collector() -> None:
    gc.disable()
    try:
        for behaviour in (whatever, says(rcode=Rcode.NXDOMAIN)):
            scene = ForwardScene(behaviour)
            scene.upstreams[0].delay = 0.1
            waiter = alone(scene)
            freed = weakref.ref(waiter)
            scene.timers.advance(0.2)
            assert waiter.over
            del waiter
            assert freed() is None
    finally:
        gc.enable()
