"""K7: the lists beside the watch that find changes without an event. In virtual time."""

import asyncio
import logging

import pytest

from tests.support.api_objects import service
from tests.support.reflector_with_scripted_api import MOVED, SERVICES, Setup, added, cluster_ips, listed, streamed
from tests.support.scripted_api import (
    REFUSED,
    Body,
    event,
    watch,
)
from tests.support.virtual_event_loop import run_virtually
from topodns.dependency import EVERYTHING
from topodns.kube.client.contract import ApiError


def test_k07_lost_events_are_repaired_within_the_hour_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        setup = verified(listed("a", "c"), watch(*streamed("a", "b")))
    (request,) = [request for request in setup.api.requests if not request.is_watch]
    assert 1800 <= request.at <= 3600
    assert request.parameters["resourceVersionMatch"] == "NotOlderThan"
    assert (setup.names, setup.progress.repairs, setup.progress.relists) == ("ac", 2, 0)
    assert "2 objects were not as held; repaired" in caplog.text


def test_where_nothing_was_lost_nothing_is_touched() -> None:
    setup = verified(listed("a", "b"), watch(*streamed("a", "b")))
    assert (setup.progress.repairs, setup.published) == (0, [frozenset({EVERYTHING})])


def test_a_change_during_a_list_is_newer_than_the_list_and_no_repair() -> None:
    async def story() -> Setup:
        asked = asyncio.Event()

        async def ask() -> None:
            asked.set()

        late = [event("DELETED", service("b"), 101), *added("d", version=102), event("MODIFIED", MOVED, 103)]
        setup = Setup(SERVICES, watch(*streamed("a", "b")), *[watch(asked.wait, 0.2, *late)] * 20)
        setup.api.lists.append(Body((ask, *listed("a", "b").pieces)))
        await setup.pass_time(3700, verifying=True)
        return setup

    setup = run_virtually(story())
    assert (setup.names, setup.progress.repairs) == ("ad", 0)
    assert cluster_ips(setup) == ["10.96.0.7"]


def test_a_list_that_has_lost_nearly_everything_is_confirmed_here_too() -> None:
    many = [f"s{n}" for n in range(101)]
    setup = verified(listed(), watch(*streamed(*many)), listed(*many))
    assert (setup.state.counts()["Service"], setup.progress.repairs) == (101, 0)


def test_a_list_that_fails_is_put_off() -> None:
    assert verified(REFUSED, watch(*streamed("a"))).names == "a"


def verified(first_list: Body | ApiError, *replies: Body | ApiError) -> Setup:
    """The setup after one verification: the watch goes on all the time."""

    async def story() -> Setup:
        first, *lists = replies
        setup = Setup(SERVICES, first, *[watch()] * 20)
        setup.api.lists.extend([first_list, *lists])
        await setup.pass_time(3605, verifying=True)
        return setup

    return run_virtually(story())
