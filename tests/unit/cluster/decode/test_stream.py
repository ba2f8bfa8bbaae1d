"""Lists and watches of an API server, octet by octet, and the objects decoded of them."""

import json
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.api_objects import endpoint_slice, namespace, node, pod, service
from tests.support.model_builders import packed
from topodns.cluster.decode.stream import (
    Bookmark,
    Event,
    Listed,
    Refusal,
    Undecodable,
    UnreadableReply,
    read_listed,
    read_page,
    read_watch_line,
)
from topodns.cluster.model import ClusterObject, Deleted, Kind, Namespace, ObjectKey, Service, Upserted

Object = dict[str, Any]
TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time"


def versioned(value: Object, version: str = "42", **metadata: Any) -> Object:
    return {**value, "metadata": {**value["metadata"], "resourceVersion": version, **metadata}}


def line(kind: str, value: Object) -> bytes:
    return json.dumps({"type": kind, "object": value}).encode()


def read(kind: Kind, event: str, value: Object) -> Event[ClusterObject] | Bookmark | Refusal | Undecodable:
    return read_watch_line(kind, line(event, value))


class TestObjects:
    @pytest.mark.parametrize("event", ["ADDED", "MODIFIED"])
    def test_an_addition_and_a_change_bring_the_object_and_its_version(self, event: str) -> None:
        found = read("Service", event, versioned(service("web", cluster_ip="10.96.0.1")))
        assert isinstance(found, Event)
        assert isinstance(found.change, Upserted)
        assert isinstance(found.change.object, Service)
        assert found.change.object.cluster_ips == (packed("10.96.0.1"),)
        assert (found.version, found.change.object.version) == ("42", 42)

    @pytest.mark.parametrize(
        ("kind", "value", "key"),
        [
            ("Service", service("web", "shop"), ("shop", "web")),
            ("EndpointSlice", endpoint_slice("web", {"10.0.0.1": "n1"}, "shop"), ("shop", "web-1")),
            ("Namespace", namespace("shop"), ("", "shop")),
            ("Node", node("n1", "z1", "10.9.0.1"), ("", "n1")),
            ("Service", {"metadata": {"name": "web", "namespace": "shop"}, "spec": "odd"}, ("shop", "web")),
        ],
        ids=["Service", "EndpointSlice", "Namespace", "Node", "an unreadable Service"],
    )
    def test_a_deletion_brings_the_name_whatever_the_object_is(
        self, kind: Kind, value: Object, key: tuple[str, str]
    ) -> None:
        found = read(kind, "DELETED", versioned(value))
        assert found == Event(Deleted(kind, ObjectKey(*key), 42), "42")
        assert isinstance(found, Event)
        assert isinstance(found.change, Deleted)
        assert found.change.version == 42

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Unknown"])
    def test_a_pod_that_is_over_is_as_good_as_deleted(self, phase: str) -> None:
        found = read("Pod", "MODIFIED", versioned(pod("p", "10.0.0.1", "n1", phase=phase)))
        assert found == Event(Deleted("Pod", ObjectKey("default", "p"), 42), "42")

    def test_a_pod_without_an_address_yet_is_no_pod(self) -> None:
        value = versioned({"metadata": {"name": "p", "namespace": "shop"}, "status": {"phase": "Pending"}})
        assert read("Pod", "ADDED", value) == Event(Deleted("Pod", ObjectKey("shop", "p"), 42), "42")

    @pytest.mark.parametrize(
        ("version", "number"),
        [
            ("42", 42),
            ("18446744073709551615", 2**64 - 1),
            ("18446744073709551616", 0),
            ("99999999999999999999", 0),
            ("v42", 0),
            ("4.2", 0),
            ("-1", 0),
            ("٤٢", 0),
            ("9" * 5000, 0),
        ],
    )
    def test_a_version_that_is_no_number_has_no_order_and_is_handed_back_as_it_was(
        self, version: str, number: int
    ) -> None:
        found = read("Namespace", "ADDED", versioned(namespace("shop"), version))
        assert isinstance(found, Event)
        assert isinstance(found.change, Upserted)
        assert isinstance(found.change.object, Namespace)
        assert (found.version, found.change.object.version) == (version, number)

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("1970-01-01T00:16:40Z", 1000.0),
            ("1970-01-01T00:16:40.25Z", 1000.25),
            ("1970-01-01T00:16:40.250000000Z", 1000.25),
            ("1970-01-01T01:16:40+01:00", 1000.0),
            ("1970-01-01T00:16:40", None),
            ("soon", None),
            ("", None),
        ],
    )
    def test_the_time_of_the_change_behind_a_slice_is_read_where_it_is_one(
        self, text: str, seconds: float | None
    ) -> None:
        value = versioned(endpoint_slice("web", {"10.0.0.1": "n1"}), annotations={TRIGGER: text})
        found = read("EndpointSlice", "MODIFIED", value)
        assert isinstance(found, Event)
        assert found.triggered == seconds


