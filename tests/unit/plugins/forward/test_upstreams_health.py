"""Upstreams that a directive believes to be down and finds to be up again; which one it asks first; their counts."""

from collections import Counter
from random import Random

import pytest

from tests.support.forward_with_upstreams import ForwardScene
from tests.support.query_builders import ask
from tests.support.scripted_upstream import refuses, says, silent, whatever
from topodns.dns.message import Ede, EdeCode
from topodns.dns.rrtype import Rcode
from topodns.plugins.forward.handler import Forwarding
from topodns.plugins.forward.settings import Forward, HealthCheck, UpstreamAddress, UpstreamPolicy
from topodns.plugins.forward.upstreams import ForwardCounts, UpstreamCounts
from topodns.plugins.forward.waiting_limit import InFlight
from topodns.query.counters import DURATION_BUCKETS
from topodns.query.upstream import Transport

QUERY = ask("www.example.org")


def probes(scene: ForwardScene) -> list[int]:
    return [len(upstream.probes) for upstream in scene.upstreams]


def one_down(**settings: object) -> ForwardScene:
    """192.0.2.1 refuses, also probes, and is found to be down; 192.0.2.2 answers."""
    scene = ForwardScene(refuses, whatever, **settings)  # type: ignore[arg-type]  # only settings
    scene.upstreams[0].probes_fail = True
    scene.asked_and_answered(QUERY)
    scene.timers.advance(10.0)
    return scene


def test_an_upstream_that_answers_is_not_probed() -> None:
    scene = ForwardScene(whatever, whatever)
    scene.asked_and_answered(QUERY, within=60.0)
    assert probes(scene) == [0, 0]


def test_a_failed_question_starts_a_probe_at_once_and_one_that_is_answered_ends_it() -> None:
    scene = ForwardScene(refuses, whatever)
    scene.asked_and_answered(QUERY, within=0.0)
    assert probes(scene) == [1, 0]
    scene.timers.advance(60.0)
    assert probes(scene) == [1, 0]


def test_probes_go_on_until_one_is_answered() -> None:
    scene = ForwardScene(refuses, whatever)
    scene.upstreams[0].probes_fail = True
    scene.asked_and_answered(QUERY)  # a probe gives up after 1 s, and the next comes 0.5 s later
    scene.timers.advance(5.0)
    assert probes(scene) == [7, 0]
    scene.upstreams[0].probes_fail = False
    scene.timers.advance(60.0)
    assert probes(scene) == [8, 0]
    assert scene.counts.upstream("192.0.2.1:53").healthcheck_failures == 7


def test_many_failed_questions_are_one_course_of_probes() -> None:
    scene = ForwardScene(refuses, whatever)
    scene.upstreams[0].probes_fail = True
    for n in range(20):
        scene.ask(ask(f"n{n}.example.org"))
    assert probes(scene) == [1, 0]


def test_after_more_failed_probes_than_max_fails_it_is_asked_no_more() -> None:
    scene = ForwardScene(refuses, whatever, max_fails=2)
    scene.upstreams[0].probes_fail = True
    scene.asked_and_answered(QUERY, within=3.9)  # the third probe fails after 4 s
    scene.asked_and_answered(QUERY, within=0.2)
    assert scene.asked == [2, 2]
    scene.asked_and_answered(QUERY, within=0.0)
    assert scene.asked == [2, 3]


def test_a_probe_that_is_answered_brings_it_back() -> None:
    scene = one_down()
    scene.upstreams[0].behave(whatever)
    scene.upstreams[0].probes_fail = False
    scene.timers.advance(1.5)
    assert scene.asked_and_answered(QUERY).resolution.upstream == "192.0.2.1:53"


def test_with_max_fails_0_it_is_never_down_nor_probed() -> None:
    scene = one_down(max_fails=0)
    asked = scene.asked[0]
    scene.asked_and_answered(QUERY)
    assert (scene.asked[0], probes(scene)) == (asked + 1, [0, 0])


def all_down(**settings: object) -> ForwardScene:
    scene = ForwardScene(refuses, refuses, **settings)  # type: ignore[arg-type]  # only settings
    for upstream in scene.upstreams:
        upstream.probes_fail = True
    scene.asked_and_answered(QUERY)
    scene.timers.advance(10.0)
    assert scene.counts.healthcheck_broken == 0
    return scene


def test_where_all_are_down_one_is_asked_all_the_same() -> None:
    scene = all_down()
    scene.upstreams[0].behave(whatever)
    scene.upstreams[1].behave(whatever)
    before = sum(scene.asked)
    assert scene.asked_and_answered(QUERY).rcode == Rcode.NOERROR
    assert (sum(scene.asked), scene.counts.healthcheck_broken) == (before + 1, 1)


