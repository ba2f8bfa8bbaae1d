"""K1 to K4, K6, K12 to K16, K23: the API server is away, slow, silent, refuses or is overloaded.

In virtual time, against the fake API server of the stories without its sockets: hours pass in milliseconds.
"""

import asyncio
import logging
import re
import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.support.api_objects import node, service, service_import
from tests.support.fake_api.server import FakeApi
from tests.support.fake_api.statuses import Refusal
from tests.support.state_with_fake_api import (
    FRONT,
    HOUR,
    MOVED,
    SETTINGS,
    WEB,
    Prepare,
    World,
    giving_lists,
    knows,
    play,
    until,
)
from topodns.dependency import EVERYTHING
from topodns.plugins.kubernetes.settings import KubernetesSettings, PodMode

HOURS = 6 * HOUR


def gaps(times: Iterable[float]) -> list[float]:
    return [round(later - earlier, 6) for earlier, later in pairwise(times)]


@pytest.mark.parametrize("outage", [3.0, 10.0, 60.0, HOUR])
def test_k01_an_api_server_that_comes_late_is_found_soon(outage: float) -> None:
    async def story(world: World) -> None:
        began = world.now
        await asyncio.sleep(outage)
        waits = gaps([began, *world.attempts])
        assert world.attempts[-1] > began + outage - 30
        assert max(waits) <= 30
        assert [at for at in world.attempts if 0 < at - began <= 1], "no retry within a second"
        await world.api.open()
        await world.synced(5 if outage <= 10 else 30)

    play(story, *WEB, up=False)


def test_k01_all_kinds_are_known_as_soon_as_one_retry_has_succeeded() -> None:
    """The server comes when the five kinds have claimed the turns of their first retries, the last 4 s after it."""

    async def story(world: World) -> None:
        assert len(world.source.progress) == 5
        await asyncio.sleep(1.2)
        assert all(one.trouble is not None for one in world.source.progress)
        await world.api.open()
        await world.synced(1.0)

    play(story, *WEB, settings=replace(SETTINGS, pods=PodMode.VERIFIED), up=False)


def test_k02_a_server_that_is_away_for_hours_costs_nothing_but_age(caplog: pytest.LogCaptureFixture) -> None:
    async def story(world: World) -> None:
        await world.synced()
        await world.api.close()
        world.api.put(MOVED)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            await asyncio.sleep(HOURS)
        assert world.addresses("web") == {"10.0.0.1"}
        assert world.cluster_ip("front") == "10.96.0.1"
        assert world.source.age == pytest.approx(HOURS, rel=0.01)
        reminders = [line for line in caplog.messages if "answering from memory" in line]
        assert len(reminders) == pytest.approx(HOURS / 60, abs=2)
        assert len(caplog.messages) - len(reminders) <= 10, (
            "one line for each kind that is in trouble, not for each try"
        )
        world.published.clear()
        await world.api.open()
        await knows(world, "10.96.0.2", 30)
        assert world.source.age < 31
        assert world.published.count(frozenset({EVERYTHING})) == 0

    play(story, *WEB, FRONT)


