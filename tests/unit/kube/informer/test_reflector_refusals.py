"""An API server that refuses: denied, overloaded, not installed, of another version. In virtual time."""

import logging

import pytest

from tests.support.api_objects import endpoint_slice, node, service_import
from tests.support.reflector_with_scripted_api import IMPORTS, NODES, SERVICES, SLICES, after, gaps_of, listed, streamed
from tests.support.scripted_api import (
    FORBIDDEN,
    NO_WATCH_LIST,
    NOT_FOUND,
    Body,
    bookmark,
    event,
    watch,
)
from topodns.kube.client.contract import ApiError


@pytest.mark.parametrize(
    ("refused", "other", "granted", "verb"),
    [
        ([NO_WATCH_LIST, FORBIDDEN], watch(), listed("a"), "list"),
        ([FORBIDDEN], listed(), watch(*streamed("a")), "watch"),
    ],
    ids=["list", "watch"],
)
def test_k12_a_denied_request_is_reported_by_kind_and_verb_and_tried_again(
    refused: list[ApiError], other: Body, granted: Body, verb: str
) -> None:
    setup = after(1, SERVICES, *refused, other)
    assert setup.progress.describe() == f"Service (cannot {verb} services: 403: services is forbidden)"
    assert not setup.state.synced
    setup = after(2, SERVICES, *refused, other, granted)
    assert (setup.names, setup.progress.trouble) == ("a", None)


def test_k12_two_denied_verbs_are_both_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        setup = after(6, SERVICES, *[FORBIDDEN] * 20)
    both = "Service (cannot watch services: 403: services is forbidden; list is denied too)"
    assert setup.progress.describe() == both
    assert min(gaps_of(setup.api.times)) >= 0.79
    assert caplog.messages == [
        "plugin/kubernetes: cannot watch services: 403: services is forbidden",
        'plugin/kubernetes: the ClusterRole needs apiGroups: [""], resources: ["services"], verbs: ["list", "watch"]',
        "plugin/kubernetes: cannot list services either: denied too",
    ]
    one_granted = after(3, SERVICES, FORBIDDEN, FORBIDDEN, FORBIDDEN, listed())
    assert one_granted.progress.describe() == "Service (cannot watch services: 403: services is forbidden)"


def test_k12_a_denied_optional_kind_is_empty_and_blocks_nothing_and_is_tried_again() -> None:
    setup = after(0.1, NODES, FORBIDDEN)
    assert (setup.state.synced, setup.names) == (True, "")
    assert setup.progress.trouble is not None
    nodes = [event("ADDED", node("a", "z1", "10.0.0.1"), 10), bookmark(100, True)]
    assert after(2, NODES, FORBIDDEN, listed(), watch(*nodes)).names == "a"


def test_k13_a_kind_revoked_later_is_still_served() -> None:
    nodes = [event("ADDED", node("a", "z1", "10.0.0.1"), 10), bookmark(100, True)]
    setup = after(20, NODES, watch(*nodes, 2.0, ends=True), *[FORBIDDEN] * 100)
    assert setup.names == "a"
    assert setup.progress.describe() == "Node (cannot watch nodes: 403: services is forbidden; list is denied too)"


@pytest.mark.parametrize("status", [429, 503])
def test_k15_retry_after_is_honoured_with_some_spread(status: int) -> None:
    setup = after(30, SERVICES, ApiError(status, "busy", retry_after=10.0), watch(*streamed("a")))
    assert 10.0 <= setup.api.times[1] <= 12.5
    assert setup.names == "a"


def test_k15_a_retry_after_of_hours_is_capped() -> None:
    setup = after(400, SERVICES, ApiError(503, "busy", retry_after=1e9), watch(*streamed("a")))
    assert 300.0 <= setup.api.times[1] <= 375.0
    assert setup.names == "a"


def test_k16_a_kind_of_the_core_api_cannot_be_missing_so_nodes_keep_their_last_value() -> None:
    nodes = [event("ADDED", node("a", "z1", "10.0.0.1"), 10), bookmark(100, True)]
    setup = after(20, NODES, watch(*nodes, 2.0, ends=True), *[NOT_FOUND] * 100)
    assert setup.names == "a"
    assert len(setup.api.times) > 5, "they are looked for as after any failure"


def test_k16_a_kind_of_the_core_that_was_never_found_blocks_nothing_and_is_found_soon() -> None:
    nodes = [event("ADDED", node("a", "z1", "10.0.0.1"), 10), bookmark(100, True)]
    setup = after(0.1, NODES, NOT_FOUND)
    assert (setup.state.synced, setup.names) == (True, "")
    assert after(2, NODES, NOT_FOUND, watch(*nodes)).names == "a"


def test_k16_a_resource_that_is_not_installed_is_empty_and_looked_for_soon_then_every_minute() -> None:
    setup = after(190, IMPORTS, *[NOT_FOUND] * 9)
    assert (setup.state.synced, setup.api.times) == (True, [0.0, 1.0, 3.0, 7.0, 15.0, 30.0, 60.0, 120.0, 180.0])
    imports = [event("ADDED", service_import("a", ["10.1.0.1"]), 10), bookmark(100, True)]
    assert after(1.1, IMPORTS, NOT_FOUND, watch(*imports)).names == "a"


def test_k16_a_resource_that_is_uninstalled_is_empty_again() -> None:
    imports = [event("ADDED", service_import("a", ["10.1.0.1"]), 10), bookmark(100, True)]
    assert after(5, IMPORTS, watch(*imports, 2.0, ends=True), NOT_FOUND).names == ""


def test_an_api_version_that_the_server_lacks_is_replaced_by_an_older_one() -> None:
    slices = [event("ADDED", endpoint_slice("a", {"10.1.0.1": "n1"}, name="a"), 10), bookmark(100, True)]
    setup = after(0.5, SLICES, NOT_FOUND, watch(*slices))
    assert [request.path for request in setup.api.requests] == ["/v1/slices", "/v1beta1/slices"]
    assert setup.names == "a"


def test_where_no_api_version_is_known_the_first_one_is_tried_again_after_a_while() -> None:
    setup = after(1.1, SLICES, NOT_FOUND, NOT_FOUND)
    assert [request.path[:4] for request in setup.api.requests] == ["/v1/", "/v1b", "/v1/"]
    assert setup.api.times[2] >= 0.8
    assert not setup.state.synced
