"""How one kind is watched: what its events say, and how a watch begins and ends. In virtual time."""

import asyncio
import json
import logging

import pytest

from tests.support.api_objects import service
from tests.support.reflector_with_scripted_api import (
    BAD,
    MOVED,
    SERVICES,
    Setup,
    added,
    after,
    cluster_ips,
    gaps_of,
    listed,
    streamed,
)
from tests.support.scripted_api import (
    GONE,
    NO_WATCH_LIST,
    REFUSED,
    at_version,
    bookmark,
    error,
    event,
    page,
    watch,
)
from topodns.cluster.decode.stream import Decoder, Event, read_watch_line
from topodns.cluster.model import ClusterObject, Kind
from topodns.kube.informer import decode_turns, watcher
from topodns.kube.informer.state_writer import StateWriter


def test_additions_changes_and_deletions_are_taken_in_as_they_come() -> None:
    lines = [*streamed("a", "b"), event("MODIFIED", MOVED, 101), event("DELETED", service("b"), 102)]
    setup = after(1, SERVICES, watch(*lines, *added("c", version=103)))
    assert cluster_ips(setup) == ["10.96.0.7"]
    assert setup.names == "ac"
    changed = [next(fact.name for fact in facts if fact.kind == "service") for facts in setup.published[1:]]
    assert changed == ["a", "b", "c"]
    assert setup.progress.events == 3


def test_a_line_may_come_in_any_pieces() -> None:
    stream = b"".join([*streamed("a"), *added("b", version=101)])
    for size in (1, 7, 100, len(stream)):
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert after(1, SERVICES, watch(*pieces)).names == "ab"


def test_others_work_between_a_long_decoding_of_an_event_and_its_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    apply = StateWriter.apply

    def read(kind: Kind, line: bytes, decode: Decoder) -> object:
        order.append("read")
        asyncio.get_running_loop().call_soon(order.append, "others")
        return read_watch_line(kind, line, decode)

    def applied(writer: StateWriter, kind: Kind, found: Event[ClusterObject]) -> None:
        order.append("applied")
        apply(writer, kind, found)

    monkeypatch.setattr(decode_turns, "PIECE", 0.0)
    monkeypatch.setattr(watcher, "read_watch_line", read)
    monkeypatch.setattr(StateWriter, "apply", applied)
    setup = after(1, SERVICES, watch(*streamed("a"), 0.5, event("MODIFIED", MOVED, 101) + event("DELETED", MOVED, 102)))
    assert order[-6:] == ["read", "others", "applied"] * 2
    assert setup.names == ""


def test_a_watch_that_ends_in_time_goes_on_at_once_from_the_last_version() -> None:
    setup = after(241, SERVICES, watch(*streamed("a"), 240.0, bookmark(150), ends=True))
    assert setup.api.times == [0.0, 240.0]
    assert setup.api.requests[1].parameters["resourceVersion"] == "150"
    assert setup.progress.trouble is None


@pytest.mark.parametrize(
    ("line", "version"),
    [
        pytest.param(event("MODIFIED", service("a"), 120), "120", id="an object's"),
        pytest.param(event("DELETED", service("a"), 121), "121", id="a deletion's"),
        pytest.param(bookmark(122), "122", id="a bookmark's"),
        pytest.param(event("ADDED", {**BAD, "metadata": {"name": 5}}, 123), "100", id="an unreadable object has none"),
    ],
)
def test_the_next_watch_begins_where_the_last_one_was(line: bytes, version: str) -> None:
    setup = after(5, SERVICES, watch(*streamed("a"), line, 2.0, ends=True))
    assert setup.api.requests[1].parameters["resourceVersion"] == version


def gaps_of_watches(setup: Setup) -> list[float]:
    """Of those without a list."""
    return gaps_of([request.at for request in setup.api.requests if request.is_watch and not request.streams_list])


def test_a_watch_that_ends_at_once_and_says_nothing_is_not_asked_for_in_a_tight_loop() -> None:
    ended = [watch(ends=True)] * 50
    setup = after(30, SERVICES, NO_WATCH_LIST, *ended, lists=[listed("a")] * 50)
    gaps = gaps_of_watches(setup)
    assert min(gaps) >= 0.8
    assert len(gaps) >= 3


@pytest.mark.parametrize(
    "line", [bookmark(100), event("ADDED", service("a"), 10)], ids=["a bookmark", "an event of before"]
)
def test_a_watch_that_ends_at_once_and_brings_nothing_new_is_asked_for_less_and_less_often(line: bytes) -> None:
    ended = [watch(line, ends=True)] * 200
    setup = after(120, SERVICES, NO_WATCH_LIST, *ended, lists=[listed("a")] * 200)
    gaps = gaps_of_watches(setup)
    assert min(gaps) >= 0.8
    assert 4 <= len(gaps) <= 40
    assert setup.progress.trouble is not None


def test_garbage_after_the_head_of_a_response_is_no_success() -> None:
    garbage = [watch(0.15, b"{garbage\n", ends=True)] * 200
    setup = after(120, SERVICES, NO_WATCH_LIST, *garbage, lists=[listed("a")] * 200)
    gaps = gaps_of_watches(setup)
    assert min(gaps) >= 0.8
    assert 4 <= len(gaps) <= 40
    assert setup.progress.trouble is not None


def test_a_watch_that_is_granted_and_silent_ends_the_trouble() -> None:
    setup = after(5, SERVICES, watch(*streamed("a"), 2.0, ends=True), REFUSED, listed("a"), watch())
    assert len(setup.api.requests) == 4
    assert setup.progress.trouble is None