def test_where_all_are_down_it_is_one_at_random() -> None:
    scene = all_down()
    for upstream in scene.upstreams:
        upstream.asked.clear()
    for n in range(20):
        scene.ask(ask(f"n{n}.example.org"))
    assert min(scene.asked) > 3


def test_an_answer_to_a_question_says_that_it_is_up_as_well_as_a_probe_does() -> None:
    scene = all_down()
    for upstream in scene.upstreams:
        upstream.behave(whatever)
    scene.asked_and_answered(QUERY, within=0.0)
    scene.asked_and_answered(QUERY, within=0.0)
    assert scene.counts.healthcheck_broken == 1


def test_with_failfast_no_upstream_is_asked_where_all_are_down() -> None:
    scene = all_down(failfast=True)
    before = scene.asked
    found = scene.asked_and_answered(QUERY, within=0.0)
    ede = Ede(EdeCode.NO_REACHABLE_AUTHORITY, "all upstreams are down")
    assert found.resolution.problem == "all upstreams are down: 192.0.2.1:53, 192.0.2.2:53"
    assert (found.rcode, found.ede, scene.asked) == (Rcode.SERVFAIL, ede, before)
    assert scene.counts.healthcheck_broken == 1


PROBES: dict[str, tuple[dict[str, object], Transport]] = {
    "over UDP": ({}, Transport.UDP),
    "over UDP, also with prefer_udp": ({"prefer_udp": True}, Transport.UDP),
    "over TCP with force_tcp": ({"force_tcp": True}, Transport.TCP),
    "over TLS": ({"tls": True, "force_tcp": True}, Transport.TLS),
}


@pytest.mark.parametrize(("settings", "transport"), PROBES.values(), ids=PROBES)
def test_a_probe_travels(settings: dict[str, object], transport: Transport) -> None:
    scene = ForwardScene(refuses, **settings)  # type: ignore[arg-type]  # only settings
    scene.asked_and_answered(QUERY)
    assert {(probe.transport, probe.timeout) for probe in scene.upstreams[0].probes} == {(transport, 1.0)}


@pytest.mark.parametrize(("interval", "count"), [(0.5, 7), (5.0, 2), (0.0, 9)])
def test_probes_come_at_the_interval_of_health_check(interval: float, count: int) -> None:
    scene = ForwardScene(refuses, whatever, health_check=HealthCheck(interval))
    scene.upstreams[0].probes_fail = True
    scene.asked_and_answered(QUERY, within=9.5)
    assert probes(scene) == [count, 0]


def test_a_slow_upstream_is_probed_when_another_is_asked_beside_it() -> None:
    scene = ForwardScene(silent, whatever, policy=UpstreamPolicy.ROUND_ROBIN)
    for n in range(2):
        scene.asked_and_answered(ask(f"n{n}.example.org"), within=0.5)
    assert probes(scene) == [1, 0]


def test_a_closed_step_probes_no_more_and_brings_its_flights_to_an_end() -> None:
    scene = ForwardScene(refuses, silent)
    scene.upstreams[0].probes_fail = True
    waiting = scene.ask(QUERY)
    scene.forwarding.close()
    scene.timers.advance(60.0)
    assert waiting.rcode == Rcode.SERVFAIL
    assert probes(scene) == [1, 0]
    assert scene.timers.pending == 0


def test_a_directive_knows_when_all_of_its_upstreams_are_down() -> None:
    scene = ForwardScene(silent, silent)
    assert not scene.forwarding.all_down
    for upstream in scene.upstreams:
        upstream.probes_fail = True
    for number in range(2):
        scene.ask(ask(f"n{number}.example.org"))
    scene.timers.advance(20)
    assert scene.forwarding.all_down
    scene.upstreams[1].probes_fail = False
    scene.timers.advance(2)
    assert not scene.forwarding.all_down


def reachable(scene: ForwardScene) -> list[bool | None]:
    return [scene.counts.upstream(upstream.name).reachable for upstream in scene.upstreams]


def test_whether_an_upstream_can_be_reached_is_known_once_something_has_come_of_it() -> None:
    scene = ForwardScene(refuses, whatever)
    assert reachable(scene) == [None, None]
    scene.upstreams[0].probes_fail = True
    scene.asked_and_answered(QUERY, within=0.0)
    assert reachable(scene) == [None, True]  # the probe may still be answered
    scene.timers.advance(1.0)
    assert reachable(scene) == [False, True]
    scene.upstreams[0].probes_fail = False
    scene.timers.advance(0.5)
    assert reachable(scene) == [True, True]


