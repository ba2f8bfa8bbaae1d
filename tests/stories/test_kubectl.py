"""`kubectl topodns` as a process, beside a server and a program `kubectl` that plays the cluster."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.demo_server import serving_demo
from tests.support.document_schema import faults
from tests.support.event_loops import PATIENCE
from tests.support.fake_kubectl import FakeKubectl, pod
from tests.support.server_process import READY, ROOT, Server, topodns, until

PLUGIN = (sys.executable, "-c", "from topodns.cli.kubectl import main; raise SystemExit(main())")
CACHE = "cache.shop.svc.cluster.local"
SHELL = pod("shell-a1", "default", ips=["127.10.1.100"], node="node-a1")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving_demo(tmp_path_factory.mktemp("demo")) as server:
        yield server


@pytest.fixture
def kubectl(tmp_path: Path, server: Server) -> FakeKubectl:
    fake = FakeKubectl(tmp_path)
    fake.script([pod("topodns-1"), SHELL], forwards_to=f"{server.address}:{READY}")
    return fake


def started(kubectl: FakeKubectl, *words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PATH": f"{kubectl.path}:/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [*PLUGIN, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=ROOT,
        preexec_fn=heed_interrupts,
    )


def heed_interrupts() -> None:
    """Undo what a shell does for commands in the background, such as the tests themselves: it ignores SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def ran(kubectl: FakeKubectl, *words: str) -> tuple[int, str, str]:
    """Status, output and errors; no process is left."""
    with started(kubectl, *words) as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert kubectl.running() == []
    return process.returncode, out, err


def test_explain_asks_a_ready_pod_through_a_port_forward_that_ends(kubectl: FakeKubectl) -> None:
    status, out, err = ran(kubectl, "explain", "--client", "127.10.1.100", CACHE, "--context=lab", "--as=ann")
    assert (status, err) == (0, "asking Pod kube-system/topodns-1, port 8181\n")
    assert out.startswith("client   127.10.1.100 on node node-a1 (by its pod CIDR)\n")
    own = ["--context=lab", "--as=ann"]
    found, forwarded = kubectl.calls()
    selector = "--selector=app.kubernetes.io/name=topodns"
    assert found == [
        *own,
        "get",
        "pods",
        selector,
        "--namespace=kube-system",
        "--output=json",
        "--request-timeout=10s",
    ]
    assert forwarded == [
        *own,
        "port-forward",
        "--namespace=kube-system",
        "--address=127.0.0.1",
        "pod/topodns-1",
        ":8181",
    ]
    assert len(kubectl.forwarding()) == 1


def test_the_client_may_be_a_pod_or_a_node(kubectl: FakeKubectl) -> None:
    by_pod = json.loads(ran(kubectl, "explain", "--json", "--pod", "default/shell-a1", CACHE)[1])
    assert by_pod["client"] == {"address": "127.10.1.100", "node": "node-a1", "method": "podcidr"}
    assert json.loads(ran(kubectl, "explain", "--json", "--pod", "shell-a1", CACHE)[1]) == by_pod
    by_node = json.loads(ran(kubectl, "explain", "--json", "--node", "node-b2", CACHE, "AAAA")[1])
    assert (by_node["client"]["node"], by_node["question"]["type"]) == ("node-b2", "AAAA")


def test_who_locates_an_address_and_a_pod(kubectl: FakeKubectl) -> None:
    address = json.loads(ran(kubectl, "who", "--json", "127.10.1.100")[1])
    assert [cluster["node"] for cluster in address["clusters"]] == ["node-a1"]
    by_pod = json.loads(ran(kubectl, "who", "--json", "default/shell-a1")[1])
    assert faults(by_pod, "PodWhoDocument") == []
    assert by_pod == {"version": 1, "pod": "default/shell-a1", "node": "node-a1", "addresses": [address]}
    assert ran(kubectl, "who", "default/shell-a1")[1].startswith(
        "pod      default/shell-a1 on node-a1, by the API server\naddress  127.10.1.100\n"
    )


def test_audit_is_the_servers_with_its_status(kubectl: FakeKubectl, server: Server) -> None:
    own = topodns("audit", "--json", "--server", f"{server.address}:{READY}")
    status, out, _ = ran(kubectl, "audit", "--json")
    assert (status, json.loads(out)) == (own.returncode, json.loads(own.stdout))
    status, out, _ = ran(kubectl, "audit", "--what-if", "node=node-a1:down", "--fail-on", "never")
    assert (status, out.splitlines()[0]) == (0, "what if node=node-a1:down")


def test_an_audit_that_cannot_be_made_has_status_2(kubectl: FakeKubectl) -> None:
    assert ran(kubectl, "audit", "--what-if", "node=nowhere:down")[:2] == (2, "")
    kubectl.script()
    assert ran(kubectl, "audit")[:2] == (2, "")
    assert ran(kubectl, "audit", "--what-if", "nonsense")[:2] == (2, "")


def test_a_server_that_refuses_is_quoted(kubectl: FakeKubectl) -> None:
    status, out, err = ran(kubectl, "explain", "--node", "nowhere", CACHE)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()[1:]
    assert line.startswith("no Node is named 'nowhere'; there are 'node-a1', 'node-a2'")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_port_forward_too(kubectl: FakeKubectl, number: signal.Signals) -> None:
    kubectl.script([pod("topodns-1")], forwards_to="")
    with started(kubectl, "who", "10.0.0.1") as process:
        until(kubectl.running, "the port-forward")
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == (2 if number == signal.SIGINT else 128 + number), err
    assert kubectl.running() == []


def test_a_reader_that_has_had_enough_is_no_accident(kubectl: FakeKubectl) -> None:
    with started(kubectl, "who", "127.10.1.100") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(PATIENCE) == 141
        assert process.stderr is not None
        assert process.stderr.read() == "asking Pod kube-system/topodns-1, port 8181\n"
    assert kubectl.running() == []


def test_top_adds_the_queries_of_all_ready_pods(kubectl: FakeKubectl, server: Server) -> None:
    kubectl.script([pod("topodns-1"), pod("topodns-2"), SHELL], forwards_to=f"{server.address}:{READY}")
    server.ask(f"{CACHE} A")
    own = json.loads(topodns("top", "--json", "--by", "name", "--server", f"{server.address}:{READY}").stdout)
    assert {"value": f"{CACHE}.", "queries": own["queries"]} in own["rows"]
    status, out, err = ran(kubectl, "top", "--json", "--by", "name")
    asked = [f"asking Pod kube-system/topodns-{number}, port 8181" for number in (1, 2)]
    assert (status, err.splitlines()) == (0, asked)
    found = json.loads(out)
    assert faults(found, "TopDocument") == []
    assert found["queries"] == 2 * own["queries"]
