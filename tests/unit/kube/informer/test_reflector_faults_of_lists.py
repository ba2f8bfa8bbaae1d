"""K5, K7, K11, K24: the version seen is gone, lists are empty, older or torn, and lists find changes without an event.

In virtual time, against the fake API server of the stories without its sockets: hours pass in milliseconds.
"""

import asyncio

import pytest

from tests.support.api_objects import service
from tests.support.model_builders import packed
from tests.support.state_with_fake_api import (
    FRONT,
    HOUR,
    MANY,
    MOVED,
    WEB,
    Prepare,
    Setup,
    giving_lists,
    knows,
    play,
    until,
)
from topodns.dependency import address_fact, service_fact

HOURS = 3 * HOUR


@pytest.mark.parametrize("as_status", [True, False])
def test_k05_after_gone_only_the_differences_are_touched(as_status: bool) -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        setup.published.clear()
        setup.api.lose_next("services")
        setup.api.put(FRONT)
        setup.api.gone(as_status=as_status)
        await knows(setup, "10.96.0.1", 2)
        await asyncio.sleep(60)
        assert setup.addresses("web") == {"10.0.0.1"}
        assert setup.touched == {service_fact("default", "front"), address_fact(packed("10.96.0.1"))}
        assert setup.progress("Service").lists == 2

    play(story, *WEB)


@pytest.mark.parametrize("outage", [0.0, 17.0])
def test_k05_an_api_server_that_comes_back_without_its_past_is_listed_soon(outage: float) -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        await setup.api.close()
        setup.api.put(MOVED)
        setup.api.gone()
        await asyncio.sleep(outage)
        await setup.api.open()
        await knows(setup, "10.96.0.2", 3 + outage / 4)

    play(story, *WEB, FRONT)


def test_k05_gone_soon_after_other_trouble_does_not_wait_for_that() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        for kind in ("services", "endpointslices"):
            await setup.api.close()
            await asyncio.sleep(30)
            await setup.api.open()
            await until(lambda: all(one.trouble is None for one in setup.source.progress), 15)
            before = setup.lists
            setup.api.gone(kind)
            await asyncio.sleep(2)
            assert setup.lists == before + 1

    play(story, *WEB, FRONT)


def test_k05_gone_while_pages_are_read_begins_the_list_anew() -> None:
    async def story(setup: Setup) -> None:
        await until(lambda: setup.api.requests.count("services", "list") == 1, 5)
        setup.api.gone("services")
        await setup.synced(10)
        assert len(setup.state.counts()) > 0
        assert setup.state.counts()["Service"] == 1200

    services = [service(f"s{number}") for number in range(1200)]
    play(story, *services, prepare=lambda api: (api.refuse_watch_list(), api.slow(0.1))[0])


def test_k07_a_lost_event_is_found_by_the_verifying_list_and_counted() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        setup.api.lose_next("services")
        setup.api.put(MOVED)
        setup.published.clear()
        assert await until(lambda: setup.cluster_ip("front") == "10.96.0.2", HOUR + 60) > 1700
        assert setup.progress("Service").repairs == 1
        assert setup.progress("EndpointSlice").repairs == 0
        assert service_fact("default", "front") in setup.touched
        assert service_fact("default", "web") not in setup.touched

    play(story, *WEB, FRONT)


def test_k07_a_lost_deletion_is_found_too_and_hours_without_losses_repair_nothing() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        await asyncio.sleep(HOURS)
        assert [one.repairs for one in setup.source.progress] == [0] * 5
        setup.api.lose_next("services")
        setup.api.delete(FRONT)
        await until(lambda: not setup.cluster_ip("front"), HOUR + 60)
        assert setup.progress("Service").repairs == 1

    play(story, *WEB, FRONT)


def test_k07_a_change_during_a_verifying_list_is_no_repair() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        setup.api.slow(5)
        while setup.api.requests.count("services", "list") == 0:
            await asyncio.sleep(2)
            setup.api.put(MOVED)
            setup.api.put(service("late", cluster_ip="10.96.0.9"))
        for _ in range(20):
            await asyncio.sleep(0.5)
            setup.api.put(FRONT)
        await knows(setup, "10.96.0.1", 1)
        setup.api.delete(service("late"))
        await until(lambda: not setup.cluster_ip("late"), 1)
        await asyncio.sleep(30)
        assert setup.cluster_ip("late") == ""
        assert setup.progress("Service").repairs == 0

    play(story, *WEB, FRONT)


