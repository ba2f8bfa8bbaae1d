"""The documents' commands that need nothing but this clone run as they are written."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.support.api_objects import namespace, service
from tests.support.documents import ROOT
from tests.support.fake_api.server import running
from tests.support.runnable_blocks import Block, BlockFailed, block, blocks_in
from tests.support.server_process import own_address, until

HERE = Path(__file__).parent
LACKING = [tool for tool in ("curl", "dig") if shutil.which(tool) is None]
needs_curl_and_dig = pytest.mark.skipif(bool(LACKING), reason=f"not installed: {LACKING}, as README's block needs")
# Says of the two ConfigMaps what kubectl does: one member of the one, all of the other or nothing.
KUBECTL = """#!/bin/sh
case "$*" in
  *' configmap coredns -o jsonpath={.data.Corefile}') cat "$COREFILE";;
  *' configmap coredns-custom --ignore-not-found -o json') printf '%s' "$CUSTOM";;
  *) exit 1;;
esac
"""


def marked(*lines: str) -> Block:
    """The block of a document with one."""
    (found,) = blocks_in("a.md", "\n".join(["One does:", "", "<!-- run: one -->", "```sh", *lines, "```", ""]))
    return found


def test_a_block_is_run_with_its_environment_in_the_given_directory(tmp_path: Path) -> None:
    said = marked("pwd", 'echo "$IMAGE" \\', "    and more >&2").run({"IMAGE": "one"}, tmp_path)
    assert said == f"{tmp_path}\none and more\n"


@pytest.mark.parametrize("line", ["false", "false | true", 'echo "$NEVER_SET"', "no-such-command"])
def test_a_block_ends_at_the_first_command_that_fails_and_prints_its_place(line: str) -> None:
    with pytest.raises(BlockFailed, match=r"a\.md:3: one: status [1-9]") as failed:
        marked("echo before", line, "echo after").run({}, HERE)
    before, _, printed = str(failed.value).partition("\nprinted\n")
    assert line in before
    assert printed.startswith("before\n")
    assert "after" not in printed


def test_a_block_that_takes_too_long_is_ended_with_its_output() -> None:
    with pytest.raises(BlockFailed, match=r"not within 0\.5 s(?s:.*)printed\nbefore\n$"):
        marked("echo before", "sleep 600").run({}, HERE, patience=0.5)


def test_a_background_process_of_a_block_ends_with_it() -> None:
    pid = marked("sleep 600 & echo $!").run({}, HERE)
    until(lambda: not Path("/proc", pid.strip(), "exe").exists(), "it has ended")


@pytest.mark.parametrize(
    "text",
    ["<!-- run: one -->\n\n```sh\ntrue\n```\n", "<!-- run: one -->\n```text\n```\n", "<!--run one-->\n```sh\n```\n"],
    ids=["a line between", "no shell", "misspelt"],
)
def test_a_mark_of_nothing_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"b\.md:1: expected <!-- run: NAME -->"):
        list(blocks_in("b.md", text))


def test_the_two_commands_of_the_readme_are_there_and_lead_to_the_server_and_the_tests() -> None:
    said = block("README.md", "two-commands").run({"MAKEFLAGS": "--dry-run --no-print-directory"})
    assert "/topodns -conf config/demo/Corefile -dns.port 5300\n" in said
    assert "-m tests.support.suites tests/unit beside " in said
    assert said.endswith(" tests/stories\n")


@needs_curl_and_dig
def test_pasted_into_one_terminal_the_block_of_the_readme_answers_by_the_clusters_kubeconfig(tmp_path: Path) -> None:
    here, pasted = own_address(), block("README.md", "against-a-cluster")
    with running([namespace("default"), service("kubernetes", cluster_ip="10.96.0.1")]) as api:
        named = {"cluster": {"server": api.url}, "user": {}, "context": {"cluster": "it", "user": "it"}}
        config = {f"{what}s": [{"name": "it", what: value}] for what, value in named.items()}
        (tmp_path / ".kube").mkdir()
        (tmp_path / ".kube/config").write_text(json.dumps({"current-context": "it", **config}))
        said = pasted._replace(text=pasted.text.replace("127.0.0.1", here)).run({"HOME": str(tmp_path)})
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert lines.count("kubernetes.default.svc.cluster.local. 5 IN A 10.96.0.1") == 2  # of dig and of explain
    assert {"OK", f"client {here} on an unknown node", "answer NOERROR"} <= set(lines)


@pytest.mark.parametrize("custom", [{}, {"log.override": "log\n"}], ids=["nothing else", "with coredns-custom"])
def test_the_commands_of_the_guide_show_the_effect_of_a_corefile(tmp_path: Path, custom: dict[str, str]) -> None:
    (tmp_path / "kubectl").write_text(KUBECTL)
    (tmp_path / "kubectl").chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "TOPODNS": str(ROOT),
        "COREFILE": str(ROOT / "config/corefiles/aks/Corefile"),
        "CUSTOM": json.dumps({"data": custom}) if custom else "",
    }
    said = block("docs/migrate/from-coredns.md", "look").run(environment, tmp_path)
    assert "Corefile: the image can be swapped: " in said
    assert ("custom/log.override:1)" in said) == bool(custom)
