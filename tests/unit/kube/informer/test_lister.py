"""How one kind is listed: in a stream or in pages, whole or not at all, and what of it is believed. In virtual time."""

import logging

import pytest

from tests.support.api_objects import service
from tests.support.reflector_with_scripted_api import MOVED, SERVICES, added, after, cluster_ips, listed, streamed
from tests.support.scripted_api import (
    GONE,
    NO_WATCH_LIST,
    Body,
    Piece,
    at_version,
    bookmark,
    event,
    page,
    watch,
)
from topodns.dependency import EVERYTHING
from topodns.kube.client.contract import ApiError
from topodns.kube.informer import lister as reader


def test_a_list_at_the_beginning_of_the_watch_is_asked_for_first() -> None:
    setup = after(1, SERVICES, watch(*streamed("a", "b")))
    (request,) = setup.api.requests
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
    assert (setup.names, setup.state.synced) == ("ab", True)


def test_nothing_is_known_before_the_list_is_complete_and_then_all_at_once() -> None:
    setup = after(2, SERVICES, watch(*added("a"), 1.0, *added("b"), 2.0))
    assert (setup.names, setup.state.synced, setup.published) == ("", False, [])
    setup = after(2, SERVICES, watch(*added("a"), 1.0, *streamed("b")))
    assert (setup.names, setup.published) == ("ab", [frozenset({EVERYTHING})])


def test_where_the_server_refuses_to_stream_it_the_list_comes_in_pages_and_no_time_is_lost() -> None:
    setup = after(0.1, SERVICES, NO_WATCH_LIST, listed("a", token="next"), listed("b", token="last"), listed("c"))
    lists = [request.parameters for request in setup.api.requests[1:4]]
    assert lists == [
        {"limit": "500", "labelSelector": "app=web"},
        {"limit": "500", "labelSelector": "app=web", "continue": "next"},
        {"limit": "500", "labelSelector": "app=web", "continue": "last"},
    ]
    assert setup.api.requests[4].parameters["resourceVersion"] == "100"
    assert not setup.api.requests[4].streams_list
    assert setup.names == "abc"


def test_consistent_lists_come_in_pages_and_from_no_cache() -> None:
    pages = (listed("a", token="next"), listed("b"), GONE, listed("c", version=120))
    setup = after(3, SERVICES, *pages, watch(), consistent_lists=True)
    lists = [request.parameters for request in setup.api.requests if not request.is_watch]
    selected = {"limit": "500", "labelSelector": "app=web"}
    assert lists == [selected, {**selected, "continue": "next"}, selected]
    assert not any(request.streams_list for request in setup.api.requests)
    assert setup.names == "c"


def test_a_server_that_ignores_the_wish_is_asked_for_pages_after_a_silence() -> None:
    setup = after(6, SERVICES, watch(*added("a", "b"), 1000.0), listed("a", "b"))
    assert [request.is_watch for request in setup.api.requests] == [True, False, True]
    assert setup.names == "ab"


def test_it_is_not_asked_to_stream_a_list_twice() -> None:
    setup = after(5, SERVICES, NO_WATCH_LIST, listed("a"), GONE, listed("b"))
    assert [request.streams_list for request in setup.api.requests] == [True, False, False, False, False]
    assert setup.names == "b"


def test_pages_that_go_round_in_a_circle_are_no_list() -> None:
    circle = (listed("a", token="next"), listed("b", token="next"), listed("c", token="next"))
    setup = after(0.1, SERVICES, NO_WATCH_LIST, *circle)
    assert len(setup.api.requests) == 3
    assert not setup.state.synced


