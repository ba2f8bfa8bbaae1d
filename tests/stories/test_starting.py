"""Faults that keep the program from starting, and faults that it starts in spite of."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dns_messages import Opt
from tests.support.server_process import Server, own_address, serving, topodns

WHOAMI = ". {\n    bind HERE\n    whoami\n}\n"


@pytest.fixture
def corefile(tmp_path: Path) -> Path:
    return tmp_path / "Corefile"


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM], ids=["udp", "tcp"])
def test_a_port_in_use_is_named_with_its_address(corefile: Path, kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind((own_address(), 0))
        host, port = taken.getsockname()
        corefile.write_text(WHOAMI.replace("HERE", host))
        ended = topodns("-conf", str(corefile), "-dns.port", str(port))
    transport = "udp" if kind == socket.SOCK_DGRAM else "tcp"
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"listen {transport} {host}:{port}: address already in use\n"


@pytest.mark.parametrize("directive", ["health", "ready", "prometheus"])
def test_an_admin_port_in_use_is_named_with_its_directive_and_address(corefile: Path, directive: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as taken:
        taken.bind((own_address(), 0))
        taken.listen()
        host, port = taken.getsockname()
        corefile.write_text(f". {{\n    bind {host}\n    whoami\n    {directive} {host}:{port}\n}}\n")
        ended = topodns("-conf", str(corefile), "-dns.port", "0")
    assert (ended.returncode, ended.stdout) == (1, "")
    problem = f"{corefile}:4: '{directive}' cannot listen on {host}:{port}: address already in use"
    assert ended.stderr == f"{problem}\n"


def test_an_admin_address_with_a_name_that_does_not_exist_is_named_with_its_directive(corefile: Path) -> None:
    corefile.write_text(f". {{\n    bind {own_address()}\n    whoami\n    health no-such-name.invalid:5380\n}}\n")
    ended = topodns("-conf", str(corefile), "-dns.port", "0")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"{corefile}:4: 'health' cannot listen on no-such-name.invalid:5380: ")
    assert "unknown error" not in ended.stderr


def test_a_faulty_corefile_is_one_line_with_its_place(corefile: Path) -> None:
    corefile.write_text(". {\n    kubernetes {\n        manifests nowhere\n    }\n}\n")
    ended = topodns("-conf", str(corefile), "-dns.port", "0")
    assert (ended.returncode, ended.stdout) == (1, "")
    (problem,) = ended.stderr.splitlines()
    assert problem.startswith(f"{corefile}:3: ")
    assert "nowhere" in problem


def test_a_corefile_that_is_not_there_is_named(tmp_path: Path) -> None:
    ended = topodns("-conf", str(tmp_path / "none"))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"{tmp_path}/none: ")
    assert len(ended.stderr.splitlines()) == 1


def test_a_pid_file_that_cannot_be_written_keeps_it_from_serving(corefile: Path, tmp_path: Path) -> None:
    corefile.write_text(WHOAMI.replace("HERE", own_address()))
    ended = topodns("-conf", str(corefile), "-dns.port", "0", "-pidfile", str(tmp_path / "none" / "pid"))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert str(tmp_path / "none" / "pid") in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_wrong_usage_has_status_2_and_a_message_on_stderr() -> None:
    ended = topodns("-no-such-flag")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("usage: topodns")


COREFILE = """
. {
    bind HERE
    prometheus HERE:9153
    ready HERE:8181
    kubernetes cluster.local {
        manifests cluster.yaml
    }
    topology {
        locate nodes
        %s
    }
}
"""
CLUSTER = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- apiVersion: v1
  kind: Node
  metadata: {name: one, labels: {rack: "1"}}
  status: {addresses: [{type: InternalIP, address: 127.30.0.1}]}
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: wrong, annotations: {topodns.io/topology-keys: "rack, not a key"}}
  spec: {clusterIP: None}
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {namespace: shop, name: wrong-1, labels: {kubernetes.io/service-name: wrong}}
  addressType: IPv4
  endpoints: [{addresses: [127.30.1.1], nodeName: one}, {addresses: [127.30.2.1], nodeName: two}]
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: broken}
  spec: {clusterIP: 10.96.0.300}
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop}
  spec: {clusterIP: 10.96.0.30}
- {apiVersion: v1, kind: Service, metadata: {namespace: shop, name: good}, spec: {clusterIP: 10.96.0.31}}
"""
BOTH = """\
- apiVersion: v1
  kind: Service
  metadata:
    namespace: shop
    name: both
    annotations: {topodns.io/topology-keys: rack, openyurt.io/topologyKeys: kubernetes.io/hostname}
  spec: {clusterIP: None}
"""
WRONG = "wrong.shop.svc.cluster.local A"


