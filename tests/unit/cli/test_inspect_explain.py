"""`topodns explain`: what it prints, and what it asks of a server."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from topodns.cli import main as cli
from topodns.cli.admin_client import EXPECTED, AdminError

DEMO = str(Path(__file__).parents[3] / "config" / "demo" / "Corefile")


CACHE = "cache.shop.svc.cluster.local"


Captured = pytest.CaptureFixture[str]


def test_explain_reads_the_manifests_of_a_corefile(capsys: Captured) -> None:
    arguments = ["explain", "--json", "-conf", DEMO, "--node", "node-b2", CACHE]
    assert cli.main(arguments) == 0
    explained = json.loads(capsys.readouterr().out)
    assert explained["winner"] == "topology.kubernetes.io/zone"
    assert explained["answer"] == [f"{CACHE}. 5 IN A 127.10.4.30"]


def test_explain_says_in_one_line_why_it_cannot(tmp_path: Path, capsys: Captured) -> None:
    weighted = tmp_path / "Corefile"
    weighted.write_text("example.org {\n    whoami\n    loadbalance weighted weights\n}\n")
    (tmp_path / "weights").write_text("10.0.0.1 5\n")
    for corefile, node in ((DEMO, "nowhere"), (str(tmp_path / "none"), "node-a1"), (str(weighted), "node-a1")):
        assert cli.main(["explain", "-conf", corefile, "--node", node, CACHE]) == 2
        captured = capsys.readouterr()
        assert (captured.out, captured.err.count("\n")) == ("", 1)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The request of `explain` to a server, and the body that it gets back (an exception: is raised)."""
    exchange: dict[str, Any] = {"body": b"{}"}

    def fetch(server: str, path: str, arguments: Mapping[str, str], _timeout: float) -> bytes:
        exchange["asked"] = (server, path, dict(arguments))
        if isinstance(exchange["body"], Exception):
            raise exchange["body"]
        return bytes(exchange["body"])

    monkeypatch.setattr("topodns.cli.admin_client.fetch", fetch)
    return exchange


def test_explain_asks_the_ready_address_on_loopback_by_default(served: dict[str, Any]) -> None:
    cli.main(["explain", "--client", "10.1.2.3", CACHE])
    assert served["asked"] == ("127.0.0.1:8181", "/explain", {"name": CACHE, "type": "A", "client": "10.1.2.3"})
    cli.main(["explain", "--node", "node-1", "--server", "10.0.0.1:80", CACHE, "SRV"])
    assert served["asked"] == ("10.0.0.1:80", "/explain", {"name": CACHE, "type": "SRV", "node": "node-1"})


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"<html>", f"127.0.0.1:8181 does not answer /explain; {EXPECTED}"),
        (b"[]", f"127.0.0.1:8181 does not answer /explain; {EXPECTED}"),
        (AdminError("no answer from 127.0.0.1:8181: refused"), "no answer from 127.0.0.1:8181: refused"),
    ],
)
def test_a_server_that_does_not_explain_is_named(
    served: dict[str, Any], body: object, problem: str, capsys: Captured
) -> None:
    served["body"] = body
    assert cli.main(["explain", "--client", "10.1.2.3", CACHE]) == 2
    assert capsys.readouterr().err == f"{problem}\n"
