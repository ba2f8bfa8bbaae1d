"""The answer of a running server or of manifests, printed."""

import argparse
from collections.abc import Mapping
from pathlib import Path

import pytest

from topodns.cli.admin_client import AdminError
from topodns.cli.inspect import add_answer_flags, print_answer
from topodns.inspect.errors import Refused
from topodns.plugins.kubernetes.clusters import Cluster

DEMO = str(Path(__file__).parents[3] / "config" / "demo" / "Corefile")

Captured = pytest.CaptureFixture[str]


def printed(
    capsys: Captured, *arguments: str, failure: Exception | None = None, manifests_fail: bool = False
) -> tuple[int, str, str]:
    """Exit status, stdout and stderr. A server answers with its address, or with `failure`; manifests with how many
    clusters they are.
    """
    parser = argparse.ArgumentParser()
    add_answer_flags(parser)

    def of_manifests(clusters: list[Cluster]) -> Mapping[str, object]:
        if manifests_fail:
            raise Refused("no such name")
        return {"answer": len(clusters)}

    def of_server(server: str) -> Mapping[str, object]:
        if failure is not None:
            raise failure
        return {"answer": server}

    status = print_answer(parser.parse_args(arguments), of_manifests, of_server, lambda found: f"is {found['answer']}")
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_the_server_on_loopback_is_asked_by_default(capsys: Captured) -> None:
    assert printed(capsys) == (0, "is 127.0.0.1:8181\n", "")
    assert printed(capsys, "--server", "a:1") == (0, "is a:1\n", "")


def test_the_manifests_of_a_corefile_are_read_instead(capsys: Captured) -> None:
    assert printed(capsys, "-conf", DEMO, failure=AdminError("asked")) == (0, "is 1\n", "")


def test_the_answer_may_be_json(capsys: Captured) -> None:
    assert printed(capsys, "--json") == (0, '{\n  "answer": "127.0.0.1:8181"\n}\n', "")


def test_the_reason_for_no_answer_is_a_line_on_standard_error(capsys: Captured, tmp_path: Path) -> None:
    assert printed(capsys, failure=AdminError("no answer")) == (2, "", "no answer\n")
    assert printed(capsys, "-conf", DEMO, manifests_fail=True) == (2, "", "no such name\n")
    corefile = tmp_path / "Corefile"
    corefile.write_text(". {\n kubernetes cluster.local {\n  endpoint http://127.0.0.1:9\n }\n}\n")
    status, out, err = printed(capsys, "-conf", str(corefile))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.endswith("ask a running server (--server)\n")
