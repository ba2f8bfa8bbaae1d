"""The state of a cluster for an audit, by the lists of an API server over HTTP."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.event_loops import either_loop, run
from tests.support.scripted_http_server import Seen, serving, text_response
from topodns.cluster.model import ObjectKey
from topodns.cluster.state import ClusterState
from topodns.inspect.findings import state_findings
from topodns.inspect.sources import listed_state
from topodns.kube.client.contract import ApiError
from topodns.plugins.topology.settings import TopologySettings

pytestmark = either_loop

ZONE = "topology.kubernetes.io/zone"
LISTS: Mapping[str, Any] = {
    "/api/v1/namespaces": [{"metadata": {"name": "shop"}}],
    "/api/v1/nodes": [{"metadata": {"name": "n1", "labels": {ZONE: "a"}}}, {"metadata": {"name": "n2"}}],
    "/api/v1/services": [
        {
            "metadata": {"name": "db", "namespace": "shop", "annotations": {"topodns.io/topology-keys": ZONE}},
            "spec": {"clusterIP": "None"},
        },
        {"metadata": {"name": "odd", "namespace": "shop"}, "spec": {"clusterIP": 7}},
    ],
    "/apis/discovery.k8s.io/v1/endpointslices": [
        {
            "metadata": {"name": "db-1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "db"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.0.0.1"], "nodeName": "n1"}],
        }
    ],
    "/api/v1/pods": [
        {
            "metadata": {"name": "db-0", "namespace": "shop"},
            "spec": {"nodeName": "n1"},
            "status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]},
        }
    ],
    "/apis/apps/v1/statefulsets": [{"metadata": {"name": "db", "namespace": "shop"}, "spec": {"serviceName": "db"}}],
}


IMPORTS, PROPERTIES = (
    "/apis/multicluster.x-k8s.io/v1alpha1/serviceimports",
    "/apis/about.k8s.io/v1alpha1/clusterproperties",
)
KINDS = {
    "namespaces": "Namespace", "nodes": "Node", "services": "Service", "endpointslices": "EndpointSlice",
    "pods": "Pod", "statefulsets": "StatefulSet", "serviceimports": "ServiceImport",
}  # fmt: skip


def page(path: str, items: object, token: str = "") -> bytes:
    metadata = {"resourceVersion": "7", "continue": token}
    kind = f"{KINDS[path.rpartition('/')[2]]}List"
    return text_response(200, json.dumps({"kind": kind, "metadata": metadata, "items": items}))


def refused(code: int) -> bytes:
    return text_response(code, json.dumps({"kind": "Status", "code": code, "message": f"code {code}"}))


def state_of(
    loop_name: str, directory: Path, refusals: Mapping[str, int], lists: Mapping[str, Any] = LISTS, expiring: int = 0
) -> tuple[ClusterState, list[str], list[str]]:
    """The state, the paths asked for, and the objects that cannot be read, where the API server refuses some paths.

    The first lists of Nodes, `expiring` of them, come in two pages of which the second one expires.
    """
    found: list[ClusterState] = []
    unread: list[str] = []
    asked: list[str] = []

    async def answer(seen: Seen, writer: asyncio.StreamWriter) -> None:
        path = urlsplit(seen.line.split()[1]).path
        asked.append(path)
        status = refusals.get(path, 200 if path in lists else 404)
        if path == "/api/v1/nodes" and asked.count(path) <= 2 * expiring:
            writer.write(refused(410) if "continue=next" in seen.line else page(path, lists[path][:1], "next"))
        else:
            writer.write(page(path, lists[path]) if status == 200 else refused(status))

    async def story() -> None:
        async with serving(answer) as served:
            file = directory / "config"
            clusters = [{"name": "c", "cluster": {"server": served.url}}]
            contexts = [{"name": "c", "context": {"cluster": "c"}}]
            file.write_text(json.dumps({"contexts": contexts, "clusters": clusters}))
            state, skipped = await listed_state(str(file), "c", TopologySettings())
            found.append(state)
            unread.extend(skipped)

    run(loop_name, story())
    return found[0], asked, unread


def test_a_cluster_is_listed_once_and_is_then_known_whole(
    loop_name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state, asked, (unread,) = state_of(loop_name, tmp_path, {})
    assert "odd" in unread  # a Service that cannot be decoded
    assert sorted(asked) == sorted([*LISTS, IMPORTS, PROPERTIES])  # of which the last two are not installed
    assert (state.synced, state.knows_all_pods, state.denied) == (True, True, set())
    assert sorted(state.nodes.by_name) == ["n1", "n2"]
    assert [str(key.name) for key in state.policies.all()] == ["db"]
    assert state.policies.governs(ObjectKey("shop", "db"))
    assert state.backends(ObjectKey("shop", "db")).has_ready
    assert len(caplog.messages) == 1
    assert "odd" in caplog.messages[0]  # a Service that cannot be decoded


def test_kinds_that_an_audit_can_do_without_may_be_denied(
    loop_name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    denied = {"/api/v1/pods": 403, "/api/v1/nodes": 403, "/apis/apps/v1/statefulsets": 404}
    state, _, _ = state_of(loop_name, tmp_path, denied)
    assert (state.synced, state.denied) == (True, {"Node", "Pod", "StatefulSet"})
    rule = 'the role needs apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"]'
    assert f"list pods: 403: code 403; {rule}" in caplog.messages


def test_keys_of_service_imports_are_audited_where_there_are_any(
    loop_name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = {"topodns.io/topology-keys": "a b"}
    imported = {"metadata": {"name": "far", "namespace": "shop", "annotations": keys}, "spec": {"type": "Headless"}}
    state, _, _ = state_of(loop_name, tmp_path, {}, {**LISTS, IMPORTS: [imported]})
    (found,) = [each for each in state_findings(state) if each is not None and each.kind == "import"]
    assert str(found).startswith("ServiceImport shop/far: invalid topology keys: expected a label key")
    state, _, _ = state_of(loop_name, tmp_path, {IMPORTS: 403})
    assert (state.synced, state.denied) == (True, {"ServiceImport"})
    assert any(message.startswith("list serviceimports.multicluster.x-k8s.io: 403") for message in caplog.messages)


def test_the_older_version_of_slices_is_read_where_there_is_no_other(loop_name: str, tmp_path: Path) -> None:
    v1, beta = (f"/apis/discovery.k8s.io/{version}/endpointslices" for version in ("v1", "v1beta1"))
    older = [{**LISTS[v1][0], "endpoints": [{"addresses": ["10.0.0.1"]}]}]
    lists = {path: items for path, items in LISTS.items() if path != v1} | {beta: older}
    state, asked, _ = state_of(loop_name, tmp_path, {}, lists)
    assert asked.index(v1) < asked.index(beta)
    assert state.backends(ObjectKey("shop", "db")).has_ready
    with pytest.raises(ApiError, match=r"list endpointslices\.discovery\.k8s\.io: 404: code 404"):
        state_of(loop_name, tmp_path, {beta: 404}, lists)


@pytest.mark.parametrize(("path", "status"), [("/api/v1/services", 403), ("/api/v1/pods", 500)])
def test_other_refusals_end_the_audit(loop_name: str, tmp_path: Path, path: str, status: int) -> None:
    with pytest.raises(ApiError, match=f"list {path.rpartition('/')[2]}: {status}: code {status}"):
        state_of(loop_name, tmp_path, {path: status})


def test_a_list_that_expires_between_two_pages_begins_anew(loop_name: str, tmp_path: Path) -> None:
    state, asked, _ = state_of(loop_name, tmp_path, {}, expiring=2)
    assert sorted(state.nodes.by_name) == ["n1", "n2"]
    assert asked.count("/api/v1/nodes") == 5


def test_a_list_that_always_expires_ends_the_audit(loop_name: str, tmp_path: Path) -> None:
    with pytest.raises(ApiError, match="list nodes: 410: code 410"):
        state_of(loop_name, tmp_path, {}, expiring=100)
