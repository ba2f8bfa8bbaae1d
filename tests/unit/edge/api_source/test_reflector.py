"""One kind kept as the API server has it, through every failure, in virtual time."""

import asyncio
import logging
from collections import deque
from contextlib import suppress
from ipaddress import ip_address
from itertools import pairwise
from random import Random

import pytest

from tests.support.api_objects import endpoint_slice, node, service, service_import
from tests.support.scripted_api import (
    FORBIDDEN,
    GONE,
    NO_WATCH_LIST,
    NOT_FOUND,
    REFUSED,
    Body,
    Piece,
    ScriptedApi,
    at_version,
    bookmark,
    error,
    event,
    page,
    watch,
)
from tests.support.virtual_time import run_virtually
from topodns.cluster.model import EVERYTHING, Fact, ObjectKey, Service, service_fact
from topodns.cluster.state import ClusterState
from topodns.edge.api_source.company import Company
from topodns.edge.api_source.intake import Intake
from topodns.edge.api_source.reflector import Reflector
from topodns.edge.api_source.resources import Resource
from topodns.edge.api_source.retry_gate import RetryGate
from topodns.edge.api_source.turns import Turns
from topodns.edge.kube_api import ApiError

SERVICES = Resource("Service", "services", ("/api/v1/services",), {"labelSelector": "app=web"})
SLICES = Resource("EndpointSlice", "endpointslices.discovery.k8s.io", ("/v1/slices", "/v1beta1/slices"))
NODES = Resource("Node", "nodes", ("/api/v1/nodes",), optional=True)
IMPORTS = Resource("ServiceImport", "serviceimports.multicluster.x-k8s.io", ("/imports",), optional=True, custom=True)

NAMES = ("a", "b", "c", "d", "e")
MOVED = {**service("a"), "spec": {"clusterIP": "10.96.0.7"}}
BAD = {**service("b"), "spec": {"ports": "x"}}


class World:
    """A reflector between a scripted server and a state, and what the state told of changes."""

    def __init__(self, resource: Resource, *replies: Body | ApiError) -> None:
        self.api = ScriptedApi(deque(replies))
        self.state = ClusterState(frozenset({resource.kind}))
        self.published: list[frozenset[Fact]] = []
        intake = Intake(self.state, self.published.append, lambda: 1000.0)
        self.reflector = Reflector(resource, Company(self.api, intake, RetryGate(), Turns(), Random(4)))
        self.progress = self.reflector.progress
        self._kind = resource.kind

    @property
    def names(self) -> str:
        """Those of NAMES that are held, as a word."""
        keys = {name: [ObjectKey("default", name), ObjectKey("", name)] for name in NAMES}
        return "".join(name for name in NAMES if any(self.state.held(self._kind, key) for key in keys[name]))

    async def pass_time(self, seconds: float, verifying: bool = False) -> None:
        """Let the reflector work until this time of the clock, then stop it."""
        tasks = [asyncio.create_task(self.reflector.follow())]
        if verifying:
            tasks.append(asyncio.create_task(self.reflector.verify()))
        await asyncio.sleep(seconds - asyncio.get_running_loop().time())
        for task in tasks:
            assert not task.done(), task.exception()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def after(seconds: float, resource: Resource, *replies: Body | ApiError, verifying: bool = False) -> World:
    """The world once this time has passed."""

    async def story() -> World:
        world = World(resource, *replies)
        await world.pass_time(seconds, verifying)
        return world

    return run_virtually(story())


def added(*names: str, version: int = 10) -> list[bytes]:
    return [event("ADDED", service(name), version) for name in names]


def streamed(*names: str, version: int = 100) -> list[bytes]:
    """A list at the beginning of a watch."""
    return [*added(*names), bookmark(version, initial_events_end=True)]


def listed(*names: str, version: int = 100, token: str = "") -> Body:
    return page(*(at_version(service(name), 10) for name in names), version=version, token=token)


def gaps_of(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times)]


