"""K24: a server that was lost to a watch is asked how far it has come, and what becomes of that. In virtual time."""

import pytest

from tests.support.reflector_with_scripted_api import SERVICES, Setup, added, after, listed, streamed
from tests.support.scripted_api import FORBIDDEN, REFUSED, Body, Request, error, page, watch
from topodns.kube.client.contract import ApiError
from topodns.kube.informer.progress import Trouble

BEGUN = watch(*streamed("a", version=100), 2.0, ends=True)
RESTORED = listed("b", version=50)
OLDER = watch(*streamed("b", version=50))
UNWELL = ApiError(503, "no server available")
NO_LIST = Body((b"<html>at work</html>",))

AWAY: dict[str, Body | ApiError] = {
    "nobody there": REFUSED,
    "503 of a load balancer": UNWELL,
    "429": ApiError(429, "storage is (re)initializing", 1.0),
    "503 in the stream": watch(error(503, "ServiceUnavailable"), ends=True),
    "a page of somebody in between": NO_LIST,
    "a watch that ends at once": watch(ends=True),
}
NO_ANSWERS: dict[str, Body | ApiError] = {
    "500": ApiError(500, "etcdserver: request timed out"),
    "no list": NO_LIST,
    "no resourceVersion": Body((b'{"kind":"ServiceList","metadata":{},"items":[]}',)),
    "a list that stalls": Body((b'{"kind"',), stalls=True),
    "a list without end": Body((b"x" * (1 << 20),) * 17),
}


def questions(setup: Setup) -> list[Request]:
    return [request for request in setup.api.requests if request.parameters.get("limit") == "1"]


def whole_lists(setup: Setup) -> list[Request]:
    return [request for request in setup.api.requests if request.streams_list]


@pytest.mark.parametrize("away", AWAY.values(), ids=AWAY.keys())
def test_k24_every_sign_that_the_server_is_away_leads_to_a_question_when_it_is_back(away: Body | ApiError) -> None:
    setup = after(15, SERVICES, BEGUN, *[away] * 3, RESTORED, OLDER, OLDER)
    assert setup.names == "b"
    assert setup.progress.trouble is None
    assert "resourceVersion" not in whole_lists(setup)[1].parameters, "the newest there is counts, whatever its number"


@pytest.mark.parametrize("away", AWAY.values(), ids=AWAY.keys())
def test_k24_one_that_was_lost_for_a_moment_only_is_asked_too(away: Body | ApiError) -> None:
    setup = after(15, SERVICES, BEGUN, away, OLDER, OLDER, lists=[RESTORED])
    assert setup.names == "b"


def test_k24_a_watch_that_the_server_ends_in_time_raises_no_question() -> None:
    setup = after(60, SERVICES, BEGUN, *[watch(2.0, ends=True)] * 100)
    assert questions(setup) == []


def test_on_request_every_watch_that_ends_is_followed_by_one_question() -> None:
    in_time = [watch(70.0, ends=True)] * 3
    setup = after(300, SERVICES, BEGUN, *in_time, lists=[listed(version=100)] * 4, checks_each_watch=True)
    assert [request.at for request in questions(setup)] == [2.0, 72.0, 142.0, 212.0]


def test_k24_a_list_answers_the_question_about_an_outage_before_it() -> None:
    setup = after(60, SERVICES, REFUSED, REFUSED, BEGUN, watch(2.0, ends=True), watch(*added("b", version=101)))
    assert setup.names == "ab"
    assert questions(setup) == []


def test_k24_one_answer_is_enough_for_an_outage() -> None:
    later = [watch(2.0, ends=True), watch(*added("b", version=101))]
    setup = after(60, SERVICES, BEGUN, REFUSED, *later, lists=[listed("a", version=100)] * 10)
    assert setup.names == "ab"
    assert len(questions(setup)) == 1


def test_k24_a_proxy_that_is_always_behind_does_not_cause_a_list_for_each_watch_that_is_cut_off() -> None:
    cut_off = [watch(*streamed("a", version=100), 3.0, error(500, "cut off"))] * 1000
    setup = after(600, SERVICES, *cut_off, lists=[RESTORED] * 1000)
    lists = [request.at for request in whole_lists(setup)]
    assert lists[1] < 5, "the first time it is believed at once"
    assert 10 < len(lists) < 50
    assert setup.names == "a"


@pytest.mark.parametrize("answer", NO_ANSWERS.values(), ids=NO_ANSWERS.keys())
def test_k24_where_the_question_finds_no_answer_three_times_the_watch_goes_on(answer: Body | ApiError) -> None:
    setup = after(40, SERVICES, BEGUN, REFUSED, watch(*added("b", version=101)), lists=[answer] * 1000)
    assert setup.names == "ab"
    assert len(questions(setup)) == 3
    assert setup.progress.trouble is None


def test_k24_where_it_was_not_answered_it_is_asked_again_before_the_next_watch() -> None:
    later = [watch(2.0, ends=True), OLDER, OLDER]
    setup = after(20, SERVICES, BEGUN, REFUSED, *later, lists=[UNWELL, UNWELL, UNWELL, RESTORED])
    assert setup.names == "b"


def test_k24_after_an_answer_it_takes_three_tries_without_one_again() -> None:
    later = [watch(2.0, error(500, "cut off")), OLDER, OLDER]
    lists: list[Body | ApiError] = [UNWELL, UNWELL, listed("a", version=100), UNWELL, RESTORED]
    assert after(25, SERVICES, BEGUN, REFUSED, *later, lists=lists).names == "b"


def test_k24_a_denied_question_is_not_reported_and_not_repeated() -> None:
    later = [watch(), watch(2.0, ends=True), watch(*added("b", version=101))]  # the first: whether that is denied too
    setup = after(20, SERVICES, BEGUN, REFUSED, *later, lists=[FORBIDDEN] * 10)
    assert setup.names == "ab"
    assert len(questions(setup)) == 1


def test_k15_the_retry_after_of_a_server_without_an_answer_is_kept() -> None:
    answer = ApiError(503, "no server available", 20.0)
    setup = after(120, SERVICES, BEGUN, REFUSED, watch(), lists=[answer] * 3)
    asked = questions(setup)
    watched = setup.api.requests[-1]
    assert watched.is_watch
    assert 20 <= watched.at - asked[-1].at <= 25


def test_k24_an_unanswered_question_is_reported_as_a_failed_list() -> None:
    setup = after(3.5, SERVICES, BEGUN, REFUSED, lists=[UNWELL])
    assert setup.progress.trouble == Trouble("list", 503, "503: no server available")


def test_k24_a_question_that_takes_ten_seconds_is_reported_as_a_list_without_an_answer() -> None:
    setup = after(14, SERVICES, BEGUN, REFUSED, lists=[Body((), stalls=True)])
    assert setup.progress.trouble == Trouble("list", 0, "no complete page within 10 s")


def test_k02_a_server_that_is_not_reachable_is_reported_as_a_failed_watch() -> None:
    setup = after(60, SERVICES, BEGUN, *[REFUSED] * 100)
    assert setup.progress.trouble == Trouble("watch", 0, "connection refused")


def test_k24_versions_without_an_order_are_not_behind() -> None:
    setup = after(20, SERVICES, BEGUN, REFUSED, watch(*added("b", version=101)), lists=[page(version=-1)])
    assert setup.names == "ab"
