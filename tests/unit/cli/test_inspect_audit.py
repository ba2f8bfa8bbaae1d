"""`topodns audit`: what it prints, its exit status, and what it asks of a server."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from topodns.cli import main as cli
from topodns.cli.admin_client import AdminError

DEMO = Path(__file__).parents[3] / "config" / "demo"
COREFILE, MANIFESTS = str(DEMO / "Corefile"), str(DEMO / "cluster")

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize("source", [("-conf", COREFILE), ("--manifests", MANIFESTS)])
def test_audit_reads_manifests(source: tuple[str, str], capsys: Captured) -> None:
    assert cli.main(["audit", "--json", *source]) == 1
    (cluster,) = json.loads(capsys.readouterr().out)["clusters"]
    assert (cluster["nodes"], len(cluster["services"]), cluster["counts"]["error"]) == (9, 8, 4)


@pytest.mark.parametrize(
    ("change", "fail_on", "status"),
    [
        ("keys=shop/cache:*", "error", 1),
        ("keys=shop/cache:*", "never", 0),
        ("zone=eu-1c:down", "error", 1),
    ],
)
def test_the_exit_status_is_by_the_worst_finding(change: str, fail_on: str, status: int, capsys: Captured) -> None:
    assert cli.main(["audit", "--manifests", MANIFESTS, "--what-if", change, "--fail-on", fail_on]) == status
    assert capsys.readouterr().out.startswith(f"what if {change}\n")


def one_service(tmp_path: Path, keys: str, zones: str) -> list[str]:
    """Arguments for a cluster of these zones, a Node in each, and a Service with an endpoint on the first Node."""
    namespace = {"kind": "Namespace", "metadata": {"name": "default"}}
    nodes = [
        {"kind": "Node", "metadata": {"name": f"n{at}", "labels": {"topology.kubernetes.io/zone": one}}}
        for at, one in enumerate(zones)
    ]
    service = {
        "kind": "Service",
        "metadata": {"name": "db", "annotations": {"topodns.io/topology-keys": keys}},
        "spec": {"clusterIP": "None"},
    }
    slices = {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"name": "db-1", "labels": {"kubernetes.io/service-name": "db"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "nodeName": "n0"}],
    }
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [namespace, *nodes, service, slices]}))
    return ["audit", "--manifests", str(file)]


@pytest.mark.parametrize(
    ("keys", "zones", "worst"),
    [
        ("topology.kubernetes.io/zone", "ab", "error"),
        ("topology.kubernetes.io/zone", "aa", "warning"),
        ("kubernetes.io/hostname", "a", "never"),
    ],
)
def test_fail_on_sets_the_severity_that_fails(keys: str, zones: str, worst: str, tmp_path: Path) -> None:
    arguments = one_service(tmp_path, keys, zones)
    severities = ["never", "error", "warning", "info"]
    statuses = [cli.main([*arguments, "--fail-on", severity]) for severity in severities]
    expected = {"error": [0, 1, 1, 1], "warning": [0, 0, 1, 1], "never": [0, 0, 0, 0]}
    assert statuses == expected[worst]
    assert cli.main(arguments) == int(worst == "error")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["-conf", "/nowhere/Corefile"], "/nowhere/Corefile: cannot be read: No such file or directory"),
        (["--manifests", "/nowhere"], "nothing to audit: 1 manifest file cannot be read"),
        (["--kubeconfig", "/nowhere"], "cannot read /nowhere: "),
        (["--manifests", MANIFESTS, "--what-if", "node=a1"], "found 'node=a1', expected node=NAME:down"),
        (["--manifests", MANIFESTS, "--what-if", "node=a1:down"], "no Node is named 'a1'"),
        (
            ["--manifests", MANIFESTS, "--what-if", "keys=default/kubernetes:*"],
            "Service default/kubernetes is not headless: expected a headless one",
        ),
    ],
)
def test_without_an_audit_the_status_is_2_with_the_reason(arguments: list[str], problem: str, capsys: Captured) -> None:
    assert cli.main(["audit", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[-1].startswith(problem)


def test_a_corefile_without_topology_has_nothing_to_audit(tmp_path: Path, capsys: Captured) -> None:
    corefile = tmp_path / "Corefile"
    corefile.write_text(f"cluster.local {{\nkubernetes {{\nmanifests {MANIFESTS}\n}}\n}}\n")
    assert cli.main(["audit", "-conf", str(corefile)]) == 2
    assert capsys.readouterr().err == "nothing to audit: no server block has the directive `topology`\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["-conf", COREFILE, "--server", "127.0.0.1:1"],
        ["--manifests", MANIFESTS, "--kubeconfig"],
        ["--manifests", MANIFESTS, "--context", "lab"],
        ["--fail-on", "everything"],
    ],
)
def test_flags_that_contradict_each_other_are_wrong_usage(arguments: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["audit", *arguments])
    assert ended.value.code == 2
    assert capsys.readouterr().out == ""


CLUSTER = {
    "origins": [],
    "waiting": [],
    "nodes": 0,
    "counts": {"error": 0, "warning": 0, "info": 0},
    "others": [],
    "others_left_out": 0,
    "services": [],
    "services_left_out": 0,
    "what_if": None,
}


UNREADABLE = """kind: Service
metadata:
  name: db
  namespace: shop
  annotations: {%s: %s}