def cluster_ips(world: World) -> list[str]:
    """Of Service a."""
    held = world.state.held("Service", ObjectKey("default", "a"))
    assert isinstance(held, Service)
    return [str(ip_address(packed)) for packed in held.cluster_ips]


class TestListing:
    def test_a_list_at_the_beginning_of_the_watch_is_asked_for_first(self) -> None:
        world = after(1, SERVICES, watch(*streamed("a", "b")))
        (request,) = world.api.requests
        assert request.path == "/api/v1/services"
        seconds = int(request.parameters["timeoutSeconds"])
        assert 240 <= seconds <= 295
        assert request.parameters == {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "timeoutSeconds": str(seconds),
            "labelSelector": "app=web",
        }
        assert (world.names, world.state.synced) == ("ab", True)

    def test_nothing_is_known_before_the_list_is_complete_and_then_all_at_once(self) -> None:
        world = after(2, SERVICES, watch(*added("a"), 1.0, *added("b"), 2.0))
        assert (world.names, world.state.synced, world.published) == ("", False, [])
        world = after(2, SERVICES, watch(*added("a"), 1.0, *streamed("b")))
        assert (world.names, world.published) == ("ab", [frozenset({EVERYTHING})])

    def test_where_the_server_refuses_to_stream_it_the_list_comes_in_pages_and_no_time_is_lost(self) -> None:
        world = after(0.1, SERVICES, NO_WATCH_LIST, listed("a", token="next"), listed("b", token="last"), listed("c"))
        lists = [request.parameters for request in world.api.requests[1:4]]
        assert lists == [
            {"limit": "500", "labelSelector": "app=web"},
            {"limit": "500", "labelSelector": "app=web", "continue": "next"},
            {"limit": "500", "labelSelector": "app=web", "continue": "last"},
        ]
        assert world.api.requests[4].parameters["resourceVersion"] == "100"
        assert not world.api.requests[4].streams_list
        assert world.names == "abc"

    def test_a_server_that_ignores_the_wish_is_asked_for_pages_after_a_silence(self) -> None:
        world = after(6, SERVICES, watch(*added("a", "b"), 1000.0), listed("a", "b"))
        assert [request.is_watch for request in world.api.requests] == [True, False, True]
        assert world.names == "ab"

    def test_it_is_not_asked_to_stream_a_list_twice(self) -> None:
        world = after(5, SERVICES, NO_WATCH_LIST, listed("a"), GONE, listed("b"))
        assert [request.streams_list for request in world.api.requests] == [True, False, False, False, False]
        assert world.names == "b"

    def test_pages_that_go_round_in_a_circle_are_no_list(self) -> None:
        circle = (listed("a", token="next"), listed("b", token="next"), listed("c", token="next"))
        world = after(0.1, SERVICES, NO_WATCH_LIST, *circle)
        assert len(world.api.requests) == 3
        assert not world.state.synced

    def test_a_page_that_is_too_old_to_continue_begins_the_list_anew(self) -> None:
        world = after(3, SERVICES, NO_WATCH_LIST, listed("a", token="next"), GONE, listed("b"))
        assert "continue" not in world.api.requests[3].parameters
        assert world.names == "b"

    def test_a_list_that_breaks_off_changes_nothing_and_is_asked_for_again(self) -> None:
        world = after(1, SERVICES, watch(*added("a"), ends=True), listed("b"))
        assert [request.streams_list for request in world.api.requests] == [True, False, False]
        assert world.names == "b"

    def test_initial_events_that_come_for_ever_are_given_up_after_a_minute_for_pages(self) -> None:
        drip: list[Piece] = []
        for version in range(1, 100):
            drip.extend([*added("a", version=version), 2.0])
        world = after(62, SERVICES, watch(*drip), listed("a", "b"))
        assert world.api.times == [0.0, 60.0, 60.0]
        assert world.names == "ab"

    def test_a_page_that_takes_a_minute_is_given_up(self) -> None:
        world = after(62, SERVICES, NO_WATCH_LIST, Body((b"{", 100.0)), listed("a"))
        assert world.names == "a"

    def test_a_body_that_is_no_list_is_asked_for_again(self) -> None:
        world = after(2, SERVICES, NO_WATCH_LIST, Body((b"<html>",)), listed("a"))
        assert world.names == "a"


