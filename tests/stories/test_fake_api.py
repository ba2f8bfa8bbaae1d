"""The fake API server of the other stories behaves as a real one over HTTP, faults included."""

import gzip
import http.client
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from tests.support.api_objects import Object, endpoint_slice, pod, service, service_import
from tests.support.event_loops import PATIENCE
from tests.support.fake_api.server import FakeApi, running
from tests.support.server_process import ROOT
from tests.support.synthetic_clusters import Cluster

SERVICES, SLICES, PODS = "/api/v1/services", "/apis/discovery.k8s.io/v1/endpointslices", "/api/v1/pods"
IMPORTS = "/apis/multicluster.x-k8s.io/v1alpha1/serviceimports"
WATCH_LIST = {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
BOOKMARKS = {"allowWatchBookmarks": "true"}
NO_HEADERS: Mapping[str, str] = {}


class Caller:
    """One connection to a fake API server, closed by `opened`."""

    def __init__(self, url: str, opened: ExitStack) -> None:
        self._url, self._opened = url, opened
        parts = urlsplit(url)
        assert parts.hostname is not None
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE)
        opened.callback(self.connection.close)

    def another(self) -> "Caller":
        return Caller(self._url, self._opened)

    def response(
        self,
        path: str,
        query: dict[str, str] | None = None,
        method: str = "GET",
        body: Object | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> http.client.HTTPResponse:
        text = json.dumps(body) if body is not None else None
        self.connection.request(method, f"{path}?{urlencode(query or {})}", text, dict(headers))
        return self.connection.getresponse()

    def __call__(
        self,
        path: str,
        query: dict[str, str] | None = None,
        method: str = "GET",
        body: Object | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> tuple[int, Any]:
        """Status and body."""
        response = self.response(path, query, method, body, headers)
        return response.status, json.loads(response.read())

    def watch(self, path: str, **query: str) -> Iterator[Object]:
        """The events of a watch, one by one, to its end."""
        response = self.response(path, {"watch": "true", **query})
        assert response.status == 200
        return map(json.loads, iter(response.readline, b""))


@contextmanager
def serving(*objects: Object, cluster: Cluster | None = None) -> Iterator[tuple[FakeApi, Caller]]:
    with running(objects) as api, ExitStack() as opened:
        if cluster is not None:
            api.generate(cluster)
        yield api, Caller(api.url, opened)


def names(listed: Object) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


def said(event: Object) -> str:
    """`TYPE name`, or for an object without a name `TYPE` alone."""
    return f"{event['type']} {event['object']['metadata'].get('name', '')}".strip()


def test_a_list_comes_in_pages_of_one_moment() -> None:
    with serving(*(service(f"s{number}") for number in range(5))) as (api, ask):
        status, first = ask(SERVICES, {"limit": "2"})
        assert (status, first["kind"], names(first)) == (200, "ServiceList", ["s0", "s1"])
        assert first["metadata"]["remainingItemCount"] == 3
        assert "kind" not in first["items"][0]
        api.put(service("s9"))
        _, second = ask(SERVICES, {"limit": "2", "continue": first["metadata"]["continue"]})
        _, third = ask(SERVICES, {"limit": "2", "continue": second["metadata"]["continue"]})
        assert names(second) + names(third) == ["s2", "s3", "s4"]
        assert {page["metadata"]["resourceVersion"] for page in (first, second, third)} == {"1005"}
        assert "continue" not in third["metadata"]
        assert names(ask(SERVICES, {"limit": "2", "resourceVersion": "0"})[1]) == ["s0", "s1", "s2", "s3", "s4", "s9"]


def test_a_page_of_before_a_compaction_is_gone() -> None:
    with serving(service("a"), service("b")) as (api, ask):
        token = ask(SERVICES, {"limit": "1"})[1]["metadata"]["continue"]
        api.gone("services")
        status, body = ask(SERVICES, {"limit": "1", "continue": token})
        assert (status, body["reason"]) == (410, "Expired")


def test_a_list_of_a_custom_resource_ends_with_its_metadata() -> None:
    with serving(service_import("a", ["10.0.0.1"])) as (_, ask):
        _, listed = ask(IMPORTS)
        assert list(listed) == ["apiVersion", "items", "kind", "metadata"]
        assert listed["items"][0]["kind"] == "ServiceImport"


def test_lists_are_narrowed_by_namespace_and_selectors() -> None:
    objects = [
        endpoint_slice("a", {"10.0.0.1": "n1"}),
        endpoint_slice("b", {"10.0.0.2": "n1"}, "team"),
        pod("old", "10.0.0.3", "n1", phase="Succeeded"),
        pod("new", "10.0.0.3", "n2"),
    ]
    with serving(*objects) as (_, ask):
        assert names(ask("/apis/discovery.k8s.io/v1/namespaces/team/endpointslices")[1]) == ["b-1"]
        assert names(ask(SLICES, {"labelSelector": "kubernetes.io/service-name in (a,c)"})[1]) == ["a-1"]
        assert names(ask(SLICES, {"labelSelector": "kubernetes.io/service-name!=a"})[1]) == ["b-1"]
        assert names(ask(PODS, {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"})[1]) == ["new"]
        assert names(ask(PODS, {"fieldSelector": "spec.nodeName=n1"})[1]) == ["old"]


def test_a_watch_goes_on_from_where_a_list_was() -> None:
    one, other = service("one"), service("other")
    with serving(one) as (api, ask):
        revision = ask(SERVICES)[1]["metadata"]["resourceVersion"]
        api.put(one, other)
        events = ask.watch(SERVICES, resourceVersion=revision, **BOOKMARKS)
        assert [said(next(events)) for _ in range(2)] == ["MODIFIED one", "ADDED other"]
        api.delete(one)
        api.send_bookmark("services")
        api.end_watches()
        assert list(map(said, events)) == ["DELETED one", "BOOKMARK"]
        assert [asked.verb for asked in api.requests.all] == ["list", "watch"]


def test_a_watch_without_a_resource_version_begins_with_the_existing_objects() -> None:
    with serving(service("a"), service("b")) as (_, ask):
        events = ask.watch(SERVICES)
        assert [said(next(events)) for _ in range(2)] == ["ADDED a", "ADDED b"]


def test_a_watch_with_a_selector_sees_objects_come_and_go_through_it() -> None:
    with serving(pod("p", "10.0.0.1", "n1")) as (api, ask):
        events = ask.watch(PODS, resourceVersion="1001", fieldSelector="status.phase!=Succeeded")
        api.put(pod("p", "10.0.0.1", "n1", phase="Succeeded"))
        assert said(next(events)) == "DELETED p"
        api.put(pod("p", "10.0.0.2", "n1"))
        assert said(next(events)) == "ADDED p"


def test_a_watch_ends_by_itself_when_its_time_is_over_with_a_bookmark() -> None:
    with serving(service("a")) as (_, ask):
        events = list(ask.watch(SERVICES, resourceVersion="1001", timeoutSeconds="1", **BOOKMARKS))
        assert [said(event) for event in events] == ["BOOKMARK"]
        assert events[0]["object"]["metadata"]["resourceVersion"] == "1001"
        assert ask(SERVICES)[0] == 200  # on the same connection


def test_a_watch_list_ends_its_initial_events_with_a_marked_bookmark() -> None:
    with serving(service("a"), service("b")) as (api, ask):
        events = ask.watch(SERVICES, **WATCH_LIST, **BOOKMARKS)
        assert [said(next(events)) for _ in range(2)] == ["ADDED a", "ADDED b"]
        mark = next(events)
        assert (said(mark), mark["object"]["metadata"]["annotations"]) == (
            "BOOKMARK",
            {"k8s.io/initial-events-end": "true"},
        )
        api.put(service("c"))
        assert said(next(events)) == "ADDED c"


def test_an_older_server_refuses_a_watch_list_or_knows_nothing_of_it() -> None:
    with serving(service("a")) as (api, ask):
        api.refuse_watch_list()
        assert ask(SERVICES, WATCH_LIST)[0] == 422
        api.ignore_watch_list()
        events = ask.watch(SERVICES, **WATCH_LIST, **BOOKMARKS)
        assert said(next(events)) == "ADDED a"
        api.end_watches()
        assert list(events) == []


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"sendInitialEvents": "true"}, 422),
        ({"watch": "true", "sendInitialEvents": "true"}, 422),
        ({"watch": "true", "resourceVersionMatch": "NotOlderThan", "resourceVersion": "5"}, 422),
        ({"resourceVersionMatch": "NotOlderThan"}, 422),
        ({"resourceVersion": "next"}, 400),
        ({"resourceVersion": "9999", "resourceVersionMatch": "NotOlderThan"}, 504),
        ({"watch": "true", "resourceVersion": "9999"}, 504),
        ({"continue": "nonsense"}, 410),
    ],
)
def test_a_request_that_kubernetes_refuses_is_refused(query: dict[str, str], status: int) -> None:
    with serving() as (_, ask):
        assert ask(SERVICES, query)[0] == status


@pytest.mark.parametrize("as_status", [True, False])
def test_gone_ends_the_watches_and_keeps_new_ones_from_going_on(as_status: bool) -> None:
    with serving(service("a")) as (api, ask):
        events = ask.watch(SERVICES, resourceVersion="1001")
        api.gone("services", as_status)
        (error,) = events
        assert (error["type"], error["object"]["code"]) == ("ERROR", 410)
        response = ask.response(SERVICES, {"watch": "true", "resourceVersion": "1001"})
        body = json.loads(response.read())
        assert response.status == (410 if as_status else 200)
        assert (body if as_status else body["object"])["code"] == 410


def test_a_lost_event_is_seen_by_lists_alone() -> None:
    with serving(service("a")) as (api, ask):
        events = ask.watch(SERVICES, resourceVersion="1001")
        api.lose_next("services")
        api.put(service("b"), service("c"))
        assert said(next(events)) == "ADDED c"
        assert said(next(ask.another().watch(SERVICES, resourceVersion="1001"))) == "ADDED c"
        assert names(ask.another()(SERVICES)[1]) == ["a", "b", "c"]


def test_a_stalled_watch_says_nothing_while_a_new_one_does() -> None:
    with serving(service("a")) as (api, ask):
        events = ask.watch(SERVICES, resourceVersion="1001", timeoutSeconds="1")
        api.stall("services")
        api.put(service("b"))
        ask.connection.sock.settimeout(1.5)
        with pytest.raises(TimeoutError):
            next(events)
        assert said(next(ask.another().watch(SERVICES, resourceVersion="1001"))) == "ADDED b"


def test_a_server_that_is_behind_lists_its_older_state_and_refuses_newer_versions() -> None:
    newer = {"resourceVersion": "1002", "resourceVersionMatch": "NotOlderThan"}
    with serving(service("a")) as (api, ask):
        api.freeze("services")
        api.put(service("b"))
        cached = ask(SERVICES, {"resourceVersion": "0"})[1]
        assert (names(cached), cached["metadata"]["resourceVersion"]) == (["a"], "1001")
        status, body = ask(SERVICES, newer)
        assert (status, body["details"]["causes"][0]["reason"]) == (504, "ResourceVersionTooLarge")
        assert names(ask(SERVICES)[1]) == ["a", "b"]
        api.freeze("services", restored=True)
        api.put(service("c"))
        assert names(ask(SERVICES)[1]) == ["a", "b"]
        api.heal()
        assert names(ask(SERVICES, newer)[1]) == ["a", "b", "c"]


def test_raw_octets_and_made_up_events_reach_open_watches_only() -> None:
    with serving(service("a")) as (api, ask):
        response = ask.response(SERVICES, {"watch": "true", "resourceVersion": "1001"})
        api.send_event("MODIFIED", service("a", cluster_ip="10.0.0.1"))
        api.send_raw("services", b"%%%\n")
        assert json.loads(response.readline())["object"]["spec"]["clusterIP"] == "10.0.0.1"
        assert response.readline() == b"%%%\n"
        assert ask.another()(SERVICES)[1]["items"][0]["spec"]["clusterIP"] == "None"


def test_refusals_are_those_of_kubernetes() -> None:
    with serving(service("a")) as (api, ask):
        api.deny("services", "watch")
        status, body = ask(SERVICES, {"watch": "true"})
        assert (status, body["reason"]) == (403, "Forbidden")
        assert 'cannot watch resource "services" in API group "" at the cluster scope' in body["message"]
        assert ask(SERVICES)[0] == 200
        api.busy(7)
        response = ask.response(SERVICES)
        assert (response.status, response.headers["Retry-After"], bool(response.read())) == (429, "7", True)
        api.heal()
        api.error()
        assert ask(SERVICES)[0] == 500
        api.absent("services")
        assert ask(SERVICES)[0] == 404
        api.heal()
        api.require_token("new")
        assert ask(SERVICES, headers={"Authorization": "Bearer old"})[0] == 401
        assert ask(SERVICES, headers={"Authorization": "Bearer new"})[0] == 200
        assert ask("/apis/example.com/v1/things")[0] == 404


def test_connections_can_be_cut_left_waiting_and_turned_away() -> None:
    with serving(service("a")) as (api, ask):
        assert ask(SERVICES)[0] == 200
        api.cut()
        with pytest.raises(ConnectionResetError):
            ask(SERVICES)
        api.down()
        with pytest.raises(ConnectionRefusedError):
            ask.another()(SERVICES)
        api.up()
        api.hole()
        waiting = ask.another()
        waiting.connection.timeout = 0.2
        with pytest.raises(TimeoutError):
            waiting(SERVICES)
        waiting.connection.close()
        api.heal()
        assert ask.another()(SERVICES)[0] == 200


def test_a_torn_list_ends_with_its_connection() -> None:
    with serving(service("a"), service("b")) as (api, ask):
        api.tear_lists(1)
        response = ask.response(SERVICES)
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            response.read()
        assert ask.another()(SERVICES)[0] == 200


def test_objects_are_written_with_the_conflicts_that_kubernetes_sees() -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    lease = {"metadata": {"name": "topodns"}, "spec": {"holderIdentity": "a"}}
    with serving() as (api, ask):
        assert ask(f"{leases}/topodns")[0] == 404
        status, made = ask(leases, method="POST", body=lease)
        assert (status, made["kind"], made["metadata"]["namespace"]) == (201, "Lease", "kube-system")
        assert ask(leases, method="POST", body=lease)[0] == 409
        status, _ = ask(f"{leases}/topodns", method="PUT", body={**made, "spec": {"holderIdentity": "b"}})
        assert status == 200
        status, body = ask(f"{leases}/topodns", method="PUT", body={**made, "spec": {"holderIdentity": "c"}})
        assert (status, body["reason"]) == (409, "Conflict")
        assert ask(f"{leases}/topodns")[1]["spec"] == {"holderIdentity": "b"}
        event = {"metadata": {"generateName": "web."}, "reason": "TopologyInvalid", "type": "Warning"}
        status, written = ask("/api/v1/namespaces/default/events", method="POST", body=event)
        assert (status, written["metadata"]["name"][:4]) == (201, "web.")
        path = f"/api/v1/namespaces/default/events/{written['metadata']['name']}"
        assert ask(path, method="PATCH", body={"count": 2})[1]["count"] == 2
        assert api.requests.count("events", "patch") == 1


def test_large_lists_are_compressed_for_clients_that_accept_it() -> None:
    with serving(cluster=Cluster(nodes=20, services=100, endpoints=400, pods=400)) as (_, ask):
        response = ask.response(PODS, headers={"Accept-Encoding": "gzip"})
        assert response.headers["Content-Encoding"] == "gzip"
        assert len(json.loads(gzip.decompress(response.read()))["items"]) == 400
        assert (
            ask.response(PODS, {"limit": "5"}, headers={"Accept-Encoding": "gzip"}).headers["Content-Encoding"] is None
        )


def test_a_synthetic_cluster_fits_together() -> None:
    with serving(cluster=Cluster(nodes=40, services=120, endpoints=1000, pods=1000)) as (api, ask):
        addresses = {item["status"]["podIP"]: item["spec"]["nodeName"] for item in ask(PODS)[1]["items"]}
        slices = ask(SLICES)[1]["items"]
        backends = {endpoint["addresses"][0]: endpoint["nodeName"] for item in slices for endpoint in item["endpoints"]}
        assert backends == addresses
        assert len(addresses) == 1000
        assert max(len(item["endpoints"]) for item in slices) == 100
        owners = {item["metadata"]["labels"]["kubernetes.io/service-name"] for item in slices}
        assert owners == set(names(ask(SERVICES)[1]))
        assert {item["metadata"]["resourceVersion"] for item in slices} == {"1000"}
        api.touch("endpointslices", 3)
        events = ask.watch(SLICES, resourceVersion="1000")
        assert [next(events)["type"] for _ in range(3)] == ["MODIFIED"] * 3


def test_it_runs_as_a_program_whose_faults_are_at_hand_over_http(tmp_path: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [service("a"), endpoint_slice("a", {"10.0.0.1": "n1"})]}
    pods = {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "p", "namespace": "default"}}]}
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(f"{json.dumps(listed)}\n---\n{json.dumps(pods)}\n")
    command = (sys.executable, "-m", "tests.support.fake_api", "--cluster", str(cluster))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as program, ExitStack() as opened:
        try:
            assert program.stdout is not None
            ask = Caller(program.stdout.readline().strip(), opened)
            assert (names(ask(SLICES)[1]), names(ask("/api/v1/pods")[1])) == (["a-1"], ["p"])
            assert ask("/control/deny", method="POST", body={"resource": "services"}) == (200, None)
            assert (ask(SERVICES)[0], ask(SLICES)[0]) == (403, 200)
            assert ask("/control/watches", method="POST", body={"resource": "services"}) == (200, 0)
        finally:
            program.terminate()
