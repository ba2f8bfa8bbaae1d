"""What an API server can do wrong, and what is known of the cluster meanwhile: the rows K1 to K24 that need much time.

In virtual time, against the stand-in of the stories without its sockets: hours pass in milliseconds.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest

from tests.support.api_objects import endpoint_slice, namespace, node, service, service_import
from tests.support.api_world import SETTINGS, World, play, until
from tests.support.fake_api.server import FakeApi
from tests.support.fake_api.statuses import Refusal
from topodns.cluster.model import EVERYTHING, Fact, service_fact
from topodns.settings.kubernetes import KubernetesSettings

HOUR = 3600.0
HOURS = 6 * HOUR
WEB = (namespace("default"), service("web"), endpoint_slice("web", {"10.0.0.1": "n1"}))
FRONT, MOVED = service("front", cluster_ip="10.96.0.1"), service("front", cluster_ip="10.96.0.2")
MANY = tuple(service(f"s{number}", cluster_ip=f"10.96.1.{number}") for number in range(150))


def gaps(times: Iterable[float]) -> list[float]:
    return [round(later - earlier, 6) for earlier, later in pairwise(times)]


def lists(world: World) -> int:
    return sum(one.lists for one in world.source.progress)


async def knows(world: World, cluster_ip: str, seconds: float) -> None:
    """That the Service `front` has this address, soon."""
    await until(lambda: world.cluster_ip("front") == cluster_ip, seconds)


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


@pytest.mark.parametrize("as_status", [True, False])
def test_k05_after_gone_only_what_differs_is_touched(as_status: bool) -> None:
    async def story(world: World) -> None:
        await world.synced()
        world.published.clear()
        world.api.lose_next("services")
        world.api.put(FRONT)
        world.api.gone(as_status=as_status)
        await knows(world, "10.96.0.1", 2)
        await asyncio.sleep(60)
        assert world.addresses("web") == {"10.0.0.1"}
        assert touched(world) == {service_fact("default", "front"), *address_facts(world)}
        assert world.progress("Service").lists == 2

    play(story, *WEB)


def touched(world: World) -> set[Fact]:
    return {fact for facts in world.published for fact in facts}


def address_facts(world: World) -> set[Fact]:
    return {fact for fact in touched(world) if fact.kind == "address"}


@pytest.mark.parametrize("outage", [0.0, 17.0])
def test_k05_an_api_server_that_comes_back_without_its_past_is_listed_soon(outage: float) -> None:
    async def story(world: World) -> None:
        await world.synced()
        await world.api.close()
        world.api.put(MOVED)
        world.api.gone()
        await asyncio.sleep(outage)
        await world.api.open()
        await knows(world, "10.96.0.2", 3 + outage / 4)

    play(story, *WEB, FRONT)


def test_k05_gone_soon_after_other_trouble_does_not_wait_for_that() -> None:
    async def story(world: World) -> None:
        await world.synced()
        for kind in ("services", "endpointslices"):
            await world.api.close()
            await asyncio.sleep(30)
            await world.api.open()
            await until(lambda: all(one.trouble is None for one in world.source.progress), 15)
            before = lists(world)
            world.api.gone(kind)
            await asyncio.sleep(2)
            assert lists(world) == before + 1

    play(story, *WEB, FRONT)


def test_k05_gone_while_pages_are_read_begins_the_list_anew() -> None:
    async def story(world: World) -> None:
        await until(lambda: world.api.requests.count("services", "list") == 1, 5)
        world.api.gone("services")
        await world.synced(10)
        assert len(world.state.counts()) > 0
        assert world.state.counts()["Service"] == 1200

    services = [service(f"s{number}") for number in range(1200)]
    play(story, *services, prepare=lambda api: (api.refuse_watch_list(), api.slow(0.1))[0])


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


def test_k07_a_lost_event_is_found_by_the_verifying_list_and_counted() -> None:
    async def story(world: World) -> None:
        await world.synced()
        world.api.lose_next("services")
        world.api.put(MOVED)
        world.published.clear()
        assert await until(lambda: world.cluster_ip("front") == "10.96.0.2", HOUR + 60) > 1700
        assert world.progress("Service").repairs == 1
        assert world.progress("EndpointSlice").repairs == 0
        assert service_fact("default", "front") in touched(world)
        assert service_fact("default", "web") not in touched(world)

    play(story, *WEB, FRONT)


def test_k07_a_lost_deletion_is_found_too_and_hours_without_losses_repair_nothing() -> None:
    async def story(world: World) -> None:
        await world.synced()
        await asyncio.sleep(HOURS)
        assert [one.repairs for one in world.source.progress] == [0, 0, 0, 0]
        world.api.lose_next("services")
        world.api.delete(FRONT)
        await until(lambda: not world.cluster_ip("front"), HOUR + 60)
        assert world.progress("Service").repairs == 1

    play(story, *WEB, FRONT)


def test_k07_what_changes_while_a_verifying_list_is_read_is_no_repair() -> None:
    async def story(world: World) -> None:
        await world.synced()
        world.api.slow(5)
        while world.api.requests.count("services", "list") == 0:
            await asyncio.sleep(2)
            world.api.put(MOVED)
            world.api.put(service("late", cluster_ip="10.96.0.9"))
        for _ in range(20):
            await asyncio.sleep(0.5)
            world.api.put(FRONT)
        await knows(world, "10.96.0.1", 1)
        world.api.delete(service("late"))
        await until(lambda: not world.cluster_ip("late"), 1)
        await asyncio.sleep(30)
        assert world.cluster_ip("late") == ""
        assert world.progress("Service").repairs == 0

    play(story, *WEB, FRONT)


def test_k08_without_bookmarks_everything_works() -> None:
    async def story(world: World) -> None:
        await world.synced()
        await asyncio.sleep(2 * HOUR)
        world.api.put(FRONT)
        await knows(world, "10.96.0.1", 1)
        assert world.progress("Service").trouble is None

    play(story, *WEB, prepare=lambda api: api.no_bookmarks())


def test_k08_bookmarks_spare_the_list_when_the_past_is_forgotten() -> None:
    async def story(world: World) -> None:
        await world.synced()
        for _ in range(100):
            world.api.put(namespace("default"))
        for store in world.api.stores.values():
            store.oldest = world.api.revisions.last  # as the watch cache's window moves on
        await asyncio.sleep(2 * HOUR)
        assert world.progress("Service").lists == 1
        assert world.api.requests.count("services", "list") <= 5  # the verifying ones

    play(story, *WEB)


@pytest.mark.parametrize("revision", ["1", "1001"])
def test_k09_an_event_with_an_older_resource_version_is_ignored(revision: str) -> None:
    async def story(world: World) -> None:
        await world.synced()
        old = service("front", cluster_ip="10.96.0.66")
        old["metadata"]["resourceVersion"] = revision
        world.published.clear()
        world.api.send_event("MODIFIED", old)
        world.api.send_event("DELETED", old)
        await asyncio.sleep(1)
        assert world.cluster_ip("front") == "10.96.0.1"
        assert world.published == []

    play(story, *WEB, FRONT)


def test_k09_an_older_event_does_not_move_the_watch_back() -> None:
    async def story(world: World) -> None:
        await world.synced()
        old = service("front", cluster_ip="10.96.0.66")
        old["metadata"]["resourceVersion"] = "1"
        world.api.send_event("MODIFIED", old)
        world.api.end_watches("services")
        await until(lambda: world.api.requests.count("services", "watch") == 2, 2)
        assert int(world.api.requests.of("services", "watch")[1].query["resourceVersion"]) > 1000

    play(story, *WEB, FRONT)


def test_k09_versions_that_are_no_numbers_are_taken_as_they_come() -> None:
    async def story(world: World) -> None:
        await world.synced()
        for revision, address in (("b7", "10.96.0.3"), ("a1", "10.96.0.4")):
            changed = service("front", cluster_ip=address)
            changed["metadata"]["resourceVersion"] = revision
            world.api.send_event("MODIFIED", changed)
            await knows(world, address, 1)

    play(story, *WEB, FRONT)


def test_k10_broken_json_costs_one_watch() -> None:
    async def story(world: World) -> None:
        await world.synced()
        world.api.send_raw("services", b'{"type":"MODIFIED","object":{"metadata":\n')
        await asyncio.sleep(0.1)
        world.api.put(FRONT)
        await knows(world, "10.96.0.1", 2)
        assert world.progress("Service").lists == 1

    play(story, *WEB)


def test_k10_one_bad_object_is_skipped_and_counted_and_the_watch_goes_on() -> None:
    async def story(world: World) -> None:
        await world.synced()
        watches = world.api.requests.count("services", "watch")
        bad = service("bad")
        bad["spec"]["ports"] = "x"
        world.api.put(bad, FRONT)
        await knows(world, "10.96.0.1", 0.5)
        assert world.api.requests.count("services", "watch") == watches
        assert world.progress("Service").decode_errors == 1

    play(story, *WEB)


@pytest.mark.parametrize("streaming", [True, False])
def test_k10_one_bad_object_in_a_list_hides_no_other(streaming: bool) -> None:
    async def story(world: World) -> None:
        await world.synced()
        assert world.cluster_ip("front") == "10.96.0.1"
        assert world.progress("Service").decode_errors == 1

    bad = service("bad")
    bad["spec"]["ports"] = "x"
    play(story, bad, FRONT, prepare=lambda api: None if streaming else api.refuse_watch_list())


def test_k10_an_object_that_became_unreadable_stays_what_it_was_also_through_a_list() -> None:
    async def story(world: World) -> None:
        await world.synced()
        bad = service("front")
        bad["spec"]["ports"] = "x"
        world.api.put(bad)
        world.api.gone()
        await until(lambda: world.progress("Service").lists == 2, 5)
        assert world.cluster_ip("front") == "10.96.0.1"

    play(story, *WEB, FRONT)


@pytest.mark.parametrize("streaming", [True, False])
def test_k10_a_list_that_breaks_off_changes_nothing(streaming: bool) -> None:
    async def story(world: World) -> None:
        await world.synced()
        world.published.clear()
        world.api.tear_lists(3)
        world.api.gone("services")
        await asyncio.sleep(60)
        assert len(world.published) == 0
        assert world.state.counts()["Service"] == 152

    play(story, *WEB, FRONT, *MANY, prepare=lambda api: None if streaming else api.refuse_watch_list())


def test_k11_a_list_that_lost_nearly_everything_is_believed_when_it_is_confirmed() -> None:
    async def story(world: World) -> None:
        await world.synced()
        world.api.empty("services")
        world.api.gone("services")
        await asyncio.sleep(1.9)
        assert world.state.counts()["Service"] == 150
        await until(lambda: world.state.counts()["Service"] == 0, 5)

    play(story, *MANY)


def test_k11_a_list_that_was_empty_by_mistake_is_never_believed() -> None:
    async def story(world: World) -> None:
        await world.synced()
        world.published.clear()
        world.api.empty("services")
        world.api.gone("services")
        await asyncio.sleep(1.9)
        world.api.heal()
        await asyncio.sleep(60)
        assert world.state.counts()["Service"] == 150
        assert world.published == []

    play(story, *MANY)


def test_k11_an_empty_list_of_few_objects_and_deletions_one_by_one_are_believed_at_once() -> None:
    async def story(world: World) -> None:
        await world.synced()
        world.api.delete(*MANY)
        await until(lambda: world.state.counts()["Service"] == 2, 1)
        world.api.empty("services")
        world.api.gone("services")
        await until(lambda: world.state.counts()["Service"] == 0, 2)

    play(story, *WEB, FRONT, *MANY)


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
        world.api.heal()
        await world.synced(20)
        assert world.source.waiting_for() == ()

    play(story, *WEB, prepare=lambda api: api.deny(resource))


def test_k12_a_denied_list_is_told_from_a_denied_watch() -> None:
    def prepare(api: FakeApi) -> None:
        api.refuse_watch_list()
        api.deny("services", "list")

    async def story(world: World) -> None:
        await asyncio.sleep(5)
        (waiting,) = world.source.waiting_for()
        assert waiting.startswith("Service (cannot list services: 403")

    play(story, *WEB, prepare=prepare)


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
def test_k13_what_was_known_before_the_permission_went_stays(resource: str) -> None:
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


Prepare = Callable[[FakeApi], None]
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
        await asyncio.sleep(1)
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

    play(story, *WEB, prepare=lambda api: None if streaming else api.refuse_watch_list())


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


def test_k17_while_a_burst_is_taken_in_others_have_their_turn() -> None:
    async def story(world: World) -> None:
        await world.synced()
        turns = 0
        world.api.touch("services", 3000)
        while world.progress("Service").events < 3000:
            await asyncio.sleep(0)
            turns += 1
        assert turns > 20

    play(story, *WEB, *MANY)


def test_k18_the_same_endpoint_in_two_slices_is_there_once_it_is_in_one() -> None:
    async def story(world: World) -> None:
        await world.synced()
        twin = endpoint_slice("web", {"10.0.0.1": "n1", "10.0.0.2": "n2"}, name="web-2")
        world.api.put(twin)
        await until(lambda: world.addresses("web") == {"10.0.0.1", "10.0.0.2"}, 1)
        world.api.delete(twin)
        await until(lambda: world.addresses("web") == {"10.0.0.1"}, 1)

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
    async def story(world: World) -> None:
        await world.synced()
        world.published.clear()
        remove(world.api)
        await asyncio.sleep(0.1)
        assert world.published == []
        world.api.put(NEW)
        await until(lambda: world.published, 0.02)
        assert world.addresses("web") == {"10.0.0.1"}
        await asyncio.sleep(1)
        assert world.addresses("web") == {"10.0.0.1"}

    play(story, *WEB)


def test_k19_a_last_endpoint_that_is_really_gone_is_so_after_a_moment() -> None:
    async def story(world: World) -> None:
        await world.synced()
        world.api.delete(OLD)
        assert await until(lambda: not world.addresses("web"), 0.32) >= 0.09

    play(story, *WEB)


def test_k19_an_addition_never_waits_and_neither_does_one_endpoint_of_several() -> None:
    async def story(world: World) -> None:
        await world.synced()
        world.api.put(endpoint_slice("web", {"10.0.0.1": "n1", "10.0.0.2": "n2"}))
        await until(lambda: len(world.addresses("web")) == 2, 0.02)
        world.api.put(endpoint_slice("web", {"10.0.0.2": "n2"}))
        await until(lambda: world.addresses("web") == {"10.0.0.2"}, 0.02)

    play(story, *WEB)


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


@pytest.mark.parametrize("streaming", [True, False])
def test_k24_a_server_that_is_behind_does_not_take_anything_back(streaming: bool) -> None:
    async def story(world: World) -> None:
        await world.synced()
        world.api.freeze("services")
        world.api.put(MOVED)
        await knows(world, "10.96.0.2", 1)
        world.published.clear()
        world.api.gone("services")
        await asyncio.sleep(HOUR)
        assert world.cluster_ip("front") == "10.96.0.2"
        assert world.published == []
        assert world.progress("Service").lists < 300, "a list is dear: they are to become rare"

    play(story, *WEB, FRONT, prepare=lambda api: None if streaming else api.refuse_watch_list())


def test_k24_a_past_that_was_restored_is_believed_when_it_is_confirmed() -> None:
    async def story(world: World) -> None:
        await world.synced()
        world.api.freeze("services", restored=True)
        world.api.put(MOVED)
        await knows(world, "10.96.0.2", 1)
        world.api.gone("services")
        await asyncio.sleep(1.9)
        assert world.cluster_ip("front") == "10.96.0.2"
        await knows(world, "10.96.0.1", 10)
        again = service("front", cluster_ip="10.96.0.3")
        again["metadata"]["resourceVersion"] = "1006"
        world.api.send_event("MODIFIED", again)
        await knows(world, "10.96.0.3", 300)

    play(story, *WEB, FRONT)


WAYS: dict[str, Callable[[FakeApi], None]] = {
    "streamed": lambda api: None,
    "refused": lambda api: api.refuse_watch_list(),
    "ignored": lambda api: api.ignore_watch_list(),
}


@pytest.mark.parametrize("prepare", WAYS.values(), ids=WAYS.keys())
def test_a_list_is_complete_however_the_server_gives_it(prepare: Prepare) -> None:
    async def story(world: World) -> None:
        await world.synced(10)
        assert world.state.counts()["Service"] == 1200
        world.api.put(FRONT)
        await knows(world, "10.96.0.1", 1)
        assert world.progress("Service").lists == 1

    play(story, *(service(f"s{number}") for number in range(1200)), prepare=prepare)