def test_a_list_that_never_comes_to_its_end_is_one_trouble_however_well_it_begins(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Else each beginning would end the waiting of all other kinds, and each failure be a line in the log."""
    in_pages: list[Body | ApiError] = [listed("a", token="next"), listed("b", token="next")]
    streamed_lists = [watch(*added("a", "b"), 0.6, *added("c"), 0.1, b"{garbage\n")]
    for broken in (in_pages * 50, streamed_lists * 50):
        caplog.clear()
        with caplog.at_level(logging.INFO):
            setup = after(60, SERVICES, *([NO_WATCH_LIST] if broken[0] in in_pages else []), *broken)
        assert len(setup.api.requests) > 8
        assert len(caplog.messages) == 1
        assert caplog.messages[0].startswith("plugin/kubernetes: cannot ")


def test_k10_pages_without_end_are_trouble_though_each_has_another_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_PAGES", 3)
    endless: list[Body | ApiError] = [listed(name, token=name) for name in "abcdefgh"]
    trouble = after(2, SERVICES, NO_WATCH_LIST, *endless).progress.trouble
    assert trouble is not None
    assert "the pages of the list do not end: there are more than 3" in trouble.problem


def test_each_page_is_a_sign_of_life() -> None:
    slowly = [Body((20.0, *listed(name, token=f"{name}+").pieces)) for name in "abc"]
    assert after(70, SERVICES, NO_WATCH_LIST, *slowly).progress.last_received == 60.0


@pytest.mark.parametrize("fits", [True, False])
def test_a_page_that_is_too_large_is_asked_for_with_fewer_objects(fits: bool) -> None:
    """A page is split in one go, which may not take long: no more of it is read than that allows. After a small page
    the next one is larger again: where one namespace has large objects, the others' are not read one by one.
    """
    too_large = Body((*[b" " * (1 << 20)] * 17, 1000.0))
    rest: list[Body | ApiError] = [listed("a", token="next"), listed("b")] if fits else [too_large] * 10
    setup = after(0.5, SERVICES, NO_WATCH_LIST, too_large, too_large, *rest)
    lists = [request.parameters for request in setup.api.requests if not request.is_watch]
    assert [one["limit"] for one in lists] == (["500", "125", "31", "62"] if fits else ["500", "125", "31", "7", "1"])
    assert [one.get("continue") for one in lists][3:] == (["next"] if fits else [None, None])
    assert setup.names == ("ab" if fits else "")
    trouble = setup.progress.trouble
    assert (trouble is None) if fits else (trouble and trouble.problem == "a page of one object is larger than 16 MiB")


def test_a_page_that_is_too_old_to_continue_begins_the_list_anew() -> None:
    setup = after(3, SERVICES, NO_WATCH_LIST, listed("a", token="next"), GONE, listed("b"))
    assert "continue" not in setup.api.requests[3].parameters
    assert setup.names == "b"


def test_a_list_that_breaks_off_changes_nothing_and_is_asked_for_again() -> None:
    setup = after(1, SERVICES, watch(*added("a"), ends=True), listed("b"))
    assert [request.streams_list for request in setup.api.requests] == [True, False, False]
    assert setup.names == "b"


def test_initial_events_that_come_for_ever_are_given_up_after_a_minute_for_pages() -> None:
    drip: list[Piece] = []
    for version in range(1, 100):
        drip.extend([*added("a", version=version), 2.0])
    setup = after(62, SERVICES, watch(*drip), listed("a", "b"))
    assert setup.api.times == [0.0, 60.0, 60.0]
    assert setup.names == "ab"


def test_a_page_that_takes_a_minute_is_given_up() -> None:
    setup = after(62, SERVICES, NO_WATCH_LIST, Body((b"{", 100.0)), listed("a"))
    assert setup.names == "a"


def test_a_body_that_is_no_list_is_asked_for_again() -> None:
    setup = after(2, SERVICES, NO_WATCH_LIST, Body((b"<html>",)), listed("a"))
    assert setup.names == "a"


def test_k11_a_list_that_has_lost_nearly_everything_is_confirmed_by_a_second_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    many = page(*(at_version(service(f"s{n}"), 10) for n in range(101)), version=100)
    empty = page(version=200)
    with caplog.at_level(logging.WARNING):
        setup = after(2.5, SERVICES, NO_WATCH_LIST, many, GONE, empty, empty)
    assert setup.state.counts()["Service"] == 101
    assert "it has 0 objects where there were 101" in caplog.text
    setup = after(5, SERVICES, NO_WATCH_LIST, many, GONE, empty, empty)
    assert setup.api.times[4] == pytest.approx(setup.api.times[3] + 2.0)
    assert setup.state.counts()["Service"] == 0
    setup = after(5, SERVICES, NO_WATCH_LIST, many, GONE, empty, many)
    assert setup.state.counts()["Service"] == 101


def test_k11_a_small_kind_may_vanish_at_once() -> None:
    setup = after(2, SERVICES, NO_WATCH_LIST, listed("a", "b"), GONE, listed())
    assert setup.names == ""


def test_k24_a_later_list_may_not_be_older_than_the_version_seen() -> None:
    setup = after(3, SERVICES, watch(*streamed("a"), bookmark(150), 2.0, ends=True), GONE, watch(*streamed("b")))
    parameters = setup.api.requests[2].parameters
    assert (parameters["resourceVersion"], parameters["resourceVersionMatch"]) == ("150", "NotOlderThan")


def test_k24_a_list_that_is_older_all_the_same_is_confirmed_by_the_newest_there_is() -> None:
    older = listed("b", version=50)
    setup = after(2.5, SERVICES, NO_WATCH_LIST, listed("a"), GONE, older, listed("c", version=120))
    assert setup.names == "a"
    setup = after(5, SERVICES, NO_WATCH_LIST, listed("a"), GONE, older, listed("c", version=120))
    assert "resourceVersion" not in setup.api.requests[4].parameters
    assert setup.names == "c"


def test_a_server_that_has_lost_its_past_is_believed_in_the_end() -> None:
    """As after etcd was restored from a backup: all versions are lower, also those of the next changes."""
    ahead = ApiError(504, "Timeout: Too large resource version: 100, current: 40")
    restored = [listed("a", version=40), listed("a", version=40)]
    first = page(at_version(service("a"), 90), version=100)
    setup = after(9, SERVICES, NO_WATCH_LIST, first, ahead, *restored, watch(event("MODIFIED", MOVED, 41)))
    assert cluster_ips(setup) == ["10.96.0.7"]
