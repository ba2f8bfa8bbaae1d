"""Warning Events of the whole program, and its requests to the API server in its metrics."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.api_objects import Object, endpoint_slice, pod, service, service_import
from tests.support.fake_api.server import FakeApi, running
from tests.support.program_with_fake_api import CLUSTER
from tests.support.server_process import Server, own_address, serving, until
from topodns.kube.lease import LEASE_SECONDS

BAD, MISPLACED = service("bad", keys="no such key"), service("misplaced", cluster_ip="10.96.0.9", keys="*")
WRITTEN = "topodns_service_events_total"

_COREFILE = """
cluster.local clusterset.local {
    bind HERE
    prometheus HERE:9153
    kubernetes cluster.local clusterset.local {
        endpoint URL
        multicluster clusterset.local
    }
    topology
}
"""


@contextmanager
def replica(directory: Path, name: str, api: FakeApi) -> Iterator[Server]:
    (directory / name).mkdir()
    with serving(directory / name, _COREFILE.replace("URL", api.url)) as server:
        yield server


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with running(CLUSTER, own_address()) as api:
        yield api


def all_of(api: FakeApi, kind: str) -> list[Object]:
    return [value for value in api.objects() if value["kind"] == kind]


def got(api: FakeApi) -> list[tuple[str, str]]:
    """Of each Event the Service and the reason."""
    return sorted((each["involvedObject"]["name"], each["reason"]) for each in all_of(api, "Event"))


def holder(api: FakeApi) -> str:
    (lease,) = all_of(api, "Lease")
    assert lease["metadata"]["namespace"] == "kube-system"
    return str(lease["spec"]["holderIdentity"])


def written(server: Server) -> float:
    return server.metric(WRITTEN, outcome="written")


def test_of_two_servers_one_reports_each_service_once_and_the_other_continues_when_it_is_killed(
    tmp_path: Path, api: FakeApi
) -> None:
    with replica(tmp_path, "one", api) as one, replica(tmp_path, "two", api) as two:
        api.put(BAD)
        until(lambda: got(api) == [("bad", "TopologyPolicyInvalid")], str(got(api)))
        first = holder(api)
        (event,) = all_of(api, "Event")
        for server in (one, two):
            assert event["message"] in server.wait_for_line("default/bad")
        assert event["reportingInstance"] == first
        until(lambda: written(one) + written(two) == 1, "one of them counts it")
        writer = one if written(one) else two
        writer.process.kill()
        writer.process.wait()
        api.put(MISPLACED)
        until(lambda: len(got(api)) == 2, str(got(api)), 3 * LEASE_SECONDS)
        assert got(api)[1] == ("misplaced", "TopologyPolicyMisplaced")
        assert holder(api) != first


def test_annotations_without_effect_are_reported_once_for_each_service_even_if_its_pods_have_them(
    tmp_path: Path, api: FakeApi
) -> None:
    on_service, on_pods = service("on-service"), service("on-pods")
    on_service["metadata"]["annotations"] = {"topodns.io/topologykeys": "*"}
    addresses = {f"10.1.1.{at}": "n1" for at in range(1, 4)}
    pods = [pod(f"on-pods-{at}", address, "n1") for at, address in enumerate(addresses)]
    for each in pods:
        each["metadata"]["annotations"] = {"topodns.io/topology-keys": "*"}
    with replica(tmp_path, "only", api) as server:
        for each in (endpoint_slice("on-pods", addresses), *pods, on_service, on_pods):
            api.put(each)
        reason = "TopologyAnnotationIgnored"
        until(lambda: got(api) == [("on-pods", reason), ("on-service", reason)], str(got(api)))
        for one in ("on-service: annotation 'topodns.io/topologykeys' is unknown", "on-pods: its Pods have"):
            assert len(server.lines(f"[WARNING] plugin/topology: Service default/{one}")) == 1


def test_invalid_keys_of_a_service_import_are_reported_on_it(tmp_path: Path, api: FakeApi) -> None:
    with replica(tmp_path, "only", api):
        far = service_import("far", [])
        far["metadata"]["annotations"] = {"topodns.io/topology-keys": "no such key"}
        far["spec"]["type"] = "Headless"
        api.put(far)
        until(lambda: got(api) == [("far", "TopologyAnnotationIgnored")], str(got(api)))
    (event,) = all_of(api, "Event")
    assert event["involvedObject"]["kind"] == "ServiceImport"
    assert event["message"].startswith("ServiceImport default/far: invalid topology keys: expected a label key or *")


def test_without_permission_one_line_says_so_and_names_are_answered(tmp_path: Path, api: FakeApi) -> None:
    for resource in ("leases", "events"):
        api.deny(resource)
    with replica(tmp_path, "only", api) as server:
        api.put(BAD)
        server.wait_for_line("no Event on a Service could be written: 403: leases is forbidden")
        api.put(MISPLACED)
        server.wait_for_line("default/misplaced")
        until(lambda: server.metric(WRITTEN, outcome="denied") == 1, "it is counted")
        assert len(server.lines("no Event")) == 1
        assert server.ask("front.default.svc.cluster.local A").data == ["10.96.0.1"]
    assert (api.requests.count("leases"), api.requests.count("events"), got(api)) == (1, 0, [])


def test_requests_are_counted_under_client_go_s_names(tmp_path: Path, api: FakeApi) -> None:
    host = api.url.removeprefix("http://")
    requests, durations = ("coredns_kubernetes_rest_client_" + name for name in ("requests_total", "request_duration"))
    with replica(tmp_path, "only", api) as server:
        api.put(BAD)
        until(lambda: got(api), "an Event")
        until(lambda: server.metric(requests, code="201", method="POST", host=host) == 2, "a Lease and an Event")
        assert server.metric(requests, code="404", method="GET", host=host) == 1
        asked = server.metric(requests, code="200", method="GET", host=host)
        assert asked >= 4
        assert server.metric(f"{durations}_seconds_count", verb="GET", host=host) == asked + 1
        api.down()
        until(lambda: server.metric(requests, code="<error>", method="GET", host=host) >= 1, server.output())