spec: {clusterIP: None}
"""


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("[zone]", """found ["zone"]: write its items as one text, such as 'a,b'"""),
        ("5", "found 5: put it in quotes"),
        ("yes", "found true: put it in quotes"),
    ],
)
def test_an_annotation_of_topodns_with_no_text_is_a_finding(
    tmp_path: Path, value: str, problem: str, capsys: Captured
) -> None:
    path = tmp_path / "db.yaml"
    path.write_text(UNREADABLE % ("topodns.io/topology-keys", value))
    assert cli.main(["audit", "--manifests", str(path), "--wide"]) == 1
    out, err = capsys.readouterr()
    text = f"error   shop/db: annotation: annotation 'topodns.io/topology-keys': expected text, {problem}"
    assert f"{text}; it has no effect\n" in out
    assert "not complete" not in out
    assert "left out" not in err


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("[zone]", """found ["zone"]: write its items as one text, such as 'a,b'"""),
        ("5", "found 5: put it in quotes"),
        ("yes", "found true: put it in quotes"),
    ],
)
def test_an_object_that_cannot_be_read_makes_the_audit_incomplete(
    tmp_path: Path, value: str, problem: str, capsys: Captured
) -> None:
    path = tmp_path / "db.yaml"
    path.write_text(UNREADABLE % ("example.com/owner", value))
    (tmp_path / "Corefile").write_text(". {\nkubernetes cluster.local {\nmanifests db.yaml\n}\ntopology\n}\n")
    line = f"{path}:1: Service shop/db: left out metadata.annotations.example.com/owner: expected text, {problem}"
    for source in (["--manifests", str(path)], ["-conf", str(tmp_path / "Corefile")]):
        assert cli.main(["audit", *source, "--fail-on", "never"]) == 2
        out, err = capsys.readouterr()
        assert out.splitlines()[0] == f"not complete: {line}"
        assert line in err
    assert cli.main(["audit", "--manifests", str(path), "--json"]) == 2
    (cluster,) = json.loads(capsys.readouterr().out)["clusters"]
    assert cluster["skipped"] == [line]


def test_audit_asks_the_ready_address_on_loopback_by_default(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    asked: list[tuple[str, str, dict[str, str]]] = []

    def fetch(server: str, path: str, arguments: Mapping[str, str], timeout: float) -> bytes:
        asked.append((server, path, dict(arguments)))
        if len(asked) == 2:
            raise AdminError("no answer")
        return json.dumps({"version": 1, "clusters": [CLUSTER]}).encode()

    monkeypatch.setattr("topodns.cli.admin_client.fetch", fetch)
    assert cli.main(["audit"]) == 0
    assert capsys.readouterr().out == "0 Nodes, 0 Services with keys or guards: nothing found\n"
    changes = ["--what-if", "node=a:down", "--what-if", "keys=shop/db:none"]
    assert cli.main(["audit", "--server", "10.0.0.1:80", *changes]) == 2
    assert capsys.readouterr().err == "no answer\n"
    what_if = {"what-if": "node=a:down;keys=shop/db:none"}
    assert asked == [("127.0.0.1:8181", "/audit", {}), ("10.0.0.1:80", "/audit", what_if)]


@pytest.mark.parametrize(
    ("cluster", "status"),
    [
        ({**CLUSTER, "waiting": ["Pod: denied"]}, 2),
        ({**CLUSTER, "skipped": ["skipped Service shop/db: no name"]}, 2),
        ({**CLUSTER, "counts": {"error": 1, "warning": 0, "info": 0}}, 1),
        ({"origins": []}, 2),
        ([], 2),
    ],
)
def test_the_reply_of_a_server_decides(
    cluster: object, status: int, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """An audit of a cluster that is not known whole proves nothing, and one of another version cannot be read."""
    reply = json.dumps({"version": 1, "clusters": [cluster]}).encode()
    monkeypatch.setattr("topodns.cli.admin_client.fetch", lambda *_: reply)
    assert cli.main(["audit"]) == status
    assert capsys.readouterr()
