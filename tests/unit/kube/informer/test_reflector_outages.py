"""An API server that is away, or has lost the past: known objects stay, the others are soon found. In virtual time."""

import asyncio

import pytest

from tests.support.reflector_with_scripted_api import SERVICES, Setup, added, after, gaps_of, listed, streamed
from tests.support.scripted_api import (
    GONE,
    NO_WATCH_LIST,
    REFUSED,
    Body,
    error,
    watch,
)
from tests.support.virtual_event_loop import run_virtually
from topodns.dependency import service_fact
from topodns.kube.client.contract import ApiError


def test_k01_a_server_that_is_down_at_the_start_is_asked_soon_and_never_in_a_tight_loop() -> None:
    setup = after(120, SERVICES, *[REFUSED] * 1000)
    gaps = gaps_of(setup.api.times)
    assert gaps[0] <= 1.0
    assert 0.8 <= min(gaps) <= max(gaps) <= 30.0
    assert len(gaps) < 60
    assert not setup.state.synced


@pytest.mark.parametrize("down", [3.0, 10.0, 17.0])
def test_k01_k02_the_end_of_an_outage_is_noticed_within_five_seconds(down: float) -> None:
    async def story() -> float:
        setup = Setup(SERVICES)
        setup.api.replies.extend([REFUSED] * 1000)
        asyncio.get_running_loop().call_later(down, setup.api.replies.clear)
        await setup.pass_time(down + 5)
        return setup.api.times[-1]

    assert run_virtually(story()) > down


def test_k02_known_objects_stay_while_the_server_is_away_and_the_watch_continues_from_there() -> None:
    away = [REFUSED] * 8
    back = [listed("a", version=100), watch(*added("b", version=101))]
    setup = after(200, SERVICES, watch(*streamed("a"), 2.0, ends=True), *away, *back)
    assert setup.names == "ab"
    assert len(setup.api.requests) == 11
    assert setup.api.requests[-1].parameters["resourceVersion"] == "100"


def test_k24_a_server_that_was_away_is_asked_how_far_it_has_come_and_listed_where_it_is_behind() -> None:
    begun = watch(*streamed("a", version=100), 2.0, ends=True)
    older = watch(*streamed("b", version=50))
    setup = after(60, SERVICES, begun, REFUSED, REFUSED, listed("b", version=50), older, older)
    assert setup.names == "b"
    assert setup.api.requests[3].parameters == {**SERVICES.selectors, "limit": "1"}


def test_k24_where_the_version_question_is_denied_the_watch_continues() -> None:
    begun, denied = watch(*streamed("a"), 2.0, ends=True), ApiError(403, "services is forbidden")
    setup = after(60, SERVICES, begun, REFUSED, REFUSED, denied, watch(), watch(*added("b", version=101)))
    assert setup.names == "ab"


@pytest.mark.parametrize("gone", [GONE, watch(error(410, "Expired"))], ids=["as a status", "in the stream"])
def test_k05_a_version_that_is_gone_means_a_new_list_with_no_empty_moment(gone: Body | ApiError) -> None:
    stream = [watch(*streamed("a", "b"), 2.0, ends=True), gone, watch(*streamed("b", "c", version=200))]
    setup = after(5, SERVICES, *stream)
    assert setup.names == "bc"
    assert setup.published[1:] == [
        frozenset({service_fact("default", "a")}),
        frozenset({service_fact("default", "c")}),
    ]
    assert setup.progress.relists == 1


def test_k05_a_server_that_says_gone_for_ever_is_listed_less_and_less_often() -> None:
    gone_for_ever: list[Body | ApiError] = [listed("a"), GONE] * 500
    setup = after(600, SERVICES, NO_WATCH_LIST, *gone_for_ever)
    lists = [request.at for request in setup.api.requests if not request.is_watch]
    gaps = gaps_of(lists)
    assert len(lists) < 80
    assert max(gaps) > 15


@pytest.mark.parametrize(
    "refusal",
    [ApiError(400, "invalid resource version"), watch(error(400, "BadRequest"))],
    ids=["as a status", "in the stream"],
)
def test_k05_a_version_that_the_server_cannot_read_means_a_new_list_of_any_age(refusal: Body | ApiError) -> None:
    setup = after(5, SERVICES, NO_WATCH_LIST, listed("a"), refusal, listed("b", version=200))
    assert "resourceVersion" not in setup.api.requests[3].parameters
    assert setup.names == "b"
