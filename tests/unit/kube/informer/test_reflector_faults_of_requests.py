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
    Setup,
    giving_lists,
    knows,
    play,
    until,
)
from topodns.dependency import EVERYTHING
from topodns.plugins.kubernetes.settings import KubernetesSettings, PodMode

HOURS = 3 * HOUR


def gaps(times: Iterable[float]) -> list[float]:
    return [round(later - earlier, 6) for earlier, later in pairwise(times)]


@pytest.mark.parametrize("outage", [3.0, 10.0, 60.0, HOUR])
def test_k01_an_api_server_that_comes_late_is_found_soon(outage: float) -> None:
    async def story(setup: Setup) -> None:
        began = setup.now
        await asyncio.sleep(outage)
        waits = gaps([began, *setup.attempts])
        assert setup.attempts[-1] > began + outage - 30
        assert max(waits) <= 30
        assert [at for at in setup.attempts if 0 < at - began <= 1], "no retry within a second"
        await setup.api.open()
        await setup.synced(5 if outage <= 10 else 30)

    play(story, *WEB, up=False)


def test_k01_all_kinds_are_known_as_soon_as_one_retry_has_succeeded() -> None:
    """The server comes when the five kinds have claimed the turns of their first retries, the last 4 s after it."""

    async def story(setup: Setup) -> None:
        assert len(setup.source.progress) == 5
        await asyncio.sleep(1.2)
        assert all(one.trouble is not None for one in setup.source.progress)
        await setup.api.open()
        await setup.synced(1.0)

    play(story, *WEB, settings=replace(SETTINGS, pods=PodMode.VERIFIED), up=False)


def test_k02_a_server_that_is_away_for_hours_costs_nothing_but_age(caplog: pytest.LogCaptureFixture) -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        await setup.api.close()
        setup.api.put(MOVED)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            await asyncio.sleep(HOURS)
        assert setup.addresses("web") == {"10.0.0.1"}
        assert setup.cluster_ip("front") == "10.96.0.1"
        assert setup.source.age == pytest.approx(HOURS, rel=0.01)
        reminders = [line for line in caplog.messages if "answering from memory" in line]
        assert len(reminders) == pytest.approx(HOURS / 60, abs=2)
        assert len(caplog.messages) - len(reminders) <= 10, (
            "one line for each kind that is in trouble, not for each try"
        )
        setup.published.clear()
        await setup.api.open()
        await knows(setup, "10.96.0.2", 30)
        assert setup.source.age < 31
        assert setup.published.count(frozenset({EVERYTHING})) == 0

    play(story, *WEB, FRONT)


