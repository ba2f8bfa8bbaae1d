"""Equal questions under way are one query to an upstream."""

from collections.abc import Callable

import pytest

from tests.support.dns_messages import ECS
from tests.support.forward_with_upstreams import ForwardScene, Waiting
from tests.support.query_builders import ask, client
from tests.support.scripted_upstream import silent, whatever
from tests.support.virtual_timers import VirtualTimer
from topodns.dns.message import Edns, Flag, Option, Query
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.forward.limits import InFlight
from topodns.plugins.forward.single_flight import AT_ONCE
from topodns.query.plugin import Client

QUERY = ask("www.example.org")


EDNS = Edns(1232, 0, False)


def slow_scene(**settings: object) -> ForwardScene:
    scene = ForwardScene(whatever, **settings)  # type: ignore[arg-type]  # only settings
    scene.upstreams[0].delay = 0.3
    return scene


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
