"""`kubectl topodns` without processes: its usage, and what it says where it cannot ask."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.fake_kubectl import pod
from topodns.cli import kubectl as plugin
from topodns.cli.admin_client import AdminError
from topodns.cli.kubectl_client import KubectlError
from topodns.cli.server_pods import (
    ServerPod,
)

Captured = pytest.CaptureFixture[str]
CACHE = "cache.shop.svc.cluster.local"
EXPLAIN = ("explain", "--client", "10.0.0.1", CACHE)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("whoo",),
        ("who",),
        ("explain", CACHE),
        ("explain", "--client", "10.0.0.1", "--pod", "a/b", CACHE),
        ("who", "10.0.0.1", "--contex", "lab"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_2_with_the_usage(words: Sequence[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        plugin.main(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: kubectl topodns")


class _Kubectl:
    """kubectl whose port-forward fails with `problem`, and that keeps its flags."""

    problem: str | None = None
    given: Sequence[str] = ()

    def __init__(self, flags: Sequence[str]) -> None:
        type(self).given = flags

    @contextmanager
    def port_forward(self, namespace: str, name: str, port: int) -> Iterator[str]:
        if self.problem is not None:
            raise KubectlError(self.problem)
        yield f"{name}.{namespace}:{port}"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, Mapping[str, str]]]:
    """What is asked: (server, path, question)."""
    found: list[tuple[str, str, Mapping[str, str]]] = []

    def fetch(server: str, path: str, question: Mapping[str, str], key: str) -> dict[str, Any]:
        found.append((server, path, question))
        raise AdminError("no reply")

    monkeypatch.setattr(_Kubectl, "problem", None)
    monkeypatch.setattr(plugin, "Kubectl", _Kubectl)
    monkeypatch.setattr(plugin, "find_server_pods", lambda *_: [ServerPod("dns", "topodns-1", 8181)])
    monkeypatch.setattr(plugin, "why_no_forward", lambda *_: "; RBAC denies it")
    monkeypatch.setattr(plugin, "fetch_object", fetch)
    return found


def test_a_server_that_does_not_answer_is_status_1(
    asked: list[tuple[str, str, Mapping[str, str]]], capsys: Captured
) -> None:
    assert plugin.main([*EXPLAIN, "SRV"]) == 2
    question = {"name": CACHE, "type": "SRV", "client": "10.0.0.1"}
    assert asked == [("topodns-1.dns:8181", "/explain", question)]
    assert capsys.readouterr() == ("", "asking Pod dns/topodns-1, port 8181\nno reply\n")


def test_kubectls_own_flags_are_handed_on(asked: list[tuple[str, str, Mapping[str, str]]]) -> None:
    own = ["--context", "lab", "--kubeconfig=/k", "--cluster=c", "--user=u", "--as=ann"]
    assert plugin.main([*EXPLAIN, *own, "-n", "dns"]) == 2
    assert _Kubectl.given == ["--context=lab", "--kubeconfig=/k", "--cluster=c", "--user=u", "--as=ann"]


def test_a_port_forward_that_rbac_denies_names_the_rule(
    asked: list[tuple[str, str, Mapping[str, str]]], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(_Kubectl, "problem", "it failed")
    assert plugin.main(EXPLAIN) == 2
    assert capsys.readouterr().err.splitlines()[1] == "it failed; RBAC denies it"
    assert asked == []


@pytest.mark.parametrize("words", [("who", "shop/web-1"), ("explain", "--pod", "shop/web-1", CACHE)], ids=" ".join)
def test_a_pod_without_an_address_is_no_client_yet(
    asked: list[tuple[str, str, Mapping[str, str]]],
    monkeypatch: pytest.MonkeyPatch,
    words: Sequence[str],
    capsys: Captured,
) -> None:
    monkeypatch.setattr(plugin, "read_pod", lambda *_: pod("web-1", "shop"))
    assert plugin.main(words) == 2
    assert capsys.readouterr().err == "Pod shop/web-1 has no address yet\n"
    assert asked == []


def test_an_ipv6_address_is_no_pod(asked: list[tuple[str, str, Mapping[str, str]]]) -> None:
    assert plugin.main(["who", "fd00::1"]) == 2
    assert asked[0][2] == {"client": "fd00::1"}