def test_with_a_limit_a_watch_without_even_a_bookmark_is_lost_and_goes_on_from_where_it_was() -> None:
    silent = watch(*streamed("a"), 30.0, bookmark(101))
    setup = after(80.5, SERVICES, silent, silence=50.0)
    assert setup.progress.trouble is not None
    assert setup.progress.trouble.problem == "the watch was silent for 50 s"
    setup = after(90, SERVICES, silent, watch(), lists=[listed("a", version=101)], silence=50.0)
    resumed = [(request.is_watch, request.parameters.get("resourceVersion")) for request in setup.api.requests[1:]]
    assert resumed == [(False, None), (True, "101")], "the version of the server, then the watch"
    assert 80.0 <= setup.api.times[1] <= 82.0


def test_k06_a_silent_watch_is_ended_ten_seconds_after_the_server_should_have() -> None:
    setup = after(310, SERVICES, watch(*streamed("a")), watch(*added("b", version=101)))
    seconds = int(setup.api.requests[0].parameters["timeoutSeconds"])
    assert seconds + 10 <= setup.api.times[1] <= seconds + 11 <= 306
    assert setup.names == "ab"
    assert setup.api.requests[1].parameters["resourceVersion"] == "100"


def test_k08_missing_bookmarks_are_no_error() -> None:
    setup = after(600, SERVICES, watch(*streamed("a"), 250.0, ends=True), watch(250.0, ends=True))
    assert [request.parameters.get("resourceVersion") for request in setup.api.requests] == [None, "100", "100"]
    assert setup.names == "a"


@pytest.mark.parametrize(
    ("version", "held"), [(5, "10.0.0.1"), (12, "10.0.0.9")], ids=["an older object", "a newer object"]
)
def test_k09_an_object_older_than_the_held_one_is_ignored(version: int, held: str) -> None:
    before = {**service("a"), "spec": {"clusterIP": "10.0.0.1"}}
    other = {**service("a"), "spec": {"clusterIP": "10.0.0.9"}}
    stream = [event("ADDED", before, 10), bookmark(100, True), event("MODIFIED", other, version)]
    assert cluster_ips(after(1, SERVICES, watch(*stream))) == [held]


def test_k09_a_deletion_older_than_the_held_object_is_ignored() -> None:
    stream = [*streamed("a"), event("DELETED", service("a"), 5)]
    assert after(1, SERVICES, watch(*stream)).names == "a"


@pytest.mark.parametrize("garbage", [b"{]\n", b"[]\n", b'{"type":"ODD","object":{}}\n', b"\xff\xfe\n"])
def test_k10_broken_lines_end_the_stream_which_goes_on_from_there(garbage: bytes) -> None:
    begun, more = watch(*streamed("a"), garbage), watch(*added("b", version=101))
    setup = after(2, SERVICES, begun, more, lists=[listed("a")])
    assert setup.names == "ab"
    assert 0.8 <= setup.api.times[1] == setup.api.times[2] <= 1.0
    assert setup.api.requests[2].parameters["resourceVersion"] == "100"


def test_k10_an_object_that_cannot_be_read_is_skipped_and_counted_and_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad = event("MODIFIED", BAD, 101)
    with caplog.at_level(logging.WARNING):
        setup = after(1, SERVICES, watch(*streamed("a", "b"), bad, bad, *added("c", version=102)))
    assert (setup.names, len(setup.api.requests), setup.progress.decode_errors) == ("abc", 1, 2)
    (line,) = caplog.messages
    assert "Service default/b" in line


NASTY = "n\x1b[31m\nWARNING forged" + "x" * 10_000
NASTY_LINES = {
    "the type of an event": json.dumps({"type": NASTY, "object": {}}).encode() + b"\n",
    "the name of an object": event("ADDED", {**BAD, "metadata": {"name": NASTY, "namespace": NASTY}}, 101),
    "a value in an object": event("ADDED", {**service("b"), "spec": {"clusterIP": NASTY + "%"}}, 101),
    "a refusal": error(500, NASTY),
}


@pytest.mark.parametrize("line", NASTY_LINES.values(), ids=NASTY_LINES.keys())
def test_the_api_server_s_message_is_logged_in_one_short_line_that_does_nothing_to_a_terminal(
    line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        setup = after(1, SERVICES, watch(*streamed("a"), line))
    (message,) = caplog.messages
    for text in (message, setup.progress.describe()):
        assert text.isprintable()
        assert len(text) < 600
    assert "n\\x1b[31m" in message


def test_k10_an_unreadable_object_in_a_list_keeps_its_last_value() -> None:
    again = page(at_version(service("a"), 10), at_version(BAD, 11), version=200)
    setup = after(3, SERVICES, NO_WATCH_LIST, listed("a", "b", "c"), GONE, again)
    assert setup.names == "ab"


def test_k10_an_unreadable_element_costs_no_other_and_its_object_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    spec = {"clusterIPs": ["10.96.0", "10.96.010.007"], "ports": [{"port": 80}, {"port": 70000}, "x"]}
    partly = {**service("a"), "spec": spec}
    with caplog.at_level(logging.WARNING):
        changed = event("MODIFIED", partly, 101)
        setup = after(1, SERVICES, watch(*streamed("a", "b"), changed, event("MODIFIED", partly, 102)))
        again = page(at_version(service("b"), 10), at_version(partly, 11), version=200)
        listed_again = after(3, SERVICES, NO_WATCH_LIST, listed("a", "b"), GONE, again)
    assert (cluster_ips(setup), setup.progress.decode_errors) == (["10.96.10.7"], 2)
    assert (cluster_ips(listed_again), listed_again.progress.decode_errors) == (["10.96.10.7"], 1)
    lines = [line for line in caplog.messages if "Service default/a: left out spec.ports[2]: " in line]
    assert len(lines) == 2, "one for each server"