def test_the_reminder_says_of_each_kind_whether_it_is_remembered_or_unknown_or_done_without(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def prepare(api: FakeApi) -> None:
        api.deny("endpointslices")
        api.deny("nodes")

    async def story(setup: Setup) -> None:
        await asyncio.sleep(10)
        setup.api.error("services", "watch")
        setup.api.end_watches("services")
        with caplog.at_level(logging.WARNING):
            await asyncio.sleep(55)
        got = [line.removeprefix("plugin/kubernetes: ") for line in caplog.messages]
        (age,) = [re.fullmatch(r"answering from memory, (\d+) s old: Service \(.*\)", line) for line in got[-3:-2]]
        assert age is not None
        assert 45 <= int(age[1]) <= 60
        assert got[-2].startswith("not known yet: EndpointSlice (cannot watch endpointslices.discovery.k8s.io: 403")
        assert got[-1].startswith("doing without: Node (cannot watch nodes: 403")

    play(story, *WEB, FRONT, node("n1", "a", "192.168.0.1"), prepare=prepare)


def test_k02_a_short_outage_is_over_five_seconds_after_its_end() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        await setup.api.close()
        setup.api.put(MOVED)
        await asyncio.sleep(17)
        await setup.api.open()
        await knows(setup, "10.96.0.2", 5)

    play(story, *WEB, FRONT)


def test_k03_a_server_that_takes_ten_seconds_for_each_request_is_waited_for() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced(15)
        setup.api.put(FRONT)
        await knows(setup, "10.96.0.1", 1)

    play(story, *WEB, prepare=lambda api: api.slow(10))


def test_k03_a_list_whose_pages_take_long_is_waited_for() -> None:
    def prepare(api: FakeApi) -> None:
        api.slow(10)
        api.refuse_watch_list()

    async def story(setup: Setup) -> None:
        await setup.synced(45)

    play(story, *WEB, prepare=prepare)


def test_k04_a_request_that_is_never_answered_is_given_up_and_made_again() -> None:
    async def story(setup: Setup) -> None:
        await asyncio.sleep(3)
        setup.api.heal()
        await setup.synced(35)

    play(story, *WEB, prepare=lambda api: api.hole())


def test_k06_a_silent_watch_is_opened_anew_within_310_seconds() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        setup.api.stall()
        setup.api.put(FRONT)
        assert await until(lambda: setup.cluster_ip("front") == "10.96.0.1", 310) > 200
        assert setup.progress("Service").lists == 1

    play(story, *WEB)


def test_k06_each_watch_is_given_an_end_of_240_to_300_seconds() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        await asyncio.sleep(2 * HOUR)
        asked = [float(one.query["timeoutSeconds"]) for one in setup.api.requests.of(verb="watch")]
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
    async def story(setup: Setup) -> None:
        await asyncio.sleep(60)
        (waiting,) = setup.source.waiting_for()
        assert waiting.startswith(line)
        assert waiting.endswith("; list is denied too)")
        setup.api.heal()
        await setup.synced(20)
        assert setup.source.waiting_for() == ()

    play(story, *WEB, prepare=lambda api: api.deny(resource))


def test_k12_a_denied_list_is_distinguished_from_a_denied_watch() -> None:
    def prepare(api: FakeApi) -> None:
        api.refuse_watch_list()
        api.deny("services", "list")

    async def story(setup: Setup) -> None:
        await asyncio.sleep(5)
        (waiting,) = setup.source.waiting_for()
        assert waiting.startswith("Service (cannot list services: 403")

    play(story, *WEB, prepare=prepare)


def test_k12_a_list_that_only_the_verification_needs_is_missed_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def story(setup: Setup) -> None:
        await setup.synced(2)
        with caplog.at_level(logging.WARNING):
            await asyncio.sleep(HOUR + 60)
        assert setup.source.waiting_for() == ()
        assert any("not verified, cannot list services: 403" in line for line in caplog.messages)

    play(story, *WEB, prepare=lambda api: api.deny("services", "list"))


def test_k12_nodes_that_are_denied_hold_nothing_up() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced(2)
        trouble = setup.progress("Node").trouble
        assert trouble is not None
        assert trouble.status == 403
        setup.api.heal()
        await until(lambda: setup.state.counts()["Node"] == 1, 60)
        assert setup.progress("Node").trouble is None

    play(story, *WEB, node("n1", "a", "192.168.0.1"), prepare=lambda api: api.deny("nodes"))


@pytest.mark.parametrize("resource", ["services", "nodes"])
def test_k13_objects_known_before_the_permission_was_revoked_stay(resource: str) -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        setup.published.clear()
        setup.api.deny(resource)
        setup.api.cut()
        await asyncio.sleep(HOUR)
        assert setup.published == []
        assert setup.source.age > HOUR - 60 or resource == "nodes"
        assert [one.resource.kind for one in setup.source.progress if one.trouble is not None] == [
            {"services": "Service", "nodes": "Node"}[resource]
        ]

    play(story, *WEB, FRONT, node("n1", "a", "192.168.0.1"))


def test_k14_after_an_unauthorized_time_the_state_is_whole_again() -> None:
    async def story(setup: Setup) -> None:
        await asyncio.sleep(10)
        assert not setup.state.synced
        setup.api.heal()
        await setup.synced(5)

    play(story, *WEB, prepare=lambda api: api.require_token("new"))


def test_k15_retry_after_is_honoured() -> None:
    async def story(setup: Setup) -> None:
        began = setup.now
        await asyncio.sleep(6.9)
        asked = setup.api.requests.times("services")
        assert [at - began < 0.1 for at in asked] == [True]
        setup.api.heal()
        await setup.synced(7 * 1.25 - 6.9 + 5)

    play(story, *WEB, prepare=lambda api: api.busy(7))


def test_k15_a_refusal_inside_a_watch_is_honoured_too() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        began, before = setup.now, setup.api.requests.count("services")
        setup.api.send_refusal("services", Refusal(429, "TooManyRequests", "too many requests", retry_after=20))
        await asyncio.sleep(19.9)
        assert setup.api.requests.count("services") == before
        await until(lambda: setup.api.requests.count("services") > before, 20 * 1.25 - 19.9 + 0.9)
        assert setup.now - began >= 20

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
    async def story(setup: Setup) -> None:
        if not from_the_start:
            await setup.synced()
            prepare(setup.api)
            setup.api.cut()
        await asyncio.sleep(5)  # in which a server that was cut off is asked, once, how far it has come
        setup.api.requests.clear()
        began = setup.now
        await asyncio.sleep(600)
        for kind in ("services", "endpointslices", "namespaces", "nodes"):
            waits = gaps(setup.api.requests.times(kind))
            assert all(wait >= 0.79 for wait in waits), (kind, min(waits))
            assert len(waits) < 120, kind  # 40 at a mean ceiling of 30 s, more while it doubles
        assert setup.now == pytest.approx(began + 600)

    play(story, *WEB, prepare=prepare if from_the_start else lambda api: None)


@pytest.mark.parametrize("streaming", [True, False])
def test_k15_watches_that_end_as_soon_as_they_begin_are_no_tight_loop(streaming: bool) -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        before = setup.api.requests.count("services")
        for _ in range(1000):
            setup.api.end_watches()
            await asyncio.sleep(0.1)
        assert setup.api.requests.count("services") - before <= 125

    play(story, *WEB, prepare=giving_lists(streaming))


MULTICLUSTER = KubernetesSettings(SETTINGS.origins, multicluster=SETTINGS.origins)


def test_k16_a_resource_that_is_not_installed_is_empty_and_looked_for_soon_then_once_a_minute() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced(1)
        await asyncio.sleep(600)
        waits = gaps(setup.api.requests.times("serviceimports"))
        assert [round(wait) for wait in waits[:6]] == [1, 2, 4, 8, 15, 30]
        assert all(59 <= wait <= 76 for wait in waits[6:])
        assert 14 <= setup.api.requests.count("serviceimports") <= 18
        setup.api.heal()
        setup.api.put(service_import("web", ["10.98.0.1"]))
        await until(lambda: setup.state.counts()["ServiceImport"] == 1, 76)

    play(story, *WEB, settings=MULTICLUSTER, prepare=lambda api: api.absent("serviceimports"))


def test_k16_a_resource_that_is_taken_away_is_empty_again() -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        assert setup.state.counts()["ServiceImport"] == 1
        setup.api.absent("serviceimports")
        setup.api.end_watches("serviceimports")
        await until(lambda: setup.state.counts()["ServiceImport"] == 0, 10)
        assert setup.state.synced

    play(story, *WEB, service_import("web", ["10.98.0.1"]), settings=MULTICLUSTER)


def test_k23_a_wall_clock_that_jumps_moves_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(setup: Setup) -> None:
        await setup.synced()
        for years in (10, -10):
            there = time.time() + years * 365 * 86_400
            monkeypatch.setattr("time.time", lambda there=there: there)
            before = setup.api.requests.count()
            await asyncio.sleep(200)
            assert setup.api.requests.count() - before <= 8
            assert setup.source.age < 310
            setup.api.stall()
            setup.api.put(service("front", cluster_ip=f"10.96.0.{100 + years}"))
            stalled = setup.now
            await knows(setup, f"10.96.0.{100 + years}", 310)
            assert setup.now - stalled > 30

    play(story, *WEB, FRONT)
