"""`topodns check`: what it prints and returns for a Corefile and its files."""

import io
import json
import os
from pathlib import Path

import pytest

from topodns.cli import main as cli

DEMO = str(Path(__file__).parents[3] / "config" / "demo" / "Corefile")


Captured = pytest.CaptureFixture[str]


def test_check_says_that_a_corefile_is_good(capsys: Captured) -> None:
    assert cli.main(["check", "-conf", DEMO]) == 0
    assert capsys.readouterr().out == f"{DEMO}: good: 1 server block\n"


FAULTS = [
    ("an unknown directive", ". {\n    whoamy\n}", "Corefile:2: unknown directive 'whoamy', did you mean 'whoami'?"),
    ("an unknown option", ". {\n    health {\n        lameduk 5s\n    }\n}", "Corefile:3: "),
    ("a wrong argument", ". {\n    whoami\n    bufsize tiny\n}", "Corefile:3: "),
    ("a directive twice", ". {\n    errors\n    errors\n}", "Corefile:3: found 'errors' again, first at "),
    (
        "what only CoreDNS has",
        ". {\n    etcd\n}",
        "Corefile:2: CoreDNS has the directive 'etcd', topodns does not: `forward` the",
    ),
    ("no such path", ". {\n    kubernetes {\n        manifests nowhere\n    }\n}", "Corefile:3: "),
    ("a block without an end", ". {\n    whoami\n", "Corefile:1: "),
    ("no server block", "", "Corefile: found no server block"),
]