@pytest.fixture
def ignoring(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "cluster.yaml").write_text(CLUSTER + BOTH)
    with serving(tmp_path, COREFILE % "on_invalid ignore") as server:
        yield server


def test_malformed_objects_are_skipped_named_and_counted(ignoring: Server) -> None:
    lines = ignoring.lines("skipped")
    assert [line.split("cluster.yaml:")[1].split(":")[0] for line in lines] == ["19", "23"]
    assert "shop/broken" in lines[0]
    assert ignoring.metric("topodns_manifest_objects_skipped") == 2
    assert ignoring.ask("good.shop.svc.cluster.local A").data == ["10.96.0.31"]
    assert ignoring.ask("broken.shop.svc.cluster.local A").rcode == "NXDOMAIN"
    assert ignoring.get("/ready", 8181) == (200, "OK")


def test_an_invalid_policy_is_ignored_and_logged_in_one_line_with_service_and_rule(
    ignoring: Server, tmp_path: Path
) -> None:
    line = ignoring.wait_for_line("shop/wrong")
    assert line.startswith(f"[WARNING] plugin/topology: {tmp_path}/cluster.yaml:10: Service shop/wrong: annotation ")
    assert "expected a label key or *, found 'not a key'" in line
    assert ignoring.metric("topodns_policy_invalid", namespace="shop", service="wrong") == 1
    assert ignoring.metric("topodns_policies", source="annotation", valid="false") == 1
    assert ignoring.ask(WRONG, "127.30.0.1").data == ["127.30.1.1", "127.30.2.1"]
    assert ignoring.metric("topodns_selections_total", outcome="invalid") == 1
    assert len(ignoring.lines("shop/wrong")) == 1


def test_two_annotations_with_keys_are_logged_once_with_the_one_that_wins(ignoring: Server, tmp_path: Path) -> None:
    line = ignoring.wait_for_line("shop/both")
    assert line.startswith(f"[INFO] plugin/topology: {tmp_path}/cluster.yaml:28: Service shop/both: both topodns.io/")
    assert line.endswith("; `annotation` is first in `keys`, and wins")
    (tmp_path / "cluster.yaml").write_text(CLUSTER + BOTH + BOTH.replace("name: both", "name: both-too"))
    ignoring.wait_for_line("shop/both-too")  # by when all have been looked at again
    assert len(ignoring.lines("shop/both: both")) == 1


def test_an_invalid_policy_is_nodata_with_on_invalid_deny(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    with serving(tmp_path, COREFILE % "on_invalid deny") as server:
        reply = server.ask(WRONG, "127.30.0.1", Opt())
        assert (reply.rcode, reply.answer, len(reply.authority)) == ("NOERROR", [], 1)
        problem = "expected a label key or *, found 'not a key' (keys are separated by commas)"
        assert reply.ede == f"invalid topology keys: {problem}"
        assert "no client gets an endpoint (on_invalid deny)" in server.wait_for_line("shop/wrong")
        assert server.metric("topodns_selections_total", outcome="denied") == 1
