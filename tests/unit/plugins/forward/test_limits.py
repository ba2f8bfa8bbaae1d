"""How many questions wait at a time, of all and of one client."""

import pytest

from tests.support.forward_with_upstreams import ForwardScene
from tests.support.query_builders import ask, client
from tests.support.scripted_upstream import refuses, silent, whatever
from topodns.dns.rrtype import Rcode
from topodns.plugins.forward.limits import InFlight
from topodns.query.plugin import Dropped

QUERY = ask("www.example.org")


def slow_scene(**settings: object) -> ForwardScene:
    scene = ForwardScene(whatever, **settings)  # type: ignore[arg-type]  # only settings
    scene.upstreams[0].delay = 0.3
    return scene


def test_max_concurrent_refuses_queries_beyond_it() -> None:
    scene = slow_scene(max_concurrent=2)
    waiting = [scene.ask(ask(f"n{n}.example.org")) for n in range(2)]
    refused = scene.ask(ask("n3.example.org"))
    assert (refused.rcode, refused.resolution.response.flags, refused.resolution.upstream) == (Rcode.REFUSED, 0, "")
    scene.timers.advance(0.3)
    assert [each.rcode for each in waiting] == [Rcode.NOERROR] * 2
    assert scene.asked_and_answered(ask("n3.example.org")).rcode == Rcode.NOERROR
    assert scene.counts.max_concurrent_rejects == 1


def test_a_client_with_too_many_questions_in_flight_is_dropped_and_others_are_not() -> None:
    scene = slow_scene(in_flight=InFlight(max_total=4, max_per_client=2))
    for n in range(2):
        scene.ask(ask(f"n{n}.example.org"))
    with pytest.raises(Dropped):
        scene.ask(ask("n3.example.org"))
    other = scene.ask(ask("n3.example.org"), client("10.240.0.2"))
    scene.timers.advance(0.3)
    assert other.rcode == Rcode.NOERROR
    assert (scene.in_flight.dropped_by_client, scene.in_flight.dropped_in_total) == (1, 0)


def test_too_many_questions_of_all_are_dropped() -> None:
    scene = slow_scene(in_flight=InFlight(max_total=2, max_per_client=2))
    for n in range(2):
        scene.ask(QUERY, client(f"10.240.0.{n}"))
    with pytest.raises(Dropped):
        scene.ask(QUERY, client("10.240.0.9"))
    assert (scene.in_flight.dropped_by_client, scene.in_flight.dropped_in_total) == (0, 1)


@pytest.mark.parametrize("behave", [whatever, silent, refuses], ids=["answered", "silent", "refused"])
def test_an_answered_query_is_no_longer_in_flight(behave: object) -> None:
    scene = ForwardScene(behave)  # type: ignore[arg-type]  # one of the three
    for n in range(5):
        scene.ask(QUERY, client(f"10.240.0.{n % 2}"))
    scene.timers.advance(4.0)
    assert scene.in_flight.total == 0