def test_one_question_without_a_reply_does_not_make_an_upstream_unreachable_that_answers_its_probe() -> None:
    scene = ForwardScene(refuses, whatever)
    scene.asked_and_answered(QUERY)
    assert reachable(scene) == [True, True]


def test_with_max_fails_0_questions_alone_say_whether_an_upstream_can_be_reached() -> None:
    scene = ForwardScene(refuses, whatever, max_fails=0)
    scene.asked_and_answered(QUERY)
    assert reachable(scene) == [False, True]
    scene.upstreams[0].behave(whatever)
    scene.asked_and_answered(QUERY)
    assert reachable(scene) == [True, True]


def test_a_watched_upstream_without_queries_is_probed() -> None:
    scene = ForwardScene(whatever, whatever)
    scene.forwarding.watch()
    assert (reachable(scene), probes(scene)) == ([True, True], [1, 1])
    for upstream in scene.upstreams:
        upstream.probes_fail = True
    scene.timers.advance(31.5)
    assert reachable(scene) == [False, False]
    scene.upstreams[1].probes_fail = False
    scene.timers.advance(1.5)
    assert reachable(scene) == [False, True]


def test_an_upstream_that_replies_to_questions_is_not_probed_beside_them() -> None:
    scene = ForwardScene(whatever)
    scene.forwarding.watch()
    for _ in range(10):
        scene.asked_and_answered(QUERY, within=0.0)
        scene.timers.advance(30.0)
    assert probes(scene) == [1]
    scene.timers.advance(30.0)
    assert probes(scene) == [2]


def test_of_two_directives_that_ask_one_upstream_one_looks_after_it() -> None:
    one, other = ForwardScene(whatever), ForwardScene(whatever)
    shared = Forwarding(
        Forward(((),), (UpstreamAddress("192.0.2.1", 53),)),
        other.upstreams,
        one.timers,
        Random(1),
        InFlight(),
        one.counts,
    )
    one.forwarding.watch()
    shared.watch()
    one.timers.advance(95.0)
    assert (len(one.upstreams[0].probes), len(other.upstreams[0].probes)) == (4, 0)


def test_of_upstreams_that_are_asked_no_more_nothing_is_said() -> None:
    scene = ForwardScene(whatever)
    scene.forwarding.watch()
    scene.forwarding.close()
    assert reachable(scene) == [None]
    scene.timers.advance(120.0)
    assert probes(scene) == [1]


def silent_and_good(policy: UpstreamPolicy) -> ForwardScene:
    """192.0.2.1 says nothing, not even to probes; 192.0.2.2 answers. A question has just waited for the first."""
    scene = ForwardScene(silent, whatever, policy=policy)
    scene.upstreams[0].probes_fail = True
    number = 0
    while not scene.asked[0]:
        scene.asked_and_answered(ask(f"first{number}.example.org"), within=2.5)
        number += 1
    return scene


@pytest.mark.parametrize("policy", [UpstreamPolicy.RANDOM, UpstreamPolicy.ROUND_ROBIN])
def test_an_upstream_that_is_silent_while_another_answers_gets_no_new_question(policy: UpstreamPolicy) -> None:
    scene = silent_and_good(policy)
    before = scene.asked[0]
    for n in range(50):
        assert scene.asked_and_answered(ask(f"n{n}.example.org"), within=0.01).rcode == Rcode.NOERROR
    assert scene.asked[0] == before


@pytest.mark.parametrize("policy", [UpstreamPolicy.RANDOM, UpstreamPolicy.ROUND_ROBIN])
def test_it_does_again_as_soon_as_a_probe_is_answered(policy: UpstreamPolicy) -> None:
    scene = silent_and_good(policy)
    scene.upstreams[0].behave(whatever)
    scene.upstreams[0].probes_fail = False
    scene.timers.advance(3.0)
    before = scene.asked[0]
    for n in range(50):
        scene.asked_and_answered(ask(f"n{n}.example.org"), within=0.01)
    assert scene.asked[0] > before + 10


def test_sequential_goes_on_with_the_first_one_until_it_is_down() -> None:
    scene = silent_and_good(UpstreamPolicy.SEQUENTIAL)
    before = scene.asked[0]
    scene.ask(ask("n.example.org"))
    assert scene.asked[0] == before + 1