def test_k11_a_list_that_lost_nearly_everything_is_believed_when_it_is_confirmed() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        setup.api.empty("services")
        setup.api.gone("services")
        await asyncio.sleep(1.9)
        assert setup.state.counts()["Service"] == 150
        await until(lambda: setup.state.counts()["Service"] == 0, 5)

    play(story, *MANY)


def test_k11_a_list_that_was_empty_by_mistake_is_never_believed() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        setup.published.clear()
        setup.api.empty("services")
        setup.api.gone("services")
        await asyncio.sleep(1.9)
        setup.api.heal()
        await asyncio.sleep(60)
        assert setup.state.counts()["Service"] == 150
        assert setup.published == []

    play(story, *MANY)


def test_k11_an_empty_list_of_few_objects_and_deletions_one_by_one_are_believed_at_once() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        setup.api.delete(*MANY)
        await until(lambda: setup.state.counts()["Service"] == 2, 1)
        setup.api.empty("services")
        setup.api.gone("services")
        await until(lambda: setup.state.counts()["Service"] == 0, 2)

    play(story, *WEB, FRONT, *MANY)


@pytest.mark.parametrize("streaming", [True, False])
def test_k24_a_server_that_is_behind_does_not_take_anything_back(streaming: bool) -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        setup.api.freeze("services")
        setup.api.put(MOVED)
        await knows(setup, "10.96.0.2", 1)
        setup.published.clear()
        setup.api.gone("services")
        await asyncio.sleep(HOUR)
        assert setup.cluster_ip("front") == "10.96.0.2"
        assert setup.published == []
        assert setup.progress("Service").lists < 300, "a list is dear: they are to become rare"

    play(story, *WEB, FRONT, prepare=giving_lists(streaming))


def test_k24_a_past_that_was_restored_is_believed_when_it_is_confirmed() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        setup.api.freeze("services", restored=True)
        setup.api.put(MOVED)
        await knows(setup, "10.96.0.2", 1)
        setup.api.gone("services")
        await asyncio.sleep(1.9)
        assert setup.cluster_ip("front") == "10.96.0.2"
        await knows(setup, "10.96.0.1", 10)
        again = service("front", cluster_ip="10.96.0.3")
        again["metadata"]["resourceVersion"] = "1006"
        setup.api.send_event("MODIFIED", again)
        await knows(setup, "10.96.0.3", 300)

    play(story, *WEB, FRONT)


def test_k24_a_restored_past_is_noticed_by_the_verifying_list_where_watches_do_not_show_it() -> None:
    """A watch cache may serve a watch from a resourceVersion it has not reached yet, in silence."""

    async def story(setup: Setup) -> None:
        await setup.synced()
        setup.api.freeze("services", restored=True, deaf=True)
        setup.api.put(MOVED)
        await knows(setup, "10.96.0.2", 1)
        setup.api.end_watches("services")
        await knows(setup, "10.96.0.1", HOUR + 400)

    play(story, *WEB, FRONT)


@pytest.mark.parametrize("away", [1.2, 2.0, 5.0, 17.0])
def test_k24_a_restored_past_is_noticed_as_soon_as_the_server_is_back_where_watches_do_not_show_it(away: float) -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        setup.api.freeze("services", restored=True, deaf=True)
        setup.api.put(MOVED)
        await knows(setup, "10.96.0.2", 1)
        await setup.api.close()
        await asyncio.sleep(away)
        await setup.api.open()
        await knows(setup, "10.96.0.1", 10)

    play(story, *WEB, FRONT)


WAYS: dict[str, Prepare] = {
    "streamed": lambda api: None,
    "refused": lambda api: api.refuse_watch_list(),
    "ignored": lambda api: api.ignore_watch_list(),
}


@pytest.mark.parametrize("prepare", WAYS.values(), ids=WAYS.keys())
def test_a_list_is_complete_however_the_server_gives_it(prepare: Prepare) -> None:
    async def story(setup: Setup) -> None:
        await setup.synced(10)
        assert setup.state.counts()["Service"] == 1200
        setup.api.put(FRONT)
        await knows(setup, "10.96.0.1", 1)
        assert setup.progress("Service").lists == 1

    play(story, *(service(f"s{number}") for number in range(1200)), prepare=prepare)
