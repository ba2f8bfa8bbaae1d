"""The Corefiles that installers write, each served by a real process that is asked for names of every sort."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.distribution_corefiles import COREFILES, RESOLV_CONF, corefile, on_loopback
from tests.support.fake_api.server import running
from tests.support.faulty_upstream import ANSWER, Asked, BadUpstream, bad_upstream
from tests.support.program_with_fake_api import CLUSTER, IN_A
from tests.support.server_process import HEALTH, READY, Server, own_address, serving, until
from tests.support.upstream_faults import answers, reply_to, says

STUB_ANSWER = "192.0.2.2"
FRONT = "front.default.svc.cluster.local"
OVERRIDE = "hosts {\n    10.9.9.9 registry.example.org\n    fallthrough\n}\n"
OF_K3S = "rewrite name registry.example.org front.default.svc.cluster.local\n"  # it has a `hosts` of its own

CUSTOM_RECORDS = [
    ("aks", "registry.example.org A", ["10.9.9.9"]),
    ("aks", "www.corp.example.org A", [STUB_ANSWER]),
    ("gke", "www.corp.example.org A", [STUB_ANSWER]),
    ("k3s", "server-1 A", ["10.1.0.1"]),
    ("k3s", "1.0.1.10.in-addr.arpa PTR", ["server-1."]),
    ("k3s", "registry.example.org A", ["10.96.0.1"]),
    ("k3s", "www.corp.example.org A", [STUB_ANSWER]),
    ("kops", "api.internal.demo.k8s.local A", ["10.2.0.1"]),
    ("kops", "www.demo.k8s.local A", [ANSWER]),
]


class Setup:
    """The eight servers, each started when it is first asked for, and what all of them share."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.upstream = stack.enter_context(bad_upstream(answers))
        self._stub = stack.enter_context(bad_upstream(says(lambda message: reply_to(message, STUB_ANSWER))))
        self._api = stack.enter_context(running(CLUSTER, own_address()))
        self._directory, self._stack = directory, stack
        self._servers: dict[str, Server] = {}

    def server(self, name: str) -> Server:
        if name not in self._servers:
            directory, address = self._directory / name, own_address()
            self._furnish(directory, address)
            text = on_loopback(corefile(name, self._places(directory)), self._api.url)
            server = self._stack.enter_context(serving(directory, text, address=address))
            until(lambda: server.get("/ready", READY)[0] == 200, "/ready")
            self._servers[name] = server
        return self._servers[name]

    def _furnish(self, directory: Path, address: str) -> None:
        """The files that distributions mount; those of k3s have its names, those of AKS lie beside the Corefile."""
        stub = (
            f"corp.example.org {{\n    bind {address}\n    errors\n    cache 30\n    forward . {_at(self._stub)}\n}}\n"
        )
        for custom, override in (("custom", OVERRIDE), ("custom-k3s", OF_K3S)):
            (directory / custom).mkdir(parents=True)
            (directory / custom / "records.override").write_text(override)
            (directory / custom / "stub.server").write_text(stub)
        (directory / "NodeHosts").write_text("10.1.0.1 server-1\n10.1.0.2 agent-1\n")
        (directory / "hosts").write_text("127.0.0.1 localhost\n10.2.0.1 api.internal.demo.k8s.local\n")

    def _places(self, directory: Path) -> dict[str, str]:
        return {
            RESOLV_CONF: _at(self.upstream),
            "10.0.0.53": _at(self._stub),
            "/etc/coredns/custom/": f"{directory}/custom-k3s/",
            "/etc/coredns/NodeHosts": f"{directory}/NodeHosts",
            "/rootfs/etc/hosts": f"{directory}/hosts",
        }


def _at(upstream: BadUpstream) -> str:
    return f"{upstream.host}:{upstream.port}"


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    with ExitStack() as stack:
        yield Setup(tmp_path_factory.mktemp("distributions"), stack)


each = pytest.mark.parametrize("name", COREFILES)


