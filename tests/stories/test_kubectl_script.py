"""The `kubectl topodns` of krew, a shell script, beside a server and a program `kubectl` that plays the cluster."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.demo_server import serving_demo
from tests.support.event_loops import PATIENCE
from tests.support.fake_kubectl import FakeKubectl, pod
from tests.support.server_process import READY, ROOT, Server, topodns

SCRIPT = ROOT / "topodns/cli/kubectl-topodns.sh"
CACHE = "cache.shop.svc.cluster.local"
PODS = [
    pod("topodns-0", ready=False),
    pod("topodns-1"),
    pod("topodns-2"),
    pod("shell-a1", "default", ips=["127.10.1.100"]),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving_demo(tmp_path_factory.mktemp("demo")) as server:
        yield server


@pytest.fixture
def kubectl(tmp_path: Path, server: Server) -> FakeKubectl:
    fake = FakeKubectl(tmp_path)
    fake.script(PODS, forwards_to=f"{server.address}:{READY}")
    return fake


def ran(kubectl: FakeKubectl, *words: str) -> tuple[int, str, str]:
    """Status, output and errors."""
    environment = {**os.environ, "PATH": f"{kubectl.path}:/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    command = ["/bin/sh", str(SCRIPT), *words]
    ended = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=PATIENCE, check=False
    )
    return ended.returncode, ended.stdout, ended.stderr


def own(server: Server, command: str, *words: str) -> str:
    """What the command says of this server."""
    return topodns(command, *words, "--server", f"{server.address}:{READY}").stdout


def test_explain_is_that_of_a_ready_pod(kubectl: FakeKubectl, server: Server) -> None:
    status, out, err = ran(kubectl, "explain", "--client", "127.10.1.100", CACHE)
    assert (status, err) == (0, "asking Pod kube-system/topodns-1\n")
    assert out == own(server, "explain", "--client", "127.10.1.100", CACHE)
    assert out.startswith("client   127.10.1.100 on node node-a1")
    in_pod = ["--namespace=kube-system", "--container=topodns", "topodns-1", "--", "/topodns"]
    assert kubectl.calls()[1] == ["exec", *in_pod, "explain", "--client", "127.10.1.100", CACHE]


def test_the_client_may_be_a_pod(kubectl: FakeKubectl, server: Server) -> None:
    expected = own(server, "explain", "--json", "--client", "127.10.1.100", CACHE, "AAAA")
    for words in (("--pod", "default/shell-a1", CACHE, "AAAA"), (CACHE, "AAAA", "--pod=shell-a1")):
        status, out, _ = ran(kubectl, "explain", "--json", *words)
        assert (status, json.loads(out)) == (0, json.loads(expected))


def test_who_takes_an_address_or_a_pod(kubectl: FakeKubectl, server: Server) -> None:
    expected = own(server, "who", "127.10.1.100")
    assert ran(kubectl, "who", "127.10.1.100")[:2] == (0, expected)
    assert ran(kubectl, "who", "default/shell-a1")[:2] == (0, expected)
    assert ran(kubectl, "who", "fd00:10:1::40")[:2] == (0, own(server, "who", "fd00:10:1::40"))


def test_top_asks_each_ready_pod(kubectl: FakeKubectl) -> None:
    status, _, err = ran(kubectl, "top", "--by", "name")
    assert status == 0
    assert err.splitlines() == ["asking Pod kube-system/topodns-1", "asking Pod kube-system/topodns-2"]


def test_audit_has_the_status_of_the_command_and_2_where_it_could_not_run(kubectl: FakeKubectl, server: Server) -> None:
    assert ran(kubectl, "audit")[:2] == (1, own(server, "audit"))
    assert ran(kubectl, "audit", "--what-if", "node=node-a1:down", "--fail-on", "never")[0] == 0
    kubectl.script(PODS, forbidden=["exec"])
    assert ran(kubectl, "audit") == (
        2,
        "",
        'asking Pod kube-system/topodns-1\nError from server (Forbidden): pods "x" is forbidden\n',
    )


def test_flags_of_kubectl_are_in_each_call_and_the_others_choose_the_pod(kubectl: FakeKubectl) -> None:
    flags = ["--context", "my lab", "--as=ann", "-n", "default", "-l", "app=shell", "-c", "dns"]
    assert ran(kubectl, "who", *flags, "127.10.1.100")[0] == 0
    found, asked = kubectl.calls()
    assert found[:5] == ["--context=my lab", "--as=ann", "get", "pods", "--namespace=default"]
    assert found[5] == "--selector=app=shell"
    in_pod = ["--namespace=default", "--container=dns", "shell-a1", "--", "/topodns"]
    assert asked == ["--context=my lab", "--as=ann", "exec", *in_pod, "who", "127.10.1.100"]
    assert ran(kubectl, "who", "--server-pod", "topodns-2", "127.10.1.100")[2] == "asking Pod kube-system/topodns-2\n"


def test_without_a_pod_to_ask_or_of_the_client_it_says_so_and_ends_with_2(kubectl: FakeKubectl) -> None:
    status, out, err = ran(kubectl, "who", "-n", "nowhere", "127.10.1.100")
    assert (status, out) == (2, "")
    assert err == "found no ready Pod with the label app.kubernetes.io/name=topodns in namespace nowhere\n"
    status, out, err = ran(kubectl, "explain", "--pod", "default/gone", CACHE)
    assert (status, out, err) == (2, "", 'Error from server (NotFound): pods "gone" not found\n')
    assert ran(kubectl, "who", "--context") == (2, "", "--context: expected a value\n")


def test_help_has_the_commands_and_anything_else_is_wrong_usage(kubectl: FakeKubectl) -> None:
    status, out, err = ran(kubectl, "--help")
    assert (status, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()[2:6]] == ["explain", "who", "top", "audit"]
    assert ran(kubectl) == ran(kubectl, "restart") == (2, "", out)