class TestUndecodable:
    @pytest.mark.parametrize(
        ("kind", "value", "key"),
        [
            ("Service", {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"ports": "x"}}, ("shop", "web")),
            (
                "Service",
                {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"clusterIP": "::x"}},
                ("shop", "web"),
            ),
            ("Node", {"metadata": {"name": "n1"}, "spec": {"podCIDR": "x"}}, ("", "n1")),
            ("Service", {"metadata": {"name": "web"}, "spec": {"ports": "x"}}, None),
            ("Service", {"metadata": {"name": 5}}, None),
            ("Service", {"metadata": None}, None),
        ],
    )
    def test_an_object_that_cannot_be_read_is_named_as_far_as_it_can(
        self, kind: Kind, value: Object, key: tuple[str, str] | None
    ) -> None:
        found = read(kind, "ADDED", value)
        assert isinstance(found, Undecodable)
        assert found.key == (ObjectKey(*key) if key else None)
        assert found.problem.startswith(f"{kind} ")
        assert read_listed(kind, json.dumps(value).encode()) == found

    def test_an_object_of_a_foreign_api_group_is_not_taken_for_ours(self) -> None:
        foreign = {**service("web"), "apiVersion": "serving.knative.dev/v1"}
        assert isinstance(read("Service", "ADDED", foreign), Undecodable)

    def test_a_deletion_without_a_name_is_one_of_them(self) -> None:
        assert isinstance(read("Service", "DELETED", {"metadata": {}}), Undecodable)


class TestElementsLeftOut:
    BAD = endpoint_slice("web", {"10.0.0.1": "n1", "10.0.0": "n1"})

    @pytest.mark.parametrize("event", ["ADDED", "MODIFIED"])
    def test_an_object_without_them_is_an_event_that_says_so(self, event: str) -> None:
        found = read("EndpointSlice", event, self.BAD)
        assert isinstance(found, Event)
        assert found.left_out.startswith("EndpointSlice default/web-")
        assert ": left out endpoints[1].addresses[0]: '10.0.0' " in found.left_out
        assert isinstance(found.change, Upserted)
        assert read_listed("EndpointSlice", json.dumps(self.BAD).encode()) == Listed(
            found.change.object, found.left_out
        )

    def test_a_pod_without_any_other_address_is_as_good_as_deleted(self) -> None:
        found = read("Pod", "MODIFIED", pod("web-0", "10.0.0", "n1"))
        assert isinstance(found, Event)
        assert isinstance(found.change, Deleted)
        assert "status.podIPs[0]: '10.0.0'" in found.left_out


def spoilt(value: Object) -> bytes:
    """With a SPOILT text that is no UTF-8, which no API server should send and etcd can hold."""
    return json.dumps(value).encode().replace(b"SPOILT", b"\xff\xfe")


class TestOctetsThatAreNoText:
    """K10: one object that cannot be read costs that object alone."""

    SPOILT_FIELD = service("web", "shop", cluster_ip="SPOILT")
    SPOILT_ANNOTATION = versioned(service("web", "shop"), annotations={"a": "SPOILT"})
    SPOILT_NAME = service("SPOILT", "shop")

    @pytest.mark.parametrize("event", ["ADDED", "MODIFIED"])
    @pytest.mark.parametrize(
        ("value", "key"),
        [
            (SPOILT_FIELD, ObjectKey("shop", "web")),
            (SPOILT_ANNOTATION, ObjectKey("shop", "web")),
            (SPOILT_NAME, None),
        ],
    )
    def test_they_make_their_object_unreadable(self, event: str, value: Object, key: ObjectKey | None) -> None:
        found = read_watch_line("Service", b'{"type":"%b","object":%b}' % (event.encode(), spoilt(value)))
        assert isinstance(found, Undecodable)
        assert found.key == key
        assert read_listed("Service", spoilt(value)) == found

    def test_the_other_objects_of_a_page_are_read(self) -> None:
        items = [self.SPOILT_FIELD, self.SPOILT_NAME, service("db")]
        listed = {"kind": "ServiceList", "metadata": {"resourceVersion": "9"}, "items": items}
        found = [read_listed("Service", item) for item in read_page("Service", spoilt(listed)).items]
        assert [type(value) for value in found] == [Undecodable, Undecodable, Listed]

    def test_a_deletion_needs_no_more_than_the_name(self) -> None:
        deleted, nameless = (
            read_watch_line("Service", b'{"type":"DELETED","object":%b}' % spoilt(value))
            for value in (self.SPOILT_FIELD, self.SPOILT_NAME)
        )
        assert deleted == Event(Deleted("Service", ObjectKey("shop", "web")), "")
        assert isinstance(nameless, Undecodable)

    @pytest.mark.parametrize("event", ["BOOKMARK", "ERROR"])
    def test_an_unreadable_object_of_a_watch_line_is_refused(self, event: str) -> None:
        text = spoilt({"metadata": {"resourceVersion": "SPOILT"}, "message": "SPOILT"})
        with pytest.raises(UnreadableReply):
            read_watch_line("Service", b'{"type":"%b","object":%b}' % (event.encode(), text))


