"""Manifests edited under a running server: a right edit is in the next answers, a wrong one changes nothing."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dns_messages import Opt
from tests.support.server_process import Server, serving, until

WITHIN = 1.0  # seconds that an edit may take, by the specification of the manifests source

COREFILE = """
. {
    bind HERE
    prometheus HERE:9153
    kubernetes cluster.local {
        manifests cluster
    }
    topology {
        locate nodes
    }
}
"""
NODES = """
apiVersion: v1
kind: NodeList
items:
- {metadata: {name: one, labels: {rack: "%s"}}, status: {addresses: [{type: InternalIP, address: 127.30.0.1}]}}
- {metadata: {name: two, labels: {rack: "2"}}, status: {addresses: [{type: InternalIP, address: 127.30.0.2}]}}
"""
SERVICES = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: db, annotations: {topodns.io/topology-keys: "%(keys)s"}}
spec: {clusterIP: None, clusterIPs: [None]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: shop, name: db-1, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
ports: [{name: sql, port: 5432}]
endpoints:
- {addresses: [127.30.1.1], nodeName: one}
- {addresses: [127.30.2.1], nodeName: two, conditions: {ready: %(ready)s}}
"""
DB = "db.shop.svc.cluster.local A"
ONE, TWO = "127.30.0.1", "127.30.0.2"


class Files:
    """The manifests of a story. `services` and `nodes` write them as an editor does."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()

    def write(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text)

    def replace(self, name: str, text: str) -> None:
        """By a rename, so that no reader sees half a file."""
        (self.directory / ".new").write_text(text)
        os.replace(self.directory / ".new", self.directory / name)


def services(keys: str = "rack", ready: str = "true") -> str:
    return SERVICES % {"keys": keys, "ready": ready}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    files = Files(tmp_path / "cluster")
    files.write("nodes.yaml", NODES % "1")
    files.write("services.yaml", services())
    return files


@pytest.fixture
def server(tmp_path: Path, files: Files) -> Iterator[Server]:
    with serving(tmp_path, COREFILE) as server:
        yield server


def soon(server: Server, source: str, expected: list[str], question: str = DB) -> None:
    """The answer becomes this within the time that is promised."""
    until(lambda: server.ask(question, source).data == expected, f"the answer of {source}: {expected}", WITHIN)


def test_every_kind_of_edit_is_in_the_next_answers(server: Server, files: Files) -> None:
    for source, expected in ((ONE, ["127.30.1.1"]), (TWO, ["127.30.2.1"])):
        assert server.ask(DB, source).data == expected
    files.write("services.yaml", services(ready="false"))  # an endpoint
    soon(server, TWO, [])
    assert server.ask(DB, ONE).data == ["127.30.1.1"]
    files.replace("services.yaml", services(keys="rack,*", ready="false"))  # the keys
    soon(server, TWO, ["127.30.1.1"])
    files.replace("services.yaml", services())
    soon(server, ONE, ["127.30.1.1"])
    files.write("nodes.yaml", NODES % "2")  # a node's label: now both are in one rack
    soon(server, ONE, ["127.30.1.1", "127.30.2.1"])
    files.write("more.yaml", services().replace("name: db", "name: dc").replace("service-name: db", "service-name: dc"))
    soon(server, ONE, ["127.30.1.1", "127.30.2.1"], "dc.shop.svc.cluster.local A")  # another file
    (files.directory / "more.yaml").unlink()
    until(lambda: server.ask("dc.shop.svc.cluster.local A").rcode == "NXDOMAIN", "a file less", WITHIN)
    assert server.metric("topodns_manifest_reloads_total") >= 5


def test_a_broken_file_keeps_its_last_good_state_and_is_named(server: Server, files: Files) -> None:
    assert server.metric("topodns_manifest_files_bad") == 0
    whole = services(ready="false")
    half = whole[: whole.index("127.30.2.1")]
    files.write("services.yaml", half)
    line = server.wait_for_line("services.yaml:")
    assert line.startswith("[WARNING] manifests: ")
    assert f"services.yaml:{len(half.splitlines())}: " in line
    assert server.metric("topodns_manifest_files_bad") == 1
    assert server.ask(DB, TWO).data == ["127.30.2.1"]

    files.write("services.yaml", whole)
    soon(server, TWO, [])
    assert server.metric("topodns_manifest_files_bad") == 0
    assert len(server.lines("services.yaml:")) == 1


def test_a_policy_that_becomes_invalid_is_ignored_and_named_once(server: Server, files: Files) -> None:
    files.write("services.yaml", services(keys="rack,bad key!"))
    soon(server, ONE, ["127.30.1.1", "127.30.2.1"])
    line = server.wait_for_line("Service shop/db: ")
    assert line.startswith("[WARNING] plugin/topology: ")
    assert "services.yaml:" in line
    assert line.endswith("the Service stays unfiltered")
    assert server.metric("topodns_policy_invalid", namespace="shop", service="db") == 1
    files.write("services.yaml", services())
    soon(server, ONE, ["127.30.1.1"])
    assert server.metric("topodns_policy_invalid") == 0
    assert len(server.lines("plugin/topology: ")) == 1


def test_a_later_file_wins_with_a_warning_that_names_both(server: Server, files: Files) -> None:
    files.write("z.yaml", services(keys="none"))
    soon(server, ONE, ["127.30.1.1", "127.30.2.1"])
    line = server.wait_for_line("both define")
    assert "services.yaml:" in line
    assert "z.yaml:" in line


def test_a_miss_is_taken_back_as_soon_as_there_is_an_endpoint(server: Server, files: Files) -> None:
    files.write("services.yaml", services(ready="false"))
    soon(server, TWO, [])
    reply = server.ask(DB, TWO, Opt())
    assert (reply.rcode, reply.ede) == ("NOERROR", "no endpoint matches topologyKeys rack for node two")
    files.write("services.yaml", services())
    soon(server, TWO, ["127.30.2.1"])