def test_without_a_socket_to_spare_no_second_upstream_is_asked_and_the_slow_one_is_suspected_all_the_same() -> None:
    scene = ForwardScene(silent, whatever, policy=UpstreamPolicy.ROUND_ROBIN, may_hedge=lambda: False)
    scene.upstreams[0].probes_fail = True
    scene.ask(ask("one.example.org"))  # round robin begins with the second one
    waiting = scene.ask(ask("two.example.org"))
    scene.timers.advance(1.0)
    assert (waiting.arrived, scene.asked[1]) == (False, 1)
    for number in range(4):
        assert scene.asked_and_answered(ask(f"n{number}.example.org"), within=0.01).rcode == Rcode.NOERROR
    assert scene.asked[1] >= 5


def test_where_all_are_silent_all_are_asked() -> None:
    scene = ForwardScene(silent, silent, policy=UpstreamPolicy.ROUND_ROBIN)
    for upstream in scene.upstreams:
        upstream.probes_fail = True
    scene.asked_and_answered(ask("first.example.org"))
    before = scene.asked
    for n in range(10):
        scene.ask(ask(f"n{n}.example.org"))
    assert [asked - was for asked, was in zip(scene.asked, before, strict=True)] == [5, 5]


def order(scene: ForwardScene, questions: int) -> list[str]:
    """The last part of the address of who answers each question."""
    return [
        scene.asked_and_answered(ask(f"n{n}.example.org"), within=0.0).resolution.upstream[-4] for n in range(questions)
    ]


def test_sequential_is_the_first_one_always() -> None:
    assert set(order(ForwardScene(says(), says(), says(), policy=UpstreamPolicy.SEQUENTIAL), 9)) == {"1"}


def test_round_robin_is_one_after_the_other() -> None:
    assert order(ForwardScene(says(), says(), says(), policy=UpstreamPolicy.ROUND_ROBIN), 7) == list("2312312")


def test_a_retry_takes_no_turn_of_round_robin() -> None:
    scene = ForwardScene(refuses, says(), says(), policy=UpstreamPolicy.ROUND_ROBIN, max_fails=0)
    assert order(scene, 7) == list("2322322")


@pytest.mark.parametrize("count", [2, 3, 5])
def test_random_is_each_as_often(count: int) -> None:
    found = Counter(order(ForwardScene(*[says()] * count, policy=UpstreamPolicy.RANDOM), 200 * count))
    assert len(found) == count
    assert min(found.values()) > 140


def test_where_one_fails_the_others_get_its_share_alike() -> None:
    found = Counter(order(ForwardScene(refuses, says(), says(), policy=UpstreamPolicy.RANDOM, max_fails=0), 600))
    assert set(found) == {"2", "3"}
    assert min(found.values()) > 240


@pytest.mark.parametrize(("seconds", "bucket"), [(0.0, 0), (0.00025, 0), (0.0003, 1), (0.1, 9), (8.192, 15), (9.0, 16)])
def test_replies_fall_into_coredns_s_buckets(seconds: float, bucket: int) -> None:
    counts = UpstreamCounts()
    counts.replied(0, seconds)
    expected = [0] * (len(DURATION_BUCKETS) + 1)
    expected[bucket] = 1
    assert {label: (found.counts, found.sum) for label, found in counts.durations.items()} == {
        "NOERROR": (expected, seconds)
    }


@pytest.mark.parametrize(
    ("rcode", "label"), [(0, "NOERROR"), (2, "SERVFAIL"), (3, "NXDOMAIN"), (23, "BADCOOKIE"), (24, "other")]
)
def test_codes_are_labelled_as_in_coredns_and_those_without_a_mnemonic_alike(rcode: int, label: str) -> None:
    counts = UpstreamCounts()
    counts.replied(rcode, 0.001)
    assert list(counts.durations) == [label]


def test_all_codes_that_an_upstream_can_send_have_few_labels_and_each_reply_is_counted() -> None:
    counts = UpstreamCounts()
    for rcode in range(4096):
        counts.replied(rcode, 0.001)
    assert len(counts.durations) <= 24
    assert sum(found.count() for found in counts.durations.values()) == 4096


def test_directives_that_forward_to_one_address_share_its_counts() -> None:
    counts = ForwardCounts()
    counts.upstream("192.0.2.1:53").replied(0, 0.5)
    assert counts.upstream("192.0.2.1:53").durations["NOERROR"].sum == 0.5


def test_only_replies_are_counted_each_by_how_long_it_took() -> None:
    scene = ForwardScene(refuses, says(rcode=3))
    scene.upstreams[1].delay = 0.2
    scene.asked_and_answered(ask("www.example.org"))
    assert scene.counts.upstream("192.0.2.1:53").durations == {}
    durations = scene.counts.upstream("192.0.2.2:53").durations["NXDOMAIN"]
    assert (round(durations.sum, 6), durations.count()) == (0.2, 1)
