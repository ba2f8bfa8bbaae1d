"""K8 to K10, K17 to K19: events come late, broken, in bursts, twice, or the wrong way round.

In virtual time, against the fake API server of the stories without its sockets: hours pass in milliseconds.
"""

import asyncio
from collections.abc import Callable

import pytest

from tests.support.api_objects import endpoint_slice, namespace, service
from tests.support.fake_api.server import FakeApi
from tests.support.state_with_fake_api import (
    FRONT,
    HOUR,
    MANY,
    WEB,
    Setup,
    giving_lists,
    knows,
    play,
    until,
)

HOURS = 3 * HOUR


def test_k08_without_bookmarks_everything_works() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        await asyncio.sleep(2 * HOUR)
        setup.api.put(FRONT)
        await knows(setup, "10.96.0.1", 1)
        assert setup.progress("Service").trouble is None

    play(story, *WEB, prepare=lambda api: api.no_bookmarks())


def test_k08_bookmarks_spare_the_list_when_the_past_is_forgotten() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        for _ in range(100):
            setup.api.put(namespace("default"))
        for store in setup.api.stores.values():
            store.oldest = setup.api.revisions.last  # as the watch cache's window moves on
        await asyncio.sleep(2 * HOUR)
        assert setup.progress("Service").lists == 1
        assert setup.api.requests.count("services", "list") <= 5  # the verifying ones

    play(story, *WEB)


@pytest.mark.parametrize("revision", ["1", "1001"])
def test_k09_an_event_with_an_older_resource_version_is_ignored(revision: str) -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        old = service("front", cluster_ip="10.96.0.66")
        old["metadata"]["resourceVersion"] = revision
        setup.published.clear()
        setup.api.send_event("MODIFIED", old)
        setup.api.send_event("DELETED", old)
        await asyncio.sleep(1)
        assert setup.cluster_ip("front") == "10.96.0.1"
        assert setup.published == []

    play(story, *WEB, FRONT)


def test_k09_an_older_event_does_not_move_the_watch_back() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        old = service("front", cluster_ip="10.96.0.66")
        old["metadata"]["resourceVersion"] = "1"
        setup.api.send_event("MODIFIED", old)
        setup.api.end_watches("services")
        await until(lambda: setup.api.requests.count("services", "watch") == 2, 2)
        assert int(setup.api.requests.of("services", "watch")[1].query["resourceVersion"]) > 1000

    play(story, *WEB, FRONT)


def test_k09_versions_that_are_no_numbers_are_taken_as_they_come() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        for revision, address in (("b7", "10.96.0.3"), ("a1", "10.96.0.4")):
            changed = service("front", cluster_ip=address)
            changed["metadata"]["resourceVersion"] = revision
            setup.api.send_event("MODIFIED", changed)
            await knows(setup, address, 1)

    play(story, *WEB, FRONT)


def test_k10_broken_json_costs_one_watch() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        setup.api.send_raw("services", b'{"type":"MODIFIED","object":{"metadata":\n')
        await asyncio.sleep(0.1)
        setup.api.put(FRONT)
        await knows(setup, "10.96.0.1", 2)
        assert setup.progress("Service").lists == 1

    play(story, *WEB)


def test_k10_one_bad_object_is_skipped_and_counted_and_the_watch_goes_on() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        watches = setup.api.requests.count("services", "watch")
        bad = service("bad")
        bad["spec"]["ports"] = "x"
        setup.api.put(bad, FRONT)
        await knows(setup, "10.96.0.1", 0.5)
        assert setup.api.requests.count("services", "watch") == watches
        assert setup.progress("Service").decode_errors == 1

    play(story, *WEB)


@pytest.mark.parametrize("streaming", [True, False])
def test_k10_one_bad_object_in_a_list_hides_no_other(streaming: bool) -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        assert setup.cluster_ip("front") == "10.96.0.1"
        assert setup.progress("Service").decode_errors == 1

    bad = service("bad")
    bad["spec"]["ports"] = "x"
    play(story, bad, FRONT, prepare=giving_lists(streaming))


def test_k10_an_object_that_became_unreadable_keeps_its_last_value_also_through_a_list() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        bad = service("front")
        bad["spec"]["ports"] = "x"
        setup.api.put(bad)
        setup.api.gone()
        await until(lambda: setup.progress("Service").lists == 2, 5)
        assert setup.cluster_ip("front") == "10.96.0.1"

    play(story, *WEB, FRONT)


@pytest.mark.parametrize("streaming", [True, False])
def test_k10_a_list_that_breaks_off_changes_nothing(streaming: bool) -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        setup.published.clear()
        setup.api.tear_lists(3)
        setup.api.gone("services")
        await asyncio.sleep(60)
        assert len(setup.published) == 0
        assert setup.state.counts()["Service"] == 152

    play(story, *WEB, FRONT, *MANY, prepare=giving_lists(streaming))


def test_k17_while_a_burst_is_taken_in_others_have_their_turn() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        turns = 0
        setup.api.touch("services", 3000)
        while setup.progress("Service").events < 3000:
            await asyncio.sleep(0)
            turns += 1
        assert turns > 20

    play(story, *WEB, *MANY)


def test_k18_the_same_endpoint_in_two_slices_is_there_once_it_is_in_one() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        twin = endpoint_slice("web", {"10.0.0.1": "n1", "10.0.0.2": "n2"}, name="web-2")
        setup.api.put(twin)
        await until(lambda: setup.addresses("web") == {"10.0.0.1", "10.0.0.2"}, 1)
        setup.api.delete(twin)
        await until(lambda: setup.addresses("web") == {"10.0.0.1"}, 1)

    play(story, *WEB)


OLD, NEW = WEB[2], endpoint_slice("web", {"10.0.0.1": "n1"}, name="web-2")
GONE = endpoint_slice("web", {})
UNREADY = endpoint_slice("web", {"10.0.0.1": "n1"}, ready=False)


@pytest.mark.parametrize(
    "remove",
    [lambda api: api.delete(OLD), lambda api: api.put(GONE), lambda api: api.put(UNREADY)],
    ids=["deleted", "emptied", "unready"],
)
def test_k19_the_last_endpoint_is_not_gone_before_its_new_slice_may_have_come(
    remove: Callable[[FakeApi], None],
) -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        setup.published.clear()
        remove(setup.api)
        await asyncio.sleep(0.1)
        assert setup.published == []
        setup.api.put(NEW)
        await until(lambda: setup.published, 0.02)
        assert setup.addresses("web") == {"10.0.0.1"}
        await asyncio.sleep(1)
        assert setup.addresses("web") == {"10.0.0.1"}

    play(story, *WEB)


def test_k19_a_last_endpoint_that_is_really_gone_is_so_after_a_moment() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        setup.api.delete(OLD)
        assert await until(lambda: not setup.addresses("web"), 0.32) >= 0.09

    play(story, *WEB)


def test_k19_an_addition_never_waits_and_neither_does_one_endpoint_of_several() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        setup.api.put(endpoint_slice("web", {"10.0.0.1": "n1", "10.0.0.2": "n2"}))
        await until(lambda: len(setup.addresses("web")) == 2, 0.02)
        setup.api.put(endpoint_slice("web", {"10.0.0.2": "n2"}))
        await until(lambda: setup.addresses("web") == {"10.0.0.2"}, 0.02)

    play(story, *WEB)