@pytest.mark.parametrize(("text", "problem"), [case[1:] for case in FAULTS], ids=[case[0] for case in FAULTS])
def test_check_prints_the_problem_and_its_place(tmp_path: Path, text: str, problem: str, capsys: Captured) -> None:
    path = tmp_path / "Corefile"
    path.write_text(text)
    assert cli.main(["check", "-conf", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"{tmp_path}/{problem}")
    assert captured.err.count("\n") == 1


def test_check_warns_of_an_import_that_finds_nothing(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "Corefile"
    path.write_text(". {\n    import custom/*.override\n    whoami\n}\n")
    assert cli.main(["check", "-conf", str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.err == f"[WARNING] No files matching import glob pattern: custom/*.override ({path}:2)\n"
    assert captured.out == f"{path}: good: 1 server block, 1 warning\n"


@pytest.mark.parametrize(("number", "warned"), [("", False), ("1", False), ("2", True)])
def test_check_warns_of_more_processes_than_cpus(
    tmp_path: Path, number: str, warned: bool, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3})
    path, imported = tmp_path / "Corefile", tmp_path / "more.conf"
    path.write_text(". {\n    import more.conf\n    whoami\n}\n")
    imported.write_text(f"errors\nmultisocket {number}\n")
    assert cli.main(["check", "-conf", str(path)]) == 0
    place = f"({imported}:2)"
    line = f"[WARNING] plugin/multisocket: 2 processes on 1 CPU: more memory, no more speed {place}\n"
    count = ", 1 warning" if warned else ""
    assert capsys.readouterr() == (f"{path}: good: 1 server block{count}\n", line if warned else "")


def test_check_warns_of_an_address_that_this_machine_does_not_have(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "Corefile"
    path.write_text(". {\n    bind 127.10.0.1 0.0.0.0 203.0.113.9\n    whoami\n}\n")
    assert cli.main(["check", "-conf", str(path)]) == 0
    assert capsys.readouterr().err == (
        f"[WARNING] plugin/bind: 203.0.113.9 is no address of this machine, which cannot serve the block at {path}:1\n"
    )


KUBECONFIG = """apiVersion: v1
kind: Config
current-context: lab
contexts: [{name: lab, context: {cluster: lab}}]
clusters: [{name: lab, cluster: {server: "https://127.0.0.1:1"}}]
"""


@pytest.mark.parametrize(
    ("text", "context", "problem"),
    [
        (KUBECONFIG, "", ""),
        (KUBECONFIG, "prod", "no 'prod' among its contexts"),
        ("contexts: [", "", "line 1: "),
        ("", "", "0 objects, expected one of kind Config"),
    ],
)
def test_check_reads_kubeconfigs_without_asking_a_server(
    tmp_path: Path, text: str, context: str, problem: str, capsys: Captured
) -> None:
    path = tmp_path / "Corefile"
    path.write_text(f"cluster.local {{\n    kubernetes {{\n        kubeconfig config {context}\n    }}\n}}\n")
    (tmp_path / "config").write_text(text)
    assert cli.main(["check", "-conf", str(path)]) == bool(problem)
    got = capsys.readouterr().err
    assert got.startswith(f"{path}:3: {tmp_path}/config: {problem}") if problem else not got


WITH_MANIFESTS = "cluster.local {\n    kubernetes {\n        manifests .\n    }\n    topology\n}\n"


BAD_KEYS = """apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, annotations: {topodns.io/topology-keys: "a b"}}
spec: {clusterIP: None}
"""


MANIFEST_FAULTS = [
    ("a file that cannot be read", "kind: [", 1, "a.yaml:1: "),
    ("and the last line", "kind: [", 1, "/Corefile: not good: 1 manifest file cannot be read\n"),
    (
        "an object that is malformed",
        "kind: Service\nmetadata: {name: 5}\n",
        1,
        "a.yaml:1: skipped Service (unnamed): metadata.name is read as 5, expected text: put it in quotes\n",
    ),
    (
        "two of them",
        "kind: Service\nmetadata: {name: 5}\n---\nkind: Service\n",
        1,
        "/Corefile: not good: 2 objects cannot be read\n",
    ),
    (
        "a kubeconfig",
        "apiVersion: v1\nkind: Config\nclusters: []\n",
        0,
        "a.yaml:1: a kubeconfig, which has no objects; the option for it is `kubeconfig`\n",
    ),
    (
        "keys that break a rule, as in an audit",
        BAD_KEYS,
        1,
        "a.yaml:1: error: Service shop/web: annotation 'topodns.io/topology-keys': expected a label key or *, found",
    ),
    (
        "a guard without quotes, of an object that is read",
        BAD_KEYS.replace('topology-keys: "a b"', "min-endpoints: 2"),
        1,
        "a.yaml:1: error: Service shop/web: annotation 'topodns.io/min-endpoints': expected text, found 2: put it in "
        "quotes; it has no effect\n",
    ),
    (
        "a Service with a fault has its place",
        f"kind: Node\nmetadata: {{name: a}}\n---\n{BAD_KEYS}",
        1,
        "/a.yaml:4: error: ",
    ),
    (
        "a guard alone",
        BAD_KEYS.replace('topology-keys: "a b"', 'min-endpoints: "2"'),
        0,
        "a.yaml:1: warning: Service shop/web: annotation 'topodns.io/min-endpoints' has no effect without",
    ),
]


@pytest.mark.parametrize(
    ("text", "status", "problem"), [case[1:] for case in MANIFEST_FAULTS], ids=[case[0] for case in MANIFEST_FAULTS]
)
def test_check_reads_the_manifests_too(tmp_path: Path, text: str, status: int, problem: str, capsys: Captured) -> None:
    (tmp_path / "Corefile").write_text(WITH_MANIFESTS)
    (tmp_path / "a.yaml").write_text(text)
    assert cli.main(["check", "-conf", str(tmp_path / "Corefile")]) == status
    err = capsys.readouterr().err
    assert problem in err
    assert err.count("put it in quotes") <= 1
    assert ("cannot be read" in err) == (status == 1 and "topodns.io" not in text)


def test_a_finding_about_a_line_of_the_corefile_begins_with_its_place(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "Corefile"
    path.write_text(WITH_MANIFESTS.replace("topology", "topology {\n        default rack namespaces shpo\n    }"))
    (tmp_path / "a.yaml").write_text("kind: Namespace\nmetadata: {name: shop}\n")
    place = f"{path}:6: "
    text = "'default' names the namespace 'shpo', which does not exist, did you mean 'shop'?"
    assert cli.main(["check", "-conf", str(path)]) == 0
    assert capsys.readouterr().err == f"{place}warning: {text}\n"
    assert cli.main(["check", "--json", "-conf", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == [f"{place}warning: {text}"]


FROM_COREDNS = ["check", "--from", "coredns"]


def test_check_from_coredns_prints_the_effect_of_each_line(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "Corefile"
    path.write_text(". {\n    whoami\n    metadata\n}\n")
    assert cli.main([*FROM_COREDNS, "-conf", str(path)]) == 0
    assert capsys.readouterr() == (
        "can change an answer:\n"
        "  metadata: labels are those of `kubernetes` and `view`; those of a client's Pod need no `pods verified`, and "
        f"none of a hostNetwork Pod; .Meta of `template` is empty ({path}:3)\n"
        "the same as in CoreDNS:\n"
        f"  block ., whoami ({path}:1, 2)\n"
        f"{path}: the image can be swapped: 2 same, 1 different\n",
        "",
    )


def test_check_from_coredns_is_1_where_something_is_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b". {\n    etcd\n    whoami\n}\n")))
    assert cli.main([*FROM_COREDNS, "-conf", "stdin"]) == 1
    assert capsys.readouterr().out.endswith("stdin: not as it is: 2 same, 1 not supported\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(FROM_COREDNS) == 1
    assert capsys.readouterr() == ("", "Corefile: cannot be read: No such file or directory\n")


def test_check_from_coredns_is_1_where_a_file_would_stop_the_start(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "bad.zone").write_text("broken (")
    path = tmp_path / "Corefile"
    path.write_text("z.test {\n    file bad.zone\n}\n")
    assert cli.main([*FROM_COREDNS, "-conf", str(path)]) == 1
    assert capsys.readouterr().err == f"{tmp_path}/bad.zone:1: a parenthesis that is never closed (zone z.test.)\n"


def test_check_reads_a_corefile_from_stdin(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(b". {\n    whoami\n}\nexample.org example.net {\n    whoami\n}\n"))
    )
    assert cli.main(["check", "-conf", "stdin"]) == 0
    assert capsys.readouterr().out == "stdin: good: 2 server blocks\n"


def test_without_a_corefile_the_built_in_one_is_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["check"]) == 0
    assert capsys.readouterr().out == "built-in Corefile: good: 1 server block, 1 warning\n"
    (tmp_path / "Corefile").write_text(". {\n    whoamy\n}\n")
    assert cli.main(["check"]) == 1
    assert capsys.readouterr().err.startswith("Corefile:2: ")


def test_check_lists_all_errors(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "Corefile"
    path.write_text(". {\n    whoamy\n    bufsize 1\n}\n")
    assert cli.main(["check", "-conf", str(path)]) == 1
    assert capsys.readouterr() == (
        "",
        f"{path}:2: unknown directive 'whoamy', did you mean 'whoami'?\n"
        f"{path}:3: 'bufsize' has '1', expected a whole number from 512 to 4096\n",
    )


def test_check_as_json_has_the_errors_with_their_places(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "Corefile"
    path.write_text(". {\n    whoamy\n    bufsize 1\n}\n")
    assert cli.main(["check", "--json", "-conf", str(path)]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out) == {
        "corefile": str(path),
        "good": False,
        "server_blocks": 0,
        "errors": [
            {"file": str(path), "line": 2, "problem": "unknown directive 'whoamy', did you mean 'whoami'?"},
            {"file": str(path), "line": 3, "problem": "'bufsize' has '1', expected a whole number from 512 to 4096"},
        ],
        "warnings": [],
    }


def test_check_as_json_has_warnings_and_with_from_the_remarks(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "Corefile"
    path.write_text("a.org {\n    whoami\n    log b.org\n}\n")
    assert cli.main(["check", "--from", "coredns", "--json", "-conf", str(path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["good"], found["server_blocks"], found["errors"]) == (True, 1, [])
    assert found["warnings"] == [
        f"plugin/log: no query for 'b.org.' comes here: it is outside the zones of the server block ({path}:3)"
    ]
    assert list(found["remarks"]) == ["changes no answer, bound or timing", "the same as in CoreDNS"]
    (remark,) = found["remarks"]["the same as in CoreDNS"]
    assert remark == {
        "verdict": "same",
        "text": "",
        "subjects": ["block a.org", "whoami"],
        "places": [{"file": str(path), "line": 1}, {"file": str(path), "line": 2}],
    }


@pytest.mark.parametrize("text", [None, "a\nkind: ["])
def test_check_as_json_has_files_that_cannot_be_read(tmp_path: Path, text: str | None, capsys: Captured) -> None:
    path = tmp_path / "Corefile"
    if text is not None:
        path.write_text("a.org {\n    file a.org.zone\n}\n")
        (tmp_path / "a.org.zone").write_text("broken (")
    assert cli.main(["check", "--json", "-conf", str(path)]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["errors"]
    assert problem["problem"].startswith("cannot be read: " if text is None else f"{tmp_path}/a.org.zone:1: ")
