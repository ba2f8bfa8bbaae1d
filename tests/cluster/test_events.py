"""Warning Events on Services: with rbac-events.yaml beside rbac.yaml the replicas write each of them once, together."""

import subprocess
from collections.abc import Iterable

import pytest

from tests.cluster.conftest import COREFILE, Serve
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.objects import TOPOLOGY_KEYS, ZONE, headless
from tests.support.kube.server_pods import NAMESPACE, Server, granted, permissions
from tests.support.kube.waiting import becomes, eventually

ACCOUNT = "telling"
INVALID, MISPLACED = "TopologyPolicyInvalid", "TopologyPolicyMisplaced"
OUTCOMES = ("written", "present", "gone", "denied", "failed")


@pytest.fixture
def spotless(cluster: Cluster, place: Place) -> Place:
    """No Service of an earlier test has keys any more: the counts are about this namespace."""

    def with_keys() -> list[str]:
        found = (service["metadata"] for service in cluster.list("Service", ""))
        return [metadata["name"] for metadata in found if TOPOLOGY_KEYS in metadata.get("annotations", {})]

    becomes(with_keys, [])
    return place


def got(place: Place) -> dict[str, str]:
    """By Service: the reason of the one Event on it."""
    events = [
        event for event in place.cluster.list("Event", place.name) if event["involvedObject"]["kind"] == "Service"
    ]
    reasons = {event["involvedObject"]["name"]: event["reason"] for event in events}
    assert len(reasons) == len(events), events
    assert {(event["type"], event["count"]) for event in events} <= {("Warning", 1)}
    return reasons


def counted(servers: Iterable[Server]) -> dict[str, float]:
    servers = list(servers)
    return {
        outcome: sum(server.metric("topodns_service_events_total", outcome=outcome) for server in servers)
        for outcome in OUTCOMES
    }


def described(place: Place, service: str) -> list[list[str]]:
    """The Events that `kubectl describe` shows: type, reason, age, from, message."""
    words = place.cluster.lab.kubectl("--namespace", place.name, "describe", "service", service)
    run = subprocess.run(words, check=True, capture_output=True, text=True)
    return [line.split(maxsplit=4) for line in run.stdout.partition("\nEvents:")[2].splitlines() if "Topology" in line]


def test_two_replicas_together_report_each_service_once(cluster: Cluster, serve: Serve, spotless: Place) -> None:
    """The one that did not write becomes the Lease's next holder, tries, and finds that all has been said."""
    with (
        granted(cluster, permissions("rbac.yaml", "rbac-events.yaml", account=ACCOUNT)),
        serve("telling-1", COREFILE, account=ACCOUNT) as one,
        serve("telling-2", COREFILE, node="node3", account=ACCOUNT) as two,
    ):
        spotless.create(headless("bad", "no such key"), headless("virtual", ZONE, clusterIP="10.96.77.2"))
        becomes(lambda: got(spotless), {"bad": INVALID, "virtual": MISPLACED})
        lease = cluster.read("Lease", NAMESPACE, "topodns-events")
        assert lease is not None
        assert lease["spec"]["holderIdentity"].startswith(("telling-1_", "telling-2_"))
        becomes(lambda: counted([one, two]), dict.fromkeys(OUTCOMES, 0.0) | {"written": 2, "present": 2})
        assert got(spotless) == {"bad": INVALID, "virtual": MISPLACED}
        for server in (one, two):
            assert server.metric("topodns_policy_invalid", namespace=spotless.name, service="bad") == 1
        ((kind, reason, _, source, message),) = described(spotless, "bad")
        assert (kind, reason, source) == ("Warning", INVALID, "topodns")
        assert f"Service {spotless.name}/bad: {message}" in one.logs()
        assert [words[1] for words in described(spotless, "virtual")] == [MISPLACED]


def test_without_the_permission_the_log_and_metrics_have_it_and_no_event_is_there(
    serve: Serve, spotless: Place
) -> None:
    spotless.create(headless("bad", "no such key"))
    with serve("silent", COREFILE) as server:
        becomes(lambda: counted([server]), dict.fromkeys(OUTCOMES, 0.0) | {"denied": 1})
        assert server.metric("topodns_policy_invalid", namespace=spotless.name, service="bad") == 1
        eventually(lambda: "no Event on a Service could be written: 403" in server.logs(), "why there is none")
        assert f"Service {spotless.name}/bad: " in server.logs()
        assert got(spotless) == {}