class TestHalvesOfSurrogatePairs:
    """K10 for an escape of JSON that makes no character, of which no octets for other processes can be made."""

    HALVES = ("\\ud800", "\\uDFFF", "\\ud800\\ud800", "\\\\\\ud800", "\\udc00\\ud800")

    @staticmethod
    def object_with(text: str) -> bytes:
        value = versioned(service("web", "shop"), annotations={"a": "SPOILT"})
        return json.dumps(value).replace("SPOILT", text).encode()

    @pytest.mark.parametrize("half", HALVES)
    @pytest.mark.parametrize("event", ["ADDED", "MODIFIED", "DELETED"])
    def test_they_make_their_object_unreadable(self, event: str, half: str) -> None:
        found = read_watch_line("Service", b'{"type":"%b","object":%b}' % (event.encode(), self.object_with(half)))
        assert isinstance(found, Undecodable)
        assert found.key == ObjectKey("shop", "web")

    @pytest.mark.parametrize("half", HALVES)
    def test_the_other_objects_of_a_page_are_read(self, half: str) -> None:
        items = b",".join([self.object_with(half), json.dumps(service("db")).encode()])
        page = read_page("Service", b'{"kind":"ServiceList","metadata":{"resourceVersion":"9"},"items":[%b]}' % items)
        assert [type(read_listed("Service", item)) for item in page.items] == [Undecodable, Listed]

    @pytest.mark.parametrize("text", ["\\ud83d\\ude00", "\\uD83D\\uDE00", "\\\\ud800", "\\n\\\\\\\\udc00"])
    def test_a_whole_pair_and_an_escaped_backslash_are_text(self, text: str) -> None:
        assert isinstance(read_listed("Service", self.object_with(text)), Listed)
        beside = b'{"type":"ADDED","x":"\\ud800","object":%b}' % self.object_with(text)
        assert isinstance(read_watch_line("Service", beside), Event)

    PIECES = ("\\\\", "\\n", "\\ud83d", "\\uDE00", "\\u0041", "ud800", "a")

    @given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
    def test_an_object_is_read_unless_its_text_has_half_of_a_pair(self, text: str) -> None:
        """As Python's own reader understands the escapes; beside an object that always has one."""
        parsed = json.loads(f'"{text}"')
        whole = parsed.encode("utf-8", "replace") == parsed.encode("utf-8", "surrogatepass")
        items = b",".join([self.object_with("\\udc00"), self.object_with(text)])
        page = read_page("Service", b'{"kind":"ServiceList","metadata":{"resourceVersion":"9"},"items":[%b]}' % items)
        expected = [Undecodable, Listed if whole else Undecodable]
        assert [type(read_listed("Service", item)) for item in page.items] == expected

    @pytest.mark.parametrize("escape", [b"\\n", b"\\ud83d\\ude00", b"\\ud800", b"\\\\"])
    def test_escapes_without_number_take_no_more_memory_than_their_text(self, escape: bytes) -> None:
        text = b'{"type":"ADDED","x":"\\ud800%b","object":{}}' % (escape * (4_000_000 // len(escape)))
        tracemalloc.start()
        with suppress(UnreadableReply):
            read_watch_line("Service", text)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 3 * len(text)


class TestDepth:
    @pytest.mark.parametrize("field", ["metadata", "spec", "unknown"])
    def test_an_object_nested_too_deeply_is_unreadable(self, field: str) -> None:
        text = b'{"%b":%b}' % (field.encode(), b"[" * 100_000 + b"]" * 100_000)
        found = read_watch_line("Service", b'{"type":"ADDED","object":%b}' % text)
        assert isinstance(found, Undecodable)
        assert isinstance(read_listed("Service", text), Undecodable)


class TestBookmarksAndErrors:
    def test_a_bookmark_says_how_far_the_watch_is(self) -> None:
        """As Go writes it: an object of the kind with nothing in it, not even a name."""
        hollow = {"kind": "Service", "metadata": {"resourceVersion": "77", "creationTimestamp": None}, "spec": {}}
        assert read("Service", "BOOKMARK", hollow) == Bookmark("77")

    @pytest.mark.parametrize(("value", "ended"), [("true", True), ("false", False), ("", False)])
    def test_a_bookmark_may_end_the_initial_events(self, value: str, ended: bool) -> None:
        metadata = {"resourceVersion": "77", "annotations": {"k8s.io/initial-events-end": value}}
        assert read("Pod", "BOOKMARK", {"kind": "Pod", "metadata": metadata}) == Bookmark("77", ended)

    @pytest.mark.parametrize(
        ("status", "expected"),
        [
            (
                {"code": 410, "reason": "Expired", "message": "too old resource version: 1 (2)"},
                Refusal(410, "Expired: too old resource version: 1 (2)"),
            ),
            (
                {"code": 429, "reason": "TooManyRequests", "details": {"retryAfterSeconds": 7}},
                Refusal(429, "TooManyRequests", 7),
            ),
            ({"status": "Failure"}, Refusal(0, "no reason given")),
        ],
    )
    def test_an_error_has_a_status_and_perhaps_a_time_to_come_back(self, status: Object, expected: Refusal) -> None:
        assert read("Service", "ERROR", {"kind": "Status", "apiVersion": "v1", **status}) == expected


class TestGarbage:
    @pytest.mark.parametrize(
        "text",
        [
            b"",
            b"{",
            b"[]",
            b"{}",
            b'{"type":"ADDED"}',
            b'{"type":"LOST","object":{}}',
            b'{"type":5,"object":{}}',
            b"\xff",
        ],
    )
    def test_a_line_that_is_no_event_is_refused(self, text: bytes) -> None:
        with pytest.raises(UnreadableReply):
            read_watch_line("Service", text)

    @pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"items":{}}', b'{"metadata":5}', b"<html>", b"\xff"])
    def test_a_body_that_is_no_list_is_refused(self, text: bytes) -> None:
        with pytest.raises(UnreadableReply):
            read_page("Service", text)

    @pytest.mark.parametrize(
        ("value", "problem"),
        [
            ({}, "no list: kind '', expected ServiceList"),
            ({"kind": "Status", "code": 500}, "no list: kind 'Status', expected ServiceList"),
            ({"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": None}, "no list: kind 'PodList'"),
            ({"metadata": {"resourceVersion": "9"}, "items": []}, "no list: kind ''"),
            ({"kind": "ServiceList", "items": []}, "no list: metadata.resourceVersion is missing"),
            ({"kind": "ServiceList", "metadata": {"resourceVersion": ""}}, "no list: metadata.resourceVersion"),
        ],
    )
    def test_json_that_is_not_the_list_that_was_asked_for_is_no_empty_list(self, value: Object, problem: str) -> None:
        with pytest.raises(UnreadableReply, match=f"^{problem}"):
            read_page("Service", json.dumps(value).encode())

    @given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
    def test_whatever_the_octets_are_they_are_read_or_refused(self, text: bytes) -> None:
        for attempt in (text, b'{"type":"ADDED","object":' + text + b"}"):
            try:
                read_watch_line("Pod", attempt)
            except UnreadableReply:
                continue


class TestPages:
    def test_a_page_has_its_objects_unread_the_version_and_where_to_go_on(self) -> None:
        metadata = {"resourceVersion": "9", "continue": "abc"}
        value = {"kind": "ServiceList", "metadata": metadata, "items": [service("web"), {"metadata": 5}]}
        page = read_page("Service", json.dumps(value).encode())
        assert (page.version, page.next_token, len(page.items)) == ("9", "abc", 2)
        first, second = (read_listed("Service", item) for item in page.items)
        assert isinstance(first, Listed)
        assert isinstance(second, Undecodable)

    def test_items_in_a_list_have_neither_kind_nor_version_of_the_api(self) -> None:
        bare = {key: part for key, part in node("n1", "z1", "10.9.0.1").items() if key not in ("kind", "apiVersion")}
        listed = {"kind": "NodeList", "metadata": {"resourceVersion": "9"}, "items": [bare]}
        page = read_page("Node", json.dumps(listed).encode())
        found = read_listed("Node", page.items[0])
        assert isinstance(found, Listed)
        assert (found.object.key.name, page.version, page.next_token) == ("n1", "9", "")

    @pytest.mark.parametrize("items", [None, []])
    def test_an_empty_list_may_be_null(self, items: list[Object] | None) -> None:
        listed = {"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": items}
        assert read_page("Pod", json.dumps(listed).encode()).items == ()

    def test_an_object_without_effect_on_answers_is_none(self) -> None:
        over, alive = (pod("p", "10.0.0.1", "n1", phase=phase) for phase in ("Failed", "Running"))
        assert read_listed("Pod", json.dumps(over).encode()) is None
        assert isinstance(read_listed("Pod", json.dumps(alive).encode()), Listed)
