"""The admin endpoints: their content, and the clients that may read it."""

import pytest

from tests.support.corefile_settings import settings
from tests.support.demo import Demo
from tests.support.generation_builder import assembly
from topodns.app.admin_endpoints import explain_route, unready
from topodns.cluster.model import Kind, Replaced
from topodns.kube.informer.informer import ApiSource
from topodns.kube.informer.sync_state import Progress, Trouble
from topodns.net.http_server.messages import HttpRequest
from topodns.plugins.kubernetes.watched_kinds import resources

QUESTION = {"name": "cache.shop.svc.cluster.local", "node": "node-a1"}


@pytest.fixture(scope="module")
def demo() -> Demo:
    return Demo()


@pytest.mark.parametrize(
    ("peer", "status"),
    [
        *((loopback, 200) for loopback in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1")),
        *((other, 403) for other in ("10.0.0.9", "2001:db8::1", "::1234", "::1.2.3.4", "::ffff:12.7.0.1", "")),
    ],
)
def test_explain_shows_locations_of_pods_to_loopback_only(demo: Demo, peer: str, status: int) -> None:
    assert explain_route(demo.generation)(HttpRequest("/explain", QUESTION, peer)).status == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:8181"}, 200),
        ({"host": "127.0.0.1:8181"}, 200),
        ({"host": "[::1]:8181"}, 200),
        ({"host": "127.0.0.1", "sec-fetch-site": "none"}, 200),  # typed into a browser
        ({"host": "127.0.0.1", "sec-fetch-site": "same-origin"}, 200),
        ({"host": "attacker.example:8181"}, 403),  # DNS rebinding
        ({"host": "127.0.0.1.attacker.example"}, 403),
        ({"host": "localhost.attacker.example"}, 403),
        ({"host": "10.0.0.9"}, 403),
        ({"host": "[::1"}, 403),
        ({"host": ""}, 403),
        ({"host": "localhost", "origin": "http://attacker.example"}, 403),
        ({"host": "localhost", "origin": "null"}, 403),
        ({"host": "localhost", "sec-fetch-site": "cross-site"}, 403),
        ({"host": "localhost", "sec-fetch-site": "same-site"}, 403),
    ],
)
def test_explain_answers_nothing_to_a_page_in_a_browser_on_loopback(
    demo: Demo, headers: dict[str, str], status: int
) -> None:
    reply = explain_route(demo.generation)(HttpRequest("/explain", QUESTION, "127.0.0.1", headers))
    assert (reply.status, b"node-a1" in reply.body) == (status, status == 200)


def test_a_question_that_cannot_be_explained_is_a_bad_request(demo: Demo) -> None:
    reply = explain_route(demo.generation)(
        HttpRequest("/explain", {"name": "example.org", "node": "node-a1"}, "127.0.0.1")
    )
    assert (reply.status, b"is below no origin" in reply.body) == (400, True)


def test_a_cluster_that_was_read_is_waited_for_no_longer(demo: Demo) -> None:
    assert unready(demo.generation.clusters) == []


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
    lines = unready([cluster])
    assert len(lines) == needed
    if needed:
        said = f"kubernetes: topology lacks {kind} (cannot watch {grant.format(status=status)}"
        assert lines[0].startswith(said if status == 403 else said.partition(";")[0])
        assert ("ClusterRole" in lines[0]) is (status == 403)
    cluster.state.apply(Replaced(kind, ()), 0)
    assert unready([cluster]) == []
