"""The address and the monitor of `ready`, and the answers of /ready."""

import pytest

from tests.support.corefile_settings import block_problem, only_block, settings
from tests.support.demo import Demo
from tests.support.generation_builder import assembly
from tests.support.model_builders import node, node_locator
from topodns.cluster.known_kinds import Restored
from topodns.cluster.model import Deleted, Kind, ObjectKey, Replaced, Upserted
from topodns.corefile.arguments import Address
from topodns.kube.informer.informer import ApiSource
from topodns.kube.informer.progress import Progress, Trouble
from topodns.net.http_server.messages import HttpReply, HttpRequest
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.kubernetes.watched_kinds import resources
from topodns.plugins.ready import LOCATORS_WAIT, Readiness, Ready, unready


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("ready", Ready(Address("", 8181), continuously=False)),
        ("ready 127.0.0.1:1", Ready(Address("127.0.0.1", 1))),
        ("ready {\n monitor until-ready\n}", Ready()),
        ("ready {\n monitor continuously\n}", Ready(continuously=True)),
    ],
)
def test_ready(lines: str, expected: Ready) -> None:
    assert only_block(lines).settings.get("ready") == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            "ready localhost",
            "2: 'ready' has the arguments 'localhost', expected one address HOST:PORT or :PORT at most",
        ),
        ("ready {\n monitor always\n}", "3: 'monitor' has 'always', expected until-ready or continuously"),
        ("ready {\n watch\n}", "3: unknown option 'watch' of 'ready', expected monitor"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"


OK = HttpReply(200, b"OK")
REQUEST = HttpRequest("/ready", {}, "192.0.2.1")


def unsynced() -> Cluster:
    """A cluster whose API server has sent nothing yet."""
    text = "cluster.local {\nkubernetes {\nendpoint http://127.0.0.1:9\n}\n}\n"
    (cluster,) = assembly("here").build(settings(text)).clusters
    assert isinstance(cluster.source, ApiSource)
    cluster.source.progress = tuple(Progress(each, 0.0) for each in resources(cluster.kubernetes, cluster.topology))
    return cluster


def sync(cluster: Cluster) -> None:
    for kind in cluster.state.needed:
        cluster.state.apply(Replaced(kind, ()), 0)


def test_until_ready_it_is_503_with_the_reasons_and_then_200_for_good() -> None:
    reasons = ["node-cache: waiting for the link"]
    cluster = unsynced()
    ready = Readiness(lambda: reasons).route([cluster], continuously=False)
    first = ready(REQUEST)
    assert (first.status, first.body.decode().splitlines()) == (503, [*reasons, *unready([cluster])])
    assert first.body.decode().splitlines()[1].startswith("kubernetes: waiting for Namespace")
    sync(cluster)
    assert ready(REQUEST) == HttpReply(503, b"node-cache: waiting for the link")
    reasons.clear()
    assert ready(REQUEST) == OK
    reasons.append("node-cache: waiting for the rules")
    assert ready(REQUEST) == OK


def test_continuously_it_is_503_again_when_there_is_a_reason_again() -> None:
    reasons: list[str] = []
    ready = Readiness(lambda: reasons).route([], continuously=True)
    assert ready(REQUEST) == OK
    reasons.append("node-cache: waiting for the rules")
    assert ready(REQUEST) == HttpReply(503, b"node-cache: waiting for the rules")
    reasons.clear()
    assert ready(REQUEST) == OK


def test_a_server_that_was_ready_is_so_after_a_reload_too() -> None:
    """Although the clusters of the new Corefile may not be synced: `startup_timeout` has passed."""
    readiness = Readiness(tuple)
    assert readiness.route([], continuously=False)(REQUEST) == OK
    assert readiness.route([unsynced()], continuously=False)(REQUEST) == OK
    assert readiness.route([unsynced()], continuously=True)(REQUEST).status == 503


def test_with_a_snapshot_it_is_200_and_says_of_when() -> None:
    cluster = unsynced()
    ready = Readiness(tuple).route([cluster], continuously=True)
    cluster.state.restore(Restored(cluster.state.needed, 1_764_244_800))
    reply = ready(REQUEST)
    assert reply.status == 200
    first, second = reply.body.decode().splitlines()
    assert first == "OK"
    assert second.startswith(
        "kubernetes: answers are from the snapshot of 2025-11-27T12:00:00Z: waiting for Namespace ("
    )
    sync(cluster)
    assert ready(REQUEST) == OK


def test_with_a_snapshot_that_lacks_a_kind_it_is_not_ready() -> None:
    cluster = unsynced()
    cluster.state.restore(Restored(cluster.state.needed - {"Service"}, 1_764_244_800))
    assert Readiness(tuple).route([cluster], continuously=True)(REQUEST).status == 503


WAITING = HttpReply(503, b"kubernetes: waiting for NodeLocators: 1 of 1 Nodes have none")


def by_locators() -> Cluster:
    """A cluster of one Node, whose clients are located by NodeLocators; there is none."""
    text = "cluster.local {\nkubernetes {\nendpoint http://127.0.0.1:9\n}\ntopology {\nlocate nodes nodelocator\n}\n}\n"
    (cluster,) = assembly("here").build(settings(text)).clusters
    sync(cluster)
    cluster.state.apply(Upserted(node("n1")), 0)
    return cluster


@pytest.mark.parametrize("continuously", [False, True])
def test_before_it_is_ready_first_it_waits_for_locators(continuously: bool) -> None:
    cluster = by_locators()
    ready = Readiness(tuple).route([cluster], continuously)
    assert ready(REQUEST) == WAITING
    cluster.state.apply(Upserted(node_locator("n1")), 0)
    assert ready(REQUEST) == OK
    cluster.state.apply(Deleted("NodeLocator", ObjectKey("", "n1"), 0), 0)
    assert ready(REQUEST) == OK


@pytest.mark.parametrize("continuously", [False, True])
def test_without_locators_it_is_ready_after_a_minute_and_logs_it(
    continuously: bool, caplog: pytest.LogCaptureFixture
) -> None:
    now, reasons = [0.0], ["node-cache: waiting for the link"]
    ready = Readiness(lambda: reasons, lambda: now[0]).route([by_locators()], continuously)
    assert ready(REQUEST).status == 503
    now[0] = 1000.0
    reasons.clear()
    assert ready(REQUEST) == WAITING
    now[0] += LOCATORS_WAIT - 0.1
    assert ready(REQUEST) == WAITING
    now[0] += 0.1
    assert [ready(REQUEST), ready(REQUEST)] == [OK, OK]
    line = "after 60 s ready without locators: kubernetes: waiting for NodeLocators: 1 of 1 Nodes have none"
    assert caplog.messages == [f"plugin/ready: {line}"]


@pytest.mark.parametrize("continuously", [False, True])
def test_a_server_that_stops_is_not_ready(continuously: bool) -> None:
    readiness = Readiness(tuple)
    ready = readiness.route([], continuously)
    assert ready(REQUEST) == OK
    readiness.stop()
    assert ready(REQUEST) == HttpReply(503, b"Shutting down")


def test_a_cluster_that_was_read_is_waited_for_no_longer() -> None:
    assert list(unready(Demo().generation.clusters)) == []


@pytest.mark.parametrize(
    ("kind", "needed", "grant"),
    [
        ("Node", True, 'nodes: {status}: no); the ClusterRole needs apiGroups: [""], resources: ["nodes"], verbs: '),
        ("Pod", True, 'pods: {status}: no); the ClusterRole needs apiGroups: [""], resources: ["pods"], verbs: '),
        ("Pod", False, ""),
    ],
)
@pytest.mark.parametrize("status", [403, 404])
def test_a_denied_kind_that_topology_needs_is_named_with_the_missing_permission(
    kind: Kind, needed: bool, grant: str, status: int
) -> None:
    locate = "nodes pods" if needed else "nodes"
    options = f"kubernetes {{\nendpoint http://127.0.0.1:9\npods verified\n}}\ntopology {{\nlocate {locate}\n}}"
    (cluster,) = assembly("here").build(settings(f"cluster.local {{\n{options}\n}}\n")).clusters
    assert isinstance(cluster.source, ApiSource)
    (resource,) = (each for each in resources(cluster.kubernetes, cluster.topology) if each.kind == kind)
    cluster.source.progress = (Progress(resource, 0.0, trouble=Trouble("watch", status, f"{status}: no")),)
    for each in cluster.state.needed - {kind}:
        cluster.state.apply(Replaced(each, ()), 0)
    cluster.state.do_without(kind)
    lines = list(unready([cluster]))
    assert len(lines) == needed
    if needed:
        said = f"kubernetes: topology lacks {kind} (cannot watch {grant.format(status=status)}"
        assert lines[0].startswith(said if status == 403 else said.partition(";")[0])
        assert ("ClusterRole" in lines[0]) is (status == 403)
    cluster.state.apply(Replaced(kind, ()), 0)
    assert list(unready([cluster])) == []