def test_the_reminder_says_of_each_kind_whether_it_is_remembered_or_unknown_or_done_without(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def prepare(api: FakeApi) -> None:
        api.deny("endpointslices")
        api.deny("nodes")

    async def story(world: World) -> None:
        await asyncio.sleep(10)
        world.api.error("services", "watch")
        world.api.end_watches("services")
        with caplog.at_level(logging.WARNING):
            await asyncio.sleep(55)
        told = [line.removeprefix("plugin/kubernetes: ") for line in caplog.messages]
        (age,) = [re.fullmatch(r"answering from memory, (\d+) s old: Service \(.*\)", line) for line in told[-3:-2]]
        assert age is not None
        assert 45 <= int(age[1]) <= 60
        assert told[-2].startswith("not known yet: EndpointSlice (cannot watch endpointslices.discovery.k8s.io: 403")
        assert told[-1].startswith("doing without: Node (cannot watch nodes: 403")

    play(story, *WEB, FRONT, node("n1", "a", "192.168.0.1"), prepare=prepare)


def test_k02_a_short_outage_is_over_five_seconds_after_its_end() -> None:
    async def story(world: World) -> None:
        await world.synced()
        await world.api.close()
        world.api.put(MOVED)
        await asyncio.sleep(17)
        await world.api.open()
        await knows(world, "10.96.0.2", 5)

    play(story, *WEB, FRONT)


def test_k03_a_server_that_takes_ten_seconds_for_each_request_is_waited_for() -> None:
    async def story(world: World) -> None:
        await world.synced(15)
        world.api.put(FRONT)
        await knows(world, "10.96.0.1", 1)

    play(story, *WEB, prepare=lambda api: api.slow(10))


def test_k03_a_list_whose_pages_take_long_is_waited_for() -> None:
    def prepare(api: FakeApi) -> None:
        api.slow(10)
        api.refuse_watch_list()

    async def story(world: World) -> None:
        await world.synced(45)

    play(story, *WEB, prepare=prepare)


def test_k04_a_request_that_is_never_answered_is_given_up_and_made_again() -> None:
    async def story(world: World) -> None:
        await asyncio.sleep(3)
        world.api.heal()
        await world.synced(35)

    play(story, *WEB, prepare=lambda api: api.hole())


def test_k06_a_silent_watch_is_opened_anew_within_310_seconds() -> None:
    async def story(world: World) -> None:
        await world.synced()
        world.api.stall()
        world.api.put(FRONT)
        assert await until(lambda: world.cluster_ip("front") == "10.96.0.1", 310) > 200
        assert world.progress("Service").lists == 1

    play(story, *WEB)


def test_k06_each_watch_is_given_an_end_of_240_to_300_seconds() -> None:
    async def story(world: World) -> None:
        await world.synced()
        await asyncio.sleep(2 * HOUR)
        asked = [float(one.query["timeoutSeconds"]) for one in world.api.requests.of(verb="watch")]
        assert all(240 <= seconds <= 300 for seconds in asked)
        assert len(set(asked)) > 10, "they are not to end together"

    play(story, *WEB)


@pytest.mark.parametrize(
    ("resource", "line"),
    [
        ("services", "Service (cannot watch services: 403"),
        ("endpointslices", "EndpointSlice (cannot watch endpointslices.discovery.k8s.io: 403"),
        ("namespaces", "Namespace (cannot watch namespaces: 403"),
    ],
)
def test_k12_a_kind_that_is_denied_is_named_with_the_verb_and_known_soon_after_the_repair(
    resource: str, line: str
) -> None:
    async def story(world: World) -> None:
        await asyncio.sleep(60)
        (waiting,) = world.source.waiting_for()
        assert waiting.startswith(line)
        assert waiting.endswith("; list is denied too)")
        world.api.heal()
        await world.synced(20)
        assert world.source.waiting_for() == ()

    play(story, *WEB, prepare=lambda api: api.deny(resource))


def test_k12_a_denied_list_is_distinguished_from_a_denied_watch() -> None:
    def prepare(api: FakeApi) -> None:
        api.refuse_watch_list()
        api.deny("services", "list")

    async def story(world: World) -> None:
        await asyncio.sleep(5)
        (waiting,) = world.source.waiting_for()
        assert waiting.startswith("Service (cannot list services: 403")

    play(story, *WEB, prepare=prepare)


def test_k12_a_list_that_only_the_verification_needs_is_missed_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def story(world: World) -> None:
        await world.synced(2)
        with caplog.at_level(logging.WARNING):
            await asyncio.sleep(HOUR + 60)
        assert world.source.waiting_for() == ()
        assert any("not verified, cannot list services: 403" in line for line in caplog.messages)

    play(story, *WEB, prepare=lambda api: api.deny("services", "list"))


def test_k12_nodes_that_are_denied_hold_nothing_up() -> None:
    async def story(world: World) -> None:
        await world.synced(2)
        trouble = world.progress("Node").trouble
        assert trouble is not None
        assert trouble.status == 403
        world.api.heal()
        await until(lambda: world.state.counts()["Node"] == 1, 60)
        assert world.progress("Node").trouble is None

    play(story, *WEB, node("n1", "a", "192.168.0.1"), prepare=lambda api: api.deny("nodes"))


@pytest.mark.parametrize("resource", ["services", "nodes"])
def test_k13_objects_known_before_the_permission_was_revoked_stay(resource: str) -> None:
    async def story(world: World) -> None:
        await world.synced()
        world.published.clear()
        world.api.deny(resource)
        world.api.cut()
        await asyncio.sleep(HOUR)
        assert world.published == []
        assert world.source.age > HOUR - 60 or resource == "nodes"
        assert [one.resource.kind for one in world.source.progress if one.trouble is not None] == [
            {"services": "Service", "nodes": "Node"}[resource]
        ]

    play(story, *WEB, FRONT, node("n1", "a", "192.168.0.1"))


def test_k14_after_an_unauthorized_time_the_state_is_whole_again() -> None:
    async def story(world: World) -> None:
        await asyncio.sleep(10)
        assert not world.state.synced
        world.api.heal()
        await world.synced(5)

    play(story, *WEB, prepare=lambda api: api.require_token("new"))


def test_k15_retry_after_is_honoured() -> None:
    async def story(world: World) -> None:
        began = world.now
        await asyncio.sleep(6.9)
        asked = world.api.requests.times("services")
        assert [at - began < 0.1 for at in asked] == [True]
        world.api.heal()
        await world.synced(7 * 1.25 - 6.9 + 5)

    play(story, *WEB, prepare=lambda api: api.busy(7))


def test_k15_a_refusal_inside_a_watch_is_honoured_too() -> None:
    async def story(world: World) -> None:
        await world.synced()
        began, before = world.now, world.api.requests.count("services")
        world.api.send_refusal("services", Refusal(429, "TooManyRequests", "too many requests", retry_after=20))
        await asyncio.sleep(19.9)
        assert world.api.requests.count("services") == before
        await until(lambda: world.api.requests.count("services") > before, 20 * 1.25 - 19.9 + 0.9)
        assert world.now - began >= 20

    play(story, *WEB)


SORTS_OF_TROUBLE: dict[str, Prepare] = {
    "500": lambda api: api.error(),
    "429 at once": lambda api: api.busy(0),
    "403": lambda api: api.deny("services"),
    "401": lambda api: api.require_token("other"),
    "404": lambda api: api.absent("services"),
    "watches that end at once": lambda api: api.error(verb="watch"),
}


@pytest.mark.parametrize("prepare", SORTS_OF_TROUBLE.values(), ids=SORTS_OF_TROUBLE.keys())
@pytest.mark.parametrize("from_the_start", [True, False])
def test_k15_no_trouble_makes_a_tight_loop(prepare: Prepare, from_the_start: bool) -> None:
    async def story(world: World) -> None:
        if not from_the_start:
            await world.synced()
            prepare(world.api)
            world.api.cut()
        await asyncio.sleep(5)  # in which a server that was cut off is asked, once, how far it has come
        world.api.requests.clear()
        began = world.now
        await asyncio.sleep(600)
        for kind in ("services", "endpointslices", "namespaces", "nodes"):
            waits = gaps(world.api.requests.times(kind))
            assert all(wait >= 0.79 for wait in waits), (kind, min(waits))
            assert len(waits) < 120, kind  # 40 at a mean ceiling of 30 s, more while it doubles
        assert world.now == pytest.approx(began + 600)

    play(story, *WEB, prepare=prepare if from_the_start else lambda api: None)


@pytest.mark.parametrize("streaming", [True, False])
def test_k15_watches_that_end_as_soon_as_they_begin_are_no_tight_loop(streaming: bool) -> None:
    async def story(world: World) -> None:
        await world.synced()
        before = world.api.requests.count("services")
        for _ in range(1000):
            world.api.end_watches()
            await asyncio.sleep(0.1)
        assert world.api.requests.count("services") - before <= 125

    play(story, *WEB, prepare=giving_lists(streaming))


MULTICLUSTER = KubernetesSettings(SETTINGS.origins, multicluster=SETTINGS.origins)


def test_k16_a_resource_that_is_not_installed_is_empty_and_looked_for_once_a_minute() -> None:
    async def story(world: World) -> None:
        await world.synced(1)
        await asyncio.sleep(600)
        assert all(59 <= wait <= 76 for wait in gaps(world.api.requests.times("serviceimports")))
        assert 8 <= world.api.requests.count("serviceimports") <= 12
        world.api.heal()
        world.api.put(service_import("web", ["10.98.0.1"]))
        await until(lambda: world.state.counts()["ServiceImport"] == 1, 76)

    play(story, *WEB, settings=MULTICLUSTER, prepare=lambda api: api.absent("serviceimports"))


def test_k16_a_resource_that_is_taken_away_is_empty_again() -> None:
    async def story(world: World) -> None:
        await world.synced()
        assert world.state.counts()["ServiceImport"] == 1
        world.api.absent("serviceimports")
        world.api.end_watches("serviceimports")
        await until(lambda: world.state.counts()["ServiceImport"] == 0, 10)
        assert world.state.synced

    play(story, *WEB, service_import("web", ["10.98.0.1"]), settings=MULTICLUSTER)


def test_k23_a_wall_clock_that_jumps_moves_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        await world.synced()
        for years in (10, -10):
            there = time.time() + years * 365 * 86_400
            monkeypatch.setattr("time.time", lambda there=there: there)
            before = world.api.requests.count()
            await asyncio.sleep(200)
            assert world.api.requests.count() - before <= 8
            assert world.source.age < 310
            world.api.stall()
            world.api.put(service("front", cluster_ip=f"10.96.0.{100 + years}"))
            stalled = world.now
            await knows(world, f"10.96.0.{100 + years}", 310)
            assert world.now - stalled > 30

    play(story, *WEB, FRONT)