class TestWatching:
    def test_additions_changes_and_deletions_are_taken_in_as_they_come(self) -> None:
        lines = [*streamed("a", "b"), event("MODIFIED", MOVED, 101), event("DELETED", service("b"), 102)]
        world = after(1, SERVICES, watch(*lines, *added("c", version=103)))
        assert cluster_ips(world) == ["10.96.0.7"]
        assert world.names == "ac"
        changed = [next(fact.name for fact in facts if fact.kind == "service") for facts in world.published[1:]]
        assert changed == ["a", "b", "c"]
        assert world.progress.events == 3

    def test_a_line_may_come_in_any_pieces(self) -> None:
        stream = b"".join([*streamed("a"), *added("b", version=101)])
        for size in (1, 7, 100, len(stream)):
            pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
            assert after(1, SERVICES, watch(*pieces)).names == "ab"

    def test_a_watch_that_ends_in_time_goes_on_at_once_from_the_last_version(self) -> None:
        world = after(241, SERVICES, watch(*streamed("a"), 240.0, bookmark(150), ends=True))
        assert world.api.times == [0.0, 240.0]
        assert world.api.requests[1].parameters["resourceVersion"] == "150"
        assert world.progress.trouble is None

    @pytest.mark.parametrize(
        ("line", "version"),
        [
            pytest.param(event("MODIFIED", service("a"), 120), "120", id="an object's"),
            pytest.param(event("DELETED", service("a"), 121), "121", id="a deletion's"),
            pytest.param(bookmark(122), "122", id="a bookmark's"),
            pytest.param(
                event("ADDED", {**BAD, "metadata": {"name": 5}}, 123), "100", id="an illegible object has none"
            ),
        ],
    )
    def test_the_next_watch_begins_where_the_last_one_was(self, line: bytes, version: str) -> None:
        world = after(5, SERVICES, watch(*streamed("a"), line, 2.0, ends=True))
        assert world.api.requests[1].parameters["resourceVersion"] == version

    def test_a_watch_that_ends_at_once_and_says_nothing_is_not_asked_for_in_a_tight_loop(self) -> None:
        ended = [watch(ends=True)] * 50
        world = after(30, SERVICES, NO_WATCH_LIST, listed("a"), *ended)
        gaps = gaps_of(world.api.times[2:])
        assert min(gaps) >= 0.8
        assert len(gaps) >= 3

    @pytest.mark.parametrize(
        "line", [bookmark(100), event("ADDED", service("a"), 10)], ids=["a bookmark", "an event of before"]
    )
    def test_a_watch_that_ends_at_once_and_brings_nothing_new_is_asked_for_less_and_less_often(
        self, line: bytes
    ) -> None:
        world = after(120, SERVICES, NO_WATCH_LIST, listed("a"), *[watch(line, ends=True)] * 200)
        gaps = gaps_of(world.api.times[2:])
        assert min(gaps) >= 0.8
        assert 4 <= len(gaps) <= 40
        assert world.progress.trouble is not None

    def test_garbage_after_the_head_of_a_response_is_no_success(self) -> None:
        world = after(120, SERVICES, NO_WATCH_LIST, listed("a"), *[watch(0.15, b"{garbage\n", ends=True)] * 200)
        assert min(gaps_of(world.api.times[2:])) >= 0.8
        assert 4 <= len(world.api.times) <= 40
        assert world.progress.trouble is not None

    def test_a_watch_that_is_granted_and_silent_ends_the_trouble(self) -> None:
        world = after(5, SERVICES, watch(*streamed("a"), 2.0, ends=True), REFUSED, watch())
        assert len(world.api.requests) == 3
        assert world.progress.trouble is None

    def test_K6_a_silent_watch_is_ended_ten_seconds_after_the_server_should_have(self) -> None:
        world = after(310, SERVICES, watch(*streamed("a")), watch(*added("b", version=101)))
        seconds = int(world.api.requests[0].parameters["timeoutSeconds"])
        assert seconds + 10 <= world.api.times[1] <= seconds + 11 <= 306
        assert world.names == "ab"
        assert world.api.requests[1].parameters["resourceVersion"] == "100"

    def test_K8_missing_bookmarks_are_no_error(self) -> None:
        world = after(600, SERVICES, watch(*streamed("a"), 250.0, ends=True), watch(250.0, ends=True))
        assert [request.parameters.get("resourceVersion") for request in world.api.requests] == [None, "100", "100"]
        assert world.names == "a"

    @pytest.mark.parametrize(
        ("version", "held"), [(5, "10.0.0.1"), (12, "10.0.0.9")], ids=["an older object", "a newer object"]
    )
    def test_K9_an_object_older_than_what_is_held_is_ignored(self, version: int, held: str) -> None:
        before = {**service("a"), "spec": {"clusterIP": "10.0.0.1"}}
        other = {**service("a"), "spec": {"clusterIP": "10.0.0.9"}}
        stream = [event("ADDED", before, 10), bookmark(100, True), event("MODIFIED", other, version)]
        assert cluster_ips(after(1, SERVICES, watch(*stream))) == [held]

    def test_K9_a_deletion_older_than_what_is_held_is_ignored(self) -> None:
        stream = [*streamed("a"), event("DELETED", service("a"), 5)]
        assert after(1, SERVICES, watch(*stream)).names == "a"

    @pytest.mark.parametrize("garbage", [b"{]\n", b"[]\n", b'{"type":"ODD","object":{}}\n', b"\xff\xfe\n"])
    def test_K10_broken_lines_end_the_stream_which_goes_on_from_there(self, garbage: bytes) -> None:
        world = after(2, SERVICES, watch(*streamed("a"), garbage), watch(*added("b", version=101)))
        assert world.names == "ab"
        assert 0.8 <= world.api.times[1] <= 1.0
        assert world.api.requests[1].parameters["resourceVersion"] == "100"

    def test_K10_an_object_that_cannot_be_read_is_skipped_and_counted_and_named_once(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        bad = event("MODIFIED", BAD, 101)
        with caplog.at_level(logging.WARNING):
            world = after(1, SERVICES, watch(*streamed("a", "b"), bad, bad, *added("c", version=102)))
        assert (world.names, len(world.api.requests), world.progress.decode_errors) == ("abc", 1, 2)
        (line,) = caplog.messages
        assert "Service default/b" in line

    def test_K10_what_cannot_be_read_in_a_list_stays_as_it_was(self) -> None:
        again = page(at_version(service("a"), 10), at_version(BAD, 11), version=200)
        world = after(3, SERVICES, NO_WATCH_LIST, listed("a", "b", "c"), GONE, again)
        assert world.names == "ab"


class TestFailures:
    def test_K1_a_server_that_is_down_at_the_start_is_asked_soon_and_never_in_a_tight_loop(self) -> None:
        world = after(120, SERVICES, *[REFUSED] * 1000)
        gaps = gaps_of(world.api.times)
        assert gaps[0] <= 1.0
        assert 0.8 <= min(gaps) <= max(gaps) <= 30.0
        assert len(gaps) < 60
        assert not world.state.synced

    @pytest.mark.parametrize("down", [3.0, 10.0, 17.0])
    def test_K1_K2_the_end_of_an_outage_is_noticed_within_five_seconds(self, down: float) -> None:
        async def story() -> float:
            world = World(SERVICES)
            world.api.replies.extend([REFUSED] * 1000)
            asyncio.get_running_loop().call_later(down, world.api.replies.clear)
            await world.pass_time(down + 5)
            return world.api.times[-1]

        assert run_virtually(story()) > down

    def test_K2_what_is_known_stays_while_the_server_is_away_and_goes_on_from_there(self) -> None:
        away = [REFUSED] * 8
        world = after(200, SERVICES, watch(*streamed("a"), 2.0, ends=True), *away, watch(*added("b", version=101)))
        assert world.names == "ab"
        assert len(world.api.requests) == 10
        assert world.api.requests[-1].parameters["resourceVersion"] == "100"

    @pytest.mark.parametrize("gone", [GONE, watch(error(410, "Expired"))], ids=["as a status", "in the stream"])
    def test_K5_a_version_that_is_gone_means_a_new_list_with_no_empty_moment(self, gone: Body | ApiError) -> None:
        stream = [watch(*streamed("a", "b"), 2.0, ends=True), gone, watch(*streamed("b", "c", version=200))]
        world = after(5, SERVICES, *stream)
        assert world.names == "bc"
        assert world.published[1:] == [
            frozenset({service_fact("default", "a")}),
            frozenset({service_fact("default", "c")}),
        ]
        assert world.progress.relists == 1

    def test_K5_a_server_that_says_gone_for_ever_is_listed_less_and_less_often(self) -> None:
        gone_for_ever: list[Body | ApiError] = [listed("a"), GONE] * 500
        world = after(600, SERVICES, NO_WATCH_LIST, *gone_for_ever)
        lists = [request.at for request in world.api.requests if not request.is_watch]
        gaps = gaps_of(lists)
        assert len(lists) < 80
        assert max(gaps) > 15

    def test_K11_a_list_that_has_lost_nearly_everything_is_confirmed_by_a_second_one(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        many = page(*(at_version(service(f"s{n}"), 10) for n in range(101)), version=100)
        empty = page(version=200)
        with caplog.at_level(logging.WARNING):
            world = after(2.5, SERVICES, NO_WATCH_LIST, many, GONE, empty, empty)
        assert world.state.counts()["Service"] == 101
        assert "it has 0 objects where there were 101" in caplog.text
        world = after(5, SERVICES, NO_WATCH_LIST, many, GONE, empty, empty)
        assert world.api.times[4] == pytest.approx(world.api.times[3] + 2.0)
        assert world.state.counts()["Service"] == 0
        world = after(5, SERVICES, NO_WATCH_LIST, many, GONE, empty, many)
        assert world.state.counts()["Service"] == 101

    def test_K11_a_small_kind_may_vanish_at_once(self) -> None:
        world = after(2, SERVICES, NO_WATCH_LIST, listed("a", "b"), GONE, listed())
        assert world.names == ""

    @pytest.mark.parametrize("verb", ["list", "watch"])
    def test_K12_what_is_denied_is_told_by_kind_and_verb_and_tried_again(self, verb: str) -> None:
        before = [FORBIDDEN] if verb == "watch" else [NO_WATCH_LIST, FORBIDDEN]
        world = after(0.5, SERVICES, *before)
        assert world.progress.describe() == f"Service (cannot {verb} services: 403: services is forbidden)"
        assert not world.state.synced
        world = after(2, SERVICES, *before, *([] if verb == "watch" else [listed("a")]))
        assert world.progress.trouble is None

    def test_K12_a_denied_optional_kind_is_empty_and_blocks_nothing_and_is_tried_again(self) -> None:
        world = after(0.1, NODES, FORBIDDEN)
        assert (world.state.synced, world.names) == (True, "")
        assert world.progress.trouble is not None
        nodes = [event("ADDED", node("a", "z1", "10.0.0.1"), 10), bookmark(100, True)]
        assert after(2, NODES, FORBIDDEN, watch(*nodes)).names == "a"

    def test_K13_what_is_revoked_later_is_still_served(self) -> None:
        nodes = [event("ADDED", node("a", "z1", "10.0.0.1"), 10), bookmark(100, True)]
        world = after(20, NODES, watch(*nodes, 2.0, ends=True), *[FORBIDDEN] * 100)
        assert world.names == "a"
        assert world.progress.describe() == "Node (cannot watch nodes: 403: services is forbidden)"

    @pytest.mark.parametrize("status", [429, 503])
    def test_K15_retry_after_is_honoured_with_some_spread(self, status: int) -> None:
        world = after(30, SERVICES, ApiError(status, "busy", retry_after=10.0), watch(*streamed("a")))
        assert 10.0 <= world.api.times[1] <= 12.5
        assert world.names == "a"

    def test_K15_nobody_waits_for_hours_because_the_server_says_so(self) -> None:
        world = after(400, SERVICES, ApiError(503, "busy", retry_after=1e9), watch(*streamed("a")))
        assert 300.0 <= world.api.times[1] <= 375.0
        assert world.names == "a"

    @pytest.mark.parametrize(
        "refusal",
        [ApiError(400, "invalid resource version"), watch(error(400, "BadRequest"))],
        ids=["as a status", "in the stream"],
    )
    def test_K5_a_version_that_the_server_cannot_read_means_a_new_list_of_any_age(
        self, refusal: Body | ApiError
    ) -> None:
        world = after(5, SERVICES, NO_WATCH_LIST, listed("a"), refusal, listed("b", version=200))
        assert "resourceVersion" not in world.api.requests[3].parameters
        assert world.names == "b"

    def test_K16_a_kind_of_the_core_cannot_be_missing_so_nodes_stay_what_they_were(self) -> None:
        nodes = [event("ADDED", node("a", "z1", "10.0.0.1"), 10), bookmark(100, True)]
        world = after(20, NODES, watch(*nodes, 2.0, ends=True), *[NOT_FOUND] * 100)
        assert world.names == "a"
        assert len(world.api.times) > 5, "they are looked for as after any failure"

    def test_K16_a_kind_of_the_core_that_was_never_found_blocks_nothing_and_is_found_soon(self) -> None:
        nodes = [event("ADDED", node("a", "z1", "10.0.0.1"), 10), bookmark(100, True)]
        world = after(0.1, NODES, NOT_FOUND)
        assert (world.state.synced, world.names) == (True, "")
        assert after(2, NODES, NOT_FOUND, watch(*nodes)).names == "a"

    def test_K16_a_resource_that_is_not_installed_is_empty_and_looked_for_every_minute(self) -> None:
        world = after(130, IMPORTS, *[NOT_FOUND] * 9)
        assert (world.state.synced, world.api.times) == (True, [0.0, 60.0, 120.0])
        imports = [event("ADDED", service_import("a", ["10.1.0.1"]), 10), bookmark(100, True)]
        assert after(61, IMPORTS, NOT_FOUND, watch(*imports)).names == "a"

    def test_K16_a_resource_that_is_uninstalled_is_empty_again(self) -> None:
        imports = [event("ADDED", service_import("a", ["10.1.0.1"]), 10), bookmark(100, True)]
        assert after(5, IMPORTS, watch(*imports, 2.0, ends=True), NOT_FOUND).names == ""

    def test_an_api_version_that_the_server_lacks_is_replaced_by_an_older_one(self) -> None:
        slices = [event("ADDED", endpoint_slice("a", {"10.1.0.1": "n1"}, name="a"), 10), bookmark(100, True)]
        world = after(0.5, SLICES, NOT_FOUND, watch(*slices))
        assert [request.path for request in world.api.requests] == ["/v1/slices", "/v1beta1/slices"]
        assert world.names == "a"

    def test_where_no_api_version_is_known_the_first_one_is_tried_again_after_a_while(self) -> None:
        world = after(1.1, SLICES, NOT_FOUND, NOT_FOUND)
        assert [request.path[:4] for request in world.api.requests] == ["/v1/", "/v1b", "/v1/"]
        assert world.api.times[2] >= 0.8
        assert not world.state.synced

    def test_K24_a_later_list_may_not_be_older_than_what_was_seen(self) -> None:
        world = after(3, SERVICES, watch(*streamed("a"), bookmark(150), 2.0, ends=True), GONE, watch(*streamed("b")))
        parameters = world.api.requests[2].parameters
        assert (parameters["resourceVersion"], parameters["resourceVersionMatch"]) == ("150", "NotOlderThan")

    def test_K24_a_list_that_is_older_all_the_same_is_confirmed_by_the_newest_there_is(self) -> None:
        older = listed("b", version=50)
        world = after(2.5, SERVICES, NO_WATCH_LIST, listed("a"), GONE, older, listed("c", version=120))
        assert world.names == "a"
        world = after(5, SERVICES, NO_WATCH_LIST, listed("a"), GONE, older, listed("c", version=120))
        assert "resourceVersion" not in world.api.requests[4].parameters
        assert world.names == "c"

    def test_a_server_that_has_lost_its_past_is_believed_in_the_end(self) -> None:
        """As after etcd was restored from a backup: all versions are lower, also those of the next changes."""
        ahead = ApiError(504, "Timeout: Too large resource version: 100, current: 40")
        restored = [listed("a", version=40), listed("a", version=40)]
        first = page(at_version(service("a"), 90), version=100)
        world = after(9, SERVICES, NO_WATCH_LIST, first, ahead, *restored, watch(event("MODIFIED", MOVED, 41)))
        assert cluster_ips(world) == ["10.96.0.7"]


class TestVerification:
    def test_K7_lost_events_are_repaired_within_the_hour_and_counted(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING):
            world = verified(listed("a", "c"), watch(*streamed("a", "b")))
        (request,) = [request for request in world.api.requests if not request.is_watch]
        assert 1800 <= request.at <= 3600
        assert request.parameters["resourceVersionMatch"] == "NotOlderThan"
        assert (world.names, world.progress.repairs, world.progress.relists) == ("ac", 2, 0)
        assert "2 objects were not as held; repaired" in caplog.text

    def test_where_nothing_was_lost_nothing_is_touched(self) -> None:
        world = verified(listed("a", "b"), watch(*streamed("a", "b")))
        assert (world.progress.repairs, world.published) == (0, [frozenset({EVERYTHING})])

    def test_what_changes_while_a_list_is_read_is_newer_than_the_list_and_no_repair(self) -> None:
        async def story() -> World:
            asked = asyncio.Event()

            async def ask() -> None:
                asked.set()

            late = [event("DELETED", service("b"), 101), *added("d", version=102), event("MODIFIED", MOVED, 103)]
            world = World(SERVICES, watch(*streamed("a", "b")), *[watch(asked.wait, 0.2, *late)] * 20)
            world.api.lists.append(Body((ask, *listed("a", "b").pieces)))
            await world.pass_time(3700, verifying=True)
            return world

        world = run_virtually(story())
        assert (world.names, world.progress.repairs) == ("ad", 0)
        assert cluster_ips(world) == ["10.96.0.7"]

    def test_a_list_that_has_lost_nearly_everything_is_confirmed_here_too(self) -> None:
        many = [f"s{n}" for n in range(101)]
        world = verified(listed(), watch(*streamed(*many)), listed(*many))
        assert (world.state.counts()["Service"], world.progress.repairs) == (101, 0)

    def test_a_list_that_fails_is_put_off(self) -> None:
        assert verified(REFUSED, watch(*streamed("a"))).names == "a"


def verified(first_list: Body | ApiError, *replies: Body | ApiError) -> World:
    """The world after one verification: the watch stands all the time."""

    async def story() -> World:
        first, *lists = replies
        world = World(SERVICES, first, *[watch()] * 20)
        world.api.lists.extend([first_list, *lists])
        await world.pass_time(3605, verifying=True)
        return world

    return run_virtually(story())
