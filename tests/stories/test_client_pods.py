"""Answers by the client's Pod, of a server alone and behind a node cache, which names its clients to the server."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import yaml

from tests.support.client_pods_scene import pod_object
from tests.support.dns_messages import Opt
from tests.support.node_cache_process import node_cache
from tests.support.program_with_fake_api import IN_A
from tests.support.server_process import Server, serving, until

WEB, API, LOG = "127.62.0.1", "127.62.0.2", "127.62.0.3"  # Pods of the namespaces shop, shop and bank
PODS = {"shop/web": WEB, "shop/api": API, "bank/log": LOG}
NAME = "web.shop.svc.cluster.local. A"
FORMAT = '"pod={/kubernetes/client-namespace}/{/kubernetes/client-pod-name} {name} {rcode}"'
COREFILE = """
.:0 {
    bind HERE
    errors
    metadata
    kubernetes cluster.local {
        manifests cluster
        ttl 30
    }
    topology
    push
    DIRECTIVES
}
"""
FOR_OTHERS = """
.:0 {
    bind HERE
    template IN A cluster.local {
        answer "{{.Name}} 30 IN A 192.0.2.1"
    }
}
"""
ACL = "acl {\n        allow namespace shop\n        block\n    }"


def write_pods(directory: Path, pods: dict[str, str]) -> None:
    node = {"addresses": [{"type": "InternalIP", "address": IN_A}]}
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": node},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"clusterIP": "10.96.0.1", "ports": [{"port": 80}]},
        },
        *(pod_object(name, address, {}, node="n1") for name, address in pods.items()),
    ]
    (directory / "cluster").mkdir(exist_ok=True)
    written = directory / "cluster" / ".new"
    written.write_text(yaml.safe_dump_all(objects))
    written.rename(directory / "cluster" / "cluster.yaml")


@contextmanager
def cluster_dns(directory: Path, directives: str) -> Iterator[Server]:
    write_pods(directory, PODS)
    with serving(directory, COREFILE.replace("DIRECTIVES", directives)) as server:
        yield server


def rcodes(server: Server, *pods: str) -> list[str]:
    return [server.ask(NAME, pod).rcode for pod in pods]


def test_acl_goes_by_the_client_s_namespace_and_a_moved_address_counts_at_once(tmp_path: Path) -> None:
    with cluster_dns(tmp_path, ACL) as server:
        for _ in range(3):
            assert rcodes(server, WEB, API, LOG) == ["NOERROR", "NOERROR", "REFUSED"]
        write_pods(tmp_path, {"bank/web": WEB, "shop/api": API, "shop/log": LOG})
        until(lambda: rcodes(server, WEB, API, LOG) == ["REFUSED", "NOERROR", "NOERROR"], "the Pods that changed")


def test_behind_a_node_cache_each_client_gets_its_own_namespace_s_answer(tmp_path: Path) -> None:
    with cluster_dns(tmp_path, ACL) as server, node_cache(tmp_path / "node", server) as cache:
        for _ in range(5):
            assert rcodes(cache, LOG, WEB, API) == ["REFUSED", "NOERROR", "NOERROR"]
        assert cache.ask(NAME, WEB).data == ["10.96.0.1"]
        assert cache.ask(NAME, WEB).options is None
        assert cache.ask(NAME, WEB, tcp=True).data == ["10.96.0.1"]
        write_pods(tmp_path, {"bank/web": WEB, "shop/api": API, "shop/log": LOG})
        until(partial(_are_moved, cache), "the Pods that changed, after a few seconds")


def _are_moved(cache: Server) -> bool:
    return rcodes(cache, LOG, WEB, API) == ["NOERROR", "REFUSED", "NOERROR"]


def test_a_view_by_namespace_behind_a_node_cache(tmp_path: Path) -> None:
    view = "view shop {\n        expr metadata('kubernetes/client-namespace') == 'shop'\n    }"
    write_pods(tmp_path, PODS)
    corefile = COREFILE.replace("DIRECTIVES", view) + FOR_OTHERS
    with serving(tmp_path, corefile) as server, node_cache(tmp_path / "node", server) as cache:
        for asked in (server, cache, cache):
            answers = [asked.ask(NAME, pod).data for pod in (LOG, WEB, API, LOG)]
            assert answers == [["192.0.2.1"], ["10.96.0.1"], ["10.96.0.1"], ["192.0.2.1"]]


def test_the_log_names_the_pod_behind_a_node_cache_and_answers_stay_shared(tmp_path: Path) -> None:
    with cluster_dns(tmp_path, f"log . {FORMAT}") as server, node_cache(tmp_path / "node", server) as cache:
        for pod in (WEB, LOG, API):
            assert cache.ask(NAME, pod).data == ["10.96.0.1"]
        server.wait_for_line("pod=shop/web web.shop.svc.cluster.local. NOERROR")
        named = [line for line in server.lines("web.shop") if "REFUSED" not in line]
        assert named == ["[INFO] pod=shop/web web.shop.svc.cluster.local. NOERROR"]
        cache.ask("no.shop.svc.cluster.local. A", LOG)
        server.wait_for_line("pod=bank/log no.shop.svc.cluster.local. NXDOMAIN")


def test_a_pod_that_poses_as_a_node_cache_is_answered_as_itself(tmp_path: Path) -> None:
    posing = Opt(options=((65518, b"n1"), (65519, ip_address(WEB).packed)))
    with cluster_dns(tmp_path, ACL) as server, node_cache(tmp_path / "node", server) as cache:
        for asked in (server, cache):
            assert [asked.ask(NAME, LOG, posing).rcode for _ in range(3)] == ["REFUSED"] * 3
        assert server.ask(NAME, IN_A, posing).rcode == "NOERROR"  # the Node's own address may
