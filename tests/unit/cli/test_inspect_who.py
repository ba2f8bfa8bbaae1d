"""`topodns who`: what it prints, and what it asks of a server."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from topodns.cli import main as cli
from topodns.cli.admin_client import EXPECTED, AdminError

DEMO = str(Path(__file__).parents[3] / "config" / "demo" / "Corefile")

Captured = pytest.CaptureFixture[str]


def test_who_reads_the_manifests_of_a_corefile(capsys: Captured) -> None:
    assert cli.main(["who", "--json", "-conf", DEMO, "127.10.0.5"]) == 0
    (cluster,) = json.loads(capsys.readouterr().out)["clusters"]
    assert (cluster["node"], cluster["method"], cluster["zone"]) == ("node-b2", "nodes", "eu-1b")


NODES = "".join(
    f"---\nkind: Node\nmetadata: {{name: n{n}}}\nspec: {{podCIDRs: [10.1.{n}.0/24]}}\n" for n in range(1, 5)
)
POD = """---
kind: Pod
metadata: {name: web, namespace: shop}
spec: {nodeName: n1}
status: {podIPs: [{ip: 10.1.1.7}]}
"""


@pytest.mark.parametrize(("manifests", "node"), [(NODES + POD, "n1"), (NODES, "")])
def test_of_manifests_with_pods_the_bridge_of_a_pod_cidr_is_on_its_node(
    tmp_path: Path, manifests: str, node: str, capsys: Captured
) -> None:
    (tmp_path / "Corefile").write_text(
        ". {\n    kubernetes cluster.local {\n        manifests .\n    }\n    topology\n}\n"
    )
    (tmp_path / "cluster.yaml").write_text(manifests)
    assert cli.main(["who", "--json", "-conf", str(tmp_path / "Corefile"), "10.1.1.1"]) == 0
    (cluster,) = json.loads(capsys.readouterr().out)["clusters"]
    assert (cluster["node"] or "") == node


def test_who_says_in_one_line_why_it_cannot(tmp_path: Path, capsys: Captured) -> None:
    for corefile, address in ((DEMO, "somebody"), (str(tmp_path / "none"), "10.0.0.1")):
        assert cli.main(["who", "-conf", corefile, address]) == 2
        captured = capsys.readouterr()
        assert (captured.out, captured.err.count("\n")) == ("", 1)


def test_who_asks_the_ready_address_on_loopback_by_default(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    asked: list[tuple[str, str, dict[str, str]]] = []

    def fetch(server: str, path: str, arguments: Mapping[str, str], _timeout: float) -> bytes:
        asked.append((server, path, dict(arguments)))
        if len(asked) == 2:
            raise AdminError("no answer")
        return b'{"address": "10.1.2.3", "clusters": []}' if len(asked) == 1 else b'{"question": {}}'

    monkeypatch.setattr("topodns.cli.admin_client.fetch", fetch)
    assert cli.main(["who", "10.1.2.3"]) == 0
    assert capsys.readouterr().out == "address  10.1.2.3\n"
    assert cli.main(["who", "--server", "10.0.0.1:80", "10.1.2.3"]) == 2
    assert capsys.readouterr().err == "no answer\n"
    assert cli.main(["who", "10.1.2.3"]) == 2
    assert capsys.readouterr().err == f"127.0.0.1:8181 does not answer /who; {EXPECTED}\n"
    question = {"client": "10.1.2.3"}
    assert asked[:2] == [("127.0.0.1:8181", "/who", question), ("10.0.0.1:80", "/who", question)]
