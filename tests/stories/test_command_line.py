"""The program's flags and subcommands, as typed in a shell."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.event_loops import needs_ipv6
from tests.support.server_process import READY, ROOT, Server, launched, serving, topodns, until
from topodns.cli import main as cli

DEMO = ROOT / "config" / "demo"
STOPPED = "[INFO] SIGTERM: Shutting down servers then terminating\n"
WHOAMI = ". {\n    bind HERE\n    whoami\n}\n"


def test_the_banner_is_each_key_with_its_port_and_then_the_version(tmp_path: Path) -> None:
    text = "example.org example.net {\n    bind HERE\n    whoami\n}\n"
    with serving(tmp_path, text, port=5353) as server:
        here = server.address
        version = topodns("-version").stdout
        assert server.output() == f"example.org.:5353 on {here}\nexample.net.:5353 on {here}\n{version}"


@pytest.mark.parametrize("arguments", [("-plugins",), ("check", "--from", "coredns", "-conf", str(DEMO / "Corefile"))])
def test_a_reader_that_has_had_enough_is_no_accident(arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        (sys.executable, "-m", "topodns", *arguments), stdout=writing, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_an_import_without_matches_is_reported_once_however_often_the_corefile_is_checked(tmp_path: Path) -> None:
    text = ". {\n    bind HERE\n    import custom/*.override\n    reload 2s 0s\n    whoami\n}\n"
    got = "[WARNING] No files matching import glob pattern: custom/*.override "
    with serving(tmp_path, text) as server:
        assert len(server.lines(got)) == 1
        (tmp_path / "custom").mkdir()
        (tmp_path / "custom" / "a.override").write_text("errors\n")
        server.signal(signal.SIGUSR1)
        server.wait_for_line("Reloading complete")
        assert len(server.lines(got)) == 1


def test_outside_of_a_pod_the_start_names_the_line_of_the_directive(tmp_path: Path) -> None:
    (tmp_path / "Corefile").write_text(". {\n    bind 127.0.0.1\n    kubernetes cluster.local\n}\n")
    with launched(tmp_path, "-conf", "Corefile", "-dns.port", "0") as server:
        assert server.wait() == 1
        assert server.errors().startswith("Corefile:3: not in a Pod (")


def test_quiet_says_nothing_at_start(tmp_path: Path) -> None:
    (tmp_path / "Corefile").write_text(WHOAMI.replace("HERE", "127.0.0.1"))
    pid_file = tmp_path / "pid"
    with launched(tmp_path, "-quiet", "-conf", "Corefile", "-dns.port", "0", "-pidfile", str(pid_file)) as server:
        until(pid_file.exists, "the pid file")
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert (server.output(), server.errors()) == (STOPPED, "")


def test_the_corefile_may_come_on_stdin(tmp_path: Path) -> None:
    text = "example.org {\n    bind 127.0.0.1\n    whoami\n}\n"
    with serving(tmp_path, "", "-conf", "stdin", address="127.0.0.1", stdin=text) as server:
        assert server.ask("example.org A").rcode == "NOERROR"
        assert server.ask("example.net A").rcode == "REFUSED"


@needs_ipv6
def test_without_a_corefile_the_server_answers_with_the_client_s_address(tmp_path: Path) -> None:
    with launched(tmp_path, "-dns.port", "0") as server:
        until(server.started, "the banner")
        assert server.lines("built-in") == [
            f"[WARNING] Found no Corefile in {tmp_path}, so this is the built-in one: whoami on port 0, which answers "
            "with the client's address; -conf FILE names another"
        ]
        (line,) = server.ask("example.org A").additional[:1]
        assert line == "example.org. 0 IN A 127.0.0.1"
        (line,) = server.ask("example.org AAAA", to="::1").additional[:1]
        assert line == "example.org. 0 IN AAAA ::1"
        assert server.wait_for_line('"A IN example.org. udp 29 false 512" NOERROR qr,aa,rd ')
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert server.output().endswith(STOPPED)


def test_all_errors_of_a_corefile_stop_the_start(tmp_path: Path) -> None:
    (tmp_path / "Corefile").write_text(". {\n    whoamy\n    bufsize 1\n}\n")
    with launched(tmp_path) as server:
        assert server.wait() == 1
        assert server.errors().splitlines() == [
            "Corefile:2: unknown directive 'whoamy', did you mean 'whoami'?",
            "Corefile:3: 'bufsize' has '1', expected a whole number from 512 to 4096",
        ]


def test_the_corefile_of_the_working_directory_is_the_default(tmp_path: Path) -> None:
    (tmp_path / "Corefile").write_text("example.org {\n    bind 127.0.0.1\n    whoami\n}\n")
    with launched(tmp_path, "-p", "0") as server:
        until(server.started, "the banner")
        assert server.lines("example.org.:")
        assert server.ask("example.org A").rcode == "NOERROR"


def test_check_reads_stdin_too_and_prints_the_problem() -> None:
    ended = topodns("check", "-conf", "stdin", stdin=". {\n    whoamy\n}\n")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "stdin:2: unknown directive 'whoamy', did you mean 'whoami'?\n"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    corefile = (DEMO / "Corefile").read_text().replace("127.0.0.1:5381", f"HERE:{READY}")
    corefile = corefile.replace("manifests cluster", f"manifests {DEMO / 'cluster'}").replace("127.0.0.1", "HERE")
    with serving(tmp_path_factory.mktemp("demo"), corefile) as server:
        yield server


class Asked(NamedTuple):
    """The result of a run of `topodns explain` against a server."""

    status: int
    out: str
    err: str


class Explain:
    """`topodns explain` in this process, asking a server."""

    def __init__(self, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
        self._server = server
        self._capsys = capsys

    def __call__(self, *arguments: str, port: int = READY) -> Asked:
        return self.run("--server", f"{self._server.address}:{port}", *arguments)

    def run(self, *arguments: str) -> Asked:
        status = cli.main(["explain", *arguments])
        return Asked(status, *self._capsys.readouterr())


@pytest.fixture
def explain(demo: Server, capsys: pytest.CaptureFixture[str]) -> Explain:
    return Explain(demo, capsys)


QUESTIONS = [
    ("--client", "127.10.1.100", "cache.shop.svc.cluster.local"),
    ("--client", "127.10.7.100", "cache.shop.svc.cluster.local", "SRV"),
    ("--client", "127.99.0.1", "db-near.data.svc.cluster.local"),
    ("--node", "node-b2", "search.shop.svc.cluster.local", "AAAA"),
    ("--node", "node-c1", "db-near.data.svc.cluster.local"),
    ("--node", "node-a1", "missing.shop.svc.cluster.local"),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_a_running_server_explains_its_manifests(explain: Explain, question: tuple[str, ...]) -> None:
    asked = explain("--json", *question)
    loaded = explain.run("--json", "-conf", str(DEMO / "Corefile"), *question)
    assert (asked.status, asked.err) == (0, "")
    assert json.loads(asked.out) == json.loads(loaded.out)


@pytest.mark.parametrize("address", ["127.10.1.100", "127.10.0.5", "127.99.0.1"])
def test_a_running_server_locates_an_address_as_its_manifests_do(demo: Server, address: str) -> None:
    asked = topodns("who", "--json", "--server", f"{demo.address}:{READY}", address)
    loaded = topodns("who", "--json", "-conf", str(DEMO / "Corefile"), address)
    assert (asked.returncode, asked.stderr) == (0, "")
    assert json.loads(asked.stdout) == json.loads(loaded.stdout)


def test_explain_prints_the_endpoints_that_are_answered(demo: Server) -> None:
    for source in ("127.10.1.100", "127.10.5.100", "127.10.0.9", "127.99.0.1"):
        for service in ("cache.shop", "db-near.data", "agent.monitoring", "kiosk.shop"):
            name = f"{service}.svc.cluster.local"
            status, body = demo.get(f"/explain?client={source}&name={name}", READY)
            assert status == 200
            assert sorted(json.loads(body)["answer"]) == sorted(demo.ask(f"{name} A", source).answer)


def test_the_text_is_for_people(demo: Server) -> None:
    at = f"{demo.address}:{READY}"
    asked = topodns("explain", "--server", at, "--node", "node-b2", "cache.shop.svc.cluster.local")
    assert asked.returncode == 0
    assert "tried    kubernetes.io/hostname = node-b2: 0 matching\n" in asked.stdout
    assert "tried    topology.kubernetes.io/zone = eu-1b: 1 matching  <- wins\n" in asked.stdout
    assert asked.stdout.endswith("         cache.shop.svc.cluster.local. 5 IN A 127.10.4.30\n")


REFUSALS = [
    (("--node", "node-x", "cache.shop.svc.cluster.local"), "no Node is named 'node-x'"),
    (("--client", "somebody", "cache.shop.svc.cluster.local"), "'somebody' is no IP address"),
    (("--client", "127.10.1.100", "example.org"), "example.org. is in no zone of a kubernetes directive"),
]


@pytest.mark.parametrize(("question", "why"), REFUSALS, ids=[case[1] for case in REFUSALS])
def test_explain_gives_the_reason_where_it_cannot_explain(
    explain: Explain, question: tuple[str, ...], why: str
) -> None:
    asked = explain(*question)
    assert (asked.status, asked.out) == (2, "")
    assert asked.err.startswith(why)
    assert len(asked.err.splitlines()) == 1


def test_a_server_that_is_not_there_or_does_not_explain_is_named(demo: Server, explain: Explain) -> None:
    question = ("--client", "127.10.1.100", "cache.shop.svc.cluster.local")
    nobody = explain(*question, port=1)
    assert (nobody.status, nobody.out) == (2, "")
    assert nobody.err.startswith(f"no answer from {demo.address}:1: ")
    health = explain(*question, port=5380)
    assert (health.status, health.out) == (2, "")
    meant = f"{demo.address}:{READY}"
    assert health.err == f"/explain is not at this address, but at that of `ready`: {meant}\n"