@each
def test_names_of_the_cluster_are_answered_over_udp_and_tcp(setup: Setup, name: str) -> None:
    server = setup.server(name)
    for tcp in (False, True):
        assert server.ask(f"{FRONT} A", tcp=tcp).data == ["10.96.0.1"]
        assert server.ask("plain.default.svc.cluster.local A", tcp=tcp).data == ["10.61.1.2", "10.61.2.2"]
        assert server.ask("1.0.96.10.in-addr.arpa PTR", tcp=tcp).data == [f"{FRONT}."]
        assert server.ask("10-61-9-9.default.pod.cluster.local A", tcp=tcp).data == ["10.61.9.9"]
        missing = server.ask("missing.default.svc.cluster.local A", tcp=tcp)
        assert (missing.rcode, len(missing.authority)) == ("NXDOMAIN", 1)


@each
def test_names_outside_are_forwarded_and_then_come_from_the_cache(setup: Setup, name: str) -> None:
    server = setup.server(name)
    outside = f"www.{name}.example.com A"
    for tcp in (False, True, False):
        reply = server.ask(outside, tcp=tcp)
        assert (reply.rcode, reply.data) == ("NOERROR", [ANSWER])
        assert {"ra", "rd"} <= reply.flag_names
    assert len([each for each in setup.upstream.asked if _asks_for(each, f"www.{name}.example.com")]) == 1


def _asks_for(asked: Asked, name: str) -> bool:
    wire = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return wire in asked.message.lower()


@each
def test_a_reverse_name_that_the_cluster_does_not_have_is_forwarded(setup: Setup, name: str) -> None:
    server = setup.server(name)
    server.ask("7.100.51.198.in-addr.arpa PTR")
    assert any(_asks_for(each, "7.100.51.198.in-addr.arpa") for each in setup.upstream.asked)


@each
def test_probes_and_metrics_are_where_the_manifests_look_for_them(setup: Setup, name: str) -> None:
    server = setup.server(name)
    assert server.get("/health", HEALTH) == (200, "OK")
    assert server.get("/ready", READY) == (200, "OK")
    before = server.metric("coredns_dns_requests_total", type="A")
    server.ask(f"{FRONT} A")
    assert server.metric("coredns_dns_requests_total", type="A") == before + 1
    for directive in ("cache", "errors", "forward", "kubernetes", "loadbalance", "loop"):
        assert server.metric("coredns_plugin_enabled", zone=".", name=directive) >= 1


@pytest.mark.parametrize(
    ("name", "question", "data"), CUSTOM_RECORDS, ids=[f"{case[0]}: {case[1]}" for case in CUSTOM_RECORDS]
)
def test_custom_records_and_stub_domains_are_answered(setup: Setup, name: str, question: str, data: list[str]) -> None:
    server = setup.server(name)
    for tcp in (False, True):
        assert server.ask(question, tcp=tcp).data == data


@pytest.mark.parametrize("question", ["a.b.c.d.internal.cloudapp.net A", "www.reddog.microsoft.com AAAA"])
def test_the_templates_of_aks_keep_search_lists_from_its_resolvers(setup: Setup, question: str) -> None:
    server = setup.server("aks")
    assert server.ask(question).rcode == "NXDOMAIN"
    assert not any(_asks_for(each, question.split()[0]) for each in setup.upstream.asked)


def test_names_of_azure_machines_are_still_asked_of_its_resolvers(setup: Setup) -> None:
    assert setup.server("aks").ask("vm.internal.cloudapp.net A").data == [ANSWER]


def test_the_one_line_topology_is_all_that_it_takes(setup: Setup, tmp_path: Path) -> None:
    with running(CLUSTER, own_address()) as api:
        text = on_loopback(corefile("kubeadm", {RESOLV_CONF: _at(setup.upstream)}), api.url)
        with serving(tmp_path, text.replace("    loop\n", "    loop\n    topology\n")) as server:
            until(lambda: server.get("/ready", READY)[0] == 200, "/ready")
            assert server.ask("near.default.svc.cluster.local A", IN_A).data == ["10.61.1.1"]
            assert server.ask(f"{FRONT} A", IN_A).data == ["10.96.0.1"]
            assert server.ask("www.example.com A", IN_A).data == [ANSWER]
