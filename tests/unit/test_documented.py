"""docs/reference/flags.md has the flags that there are, the variables that are read, and the signals that are heard."""

import argparse
import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conformance.specs import GROUPS, LEFT_OUT
from tests.differential.differences import DIFFERENCES
from tests.kubelab.programs import BUILDS, KUBERNETES, KUBERNETES_TESTS
from tests.support.certificates import self_signed
from tests.support.command_parsers import COMMANDS, parser_of
from tests.support.documents import DOCUMENTS, ROOT
from tests.support.syntax_trees import nodes_of
from topodns.app.load import settings_from_text
from topodns.cli import main as cli
from topodns.cli.kubectl import plugin_parser
from topodns.nodecache.template import find_cluster_dns
from topodns.plugins.order import ORDER
from topodns.plugins.plugin import load

MANUAL = DOCUMENTS["docs/reference/flags.md"]
FLAG_ROW = re.compile(r"^\| (`-[^|]*`) \| (?:`([^|]*)`)? ?\|", re.MULTILINE)
VARIABLE_ROW = re.compile(
    r"^\| ([^|]*) \| (?:server|node-cache|server, node-cache|audit, locator|all|check, explain, who, top, audit) \|",
    re.MULTILINE,
)
SIGNAL = re.compile(r"SIG[A-Z]+[12]?")
# How the code names the variables that it reads, and what they are called in the manual.
READ_AS = {
    "'KUBECONFIG'": "KUBECONFIG",
    "'NODE_NAME'": "NODE_NAME",
    "'NO_COLOR'": "NO_COLOR",
    "'TERM'": "TERM",
    "NODE_NAME": "NODE_NAME",
    "_HOST": "KUBERNETES_SERVICE_HOST",
    "_PORT": "KUBERNETES_SERVICE_PORT",
    "variable": "NAME_SERVICE_HOST",
    "watchdog.HEARTBEAT_VARIABLE": "TOPODNS_HEARTBEAT_FD",
    "_variable(match)": "any",
}
READ_BY_OPENSSL = {"SSL_CERT_FILE", "SSL_CERT_DIR"}


class Row(NamedTuple):
    flags: str
    default: str


def section(heading: str) -> str:
    found = MANUAL.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    assert found, heading
    return found


def rows_of(parser: argparse.ArgumentParser) -> Iterator[Row]:
    """As the manual is to have them: a name that may have two dashes is written with one."""
    for action in parser._actions:
        names = [name for name in action.option_strings if not (name[1:] in action.option_strings and name[0] == "-")]
        value = "" if action.nargs == 0 else f" {action.metavar or 'SERVER'}"
        if names:
            default = "" if action.default in (None, False, argparse.SUPPRESS) else str(action.default)
            yield Row(", ".join(f"`{name}{value}`" for name in names), default)


@COMMANDS
def test_every_flag_is_in_the_manual_with_its_default(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    documented = [Row(*found) for found in FLAG_ROW.findall(section(words[0] if words else "Serve"))]
    actual = list(rows_of(parser_of(monkeypatch, *words)))
    assert sorted(documented) == sorted(actual)


def test_every_flag_of_the_kubectl_plugin_is_in_the_manual_with_its_default() -> None:
    (commands,) = (action.choices for action in plugin_parser()._actions if isinstance(action.choices, dict))
    actual = {row for parser in commands.values() for row in rows_of(parser)}
    documented = [Row(*found) for found in FLAG_ROW.findall(section("kubectl topodns"))]
    assert sorted(documented) == sorted(actual)


def test_a_flag_may_have_one_dash_or_two_and_its_value_behind_an_equals_sign_and_a_switch_has_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    corefile = str(ROOT / "config/demo/Corefile")
    for words in (
        ["-conf", corefile],
        ["--conf", corefile],
        [f"-conf={corefile}"],
        ["-conf", "none", "-conf", corefile],
    ):
        assert cli.main(["check", *words]) == 0
    with pytest.raises(SystemExit, match="2"):
        cli.main(["-version=true"])
    assert "-version" in capsys.readouterr().err


def variables_read() -> set[str]:
    """Each expression by which some module takes a variable out of an environment."""
    found = set()
    for path in (ROOT / "topodns").rglob("*.py"):
        for node in nodes_of(path) if "environ" in path.read_text(encoding="utf-8") else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
                of, name = ast.unparse(node.func.value), ast.unparse(node.args[0])
            elif isinstance(node, ast.Subscript):
                of, name = ast.unparse(node.value), ast.unparse(node.slice)
            else:
                continue
            if of.endswith(("environ", "environment")):
                found.add(name)
    return found


def test_every_variable_that_is_read_is_in_the_manual() -> None:
    assert variables_read() == READ_AS.keys()
    cells = ", ".join(VARIABLE_ROW.findall(section("Environment variables")))
    assert set(re.findall(r"\w+", cells)) == {*READ_AS.values(), *READ_BY_OPENSSL}


def test_the_variable_of_a_service_is_named_as_the_manual_says() -> None:
    assert (
        find_cluster_dns("kube-dns-upstream", {"KUBE_DNS_UPSTREAM_SERVICE_HOST": "10.96.0.11"}).address == "10.96.0.11"
    )


def test_every_signal_that_is_heard_is_in_the_manual() -> None:
    heard = set(
        re.findall(r"\bsignal\.(SIG[A-Z]+[12]?)", (ROOT / "topodns/app/signals.py").read_text(encoding="utf-8"))
    )
    rows = re.findall(r"^\| (SIG[^|]*) \|", section("Signals"), re.MULTILINE)
    assert {name for row in rows for name in SIGNAL.findall(row)} == heard


# docs/develop/conformance.md has the specs that tests/conformance runs, and the pinned version of Kubernetes.

DOCUMENT = DOCUMENTS["docs/develop/conformance.md"]
CONFORMANCE = "[Conformance]"


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_has_a_row_with_the_numbers_of_its_specs(group: str) -> None:
    names = GROUPS[group]
    required = sum(CONFORMANCE in name for name in names)
    (row,) = re.findall(rf"^\| {re.escape(group)} \|.*$", DOCUMENT, re.MULTILINE)
    assert row.endswith(f"| {len(names)} | {required} | {len(names)} | {len(names)} |")


@pytest.mark.parametrize("part", LEFT_OUT)
def test_specs_that_are_left_out_have_a_row_with_the_reason(part: str) -> None:
    assert f"| `{part}` | {LEFT_OUT[part]} |" in DOCUMENT


def test_no_spec_is_in_two_groups() -> None:
    names = [name for names in GROUPS.values() for name in names]
    assert len(set(names)) == len(names)
    required = sum(CONFORMANCE in name for name in names)
    assert f"All {len(names)} specs, of which {required} are" in " ".join(DOCUMENT.split())


def test_the_tests_are_of_the_version_of_the_lab() -> None:
    assert KUBERNETES_TESTS.version == KUBERNETES.version
    assert f"Kubernetes {KUBERNETES.version}" in DOCUMENT
    pinned = [
        re.findall(r"k8s\.io/\S+ => (\S+ v\S+)", (build.source / "go.mod").read_text())
        for build in (KUBERNETES, KUBERNETES_TESTS)
    ]
    assert pinned[0] == pinned[1]


def test_a_lab_does_not_need_them() -> None:
    assert KUBERNETES_TESTS not in BUILDS


# The differences that tests/differential accepts are those that the documents list.

DIFFERENCES_DOCUMENT = Path(__file__).parents[2] / "docs/reference/differences-from-coredns.md"
ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \|$", re.MULTILINE)


def test_every_difference_in_replies_is_documented_and_no_other_one() -> None:
    section = DIFFERENCES_DOCUMENT.read_text(encoding="utf-8").partition("\n## Replies\n")[2].partition("\n## ")[0]
    named = [name for name in ROW.findall(section) if name not in ("difference", "---")]
    assert named
    assert sorted(named) == sorted(difference.name for difference in DIFFERENCES)


def test_all_directives_that_add_up_are_named_where_the_others_are_refused_a_second_time() -> None:
    (sentence,) = re.findall(r"several ((?:`\w+`,?\s*(?:and\s+)?){4,})", DOCUMENTS["docs/reference/corefile.md"])
    assert set(re.findall(r"`(\w+)`", sentence)) == {directive for directive in ORDER if load(directive).adds_up}


def test_every_difference_has_a_name_of_its_own() -> None:
    assert [name for name, count in Counter(each.name for each in DIFFERENCES).items() if count > 1] == []


# Corefiles: every example of the manual is a good one, and every directive has one.

COREFILE_MANUAL = DOCUMENTS["docs/reference/corefile.md"]
EXAMPLES = re.findall(
    r"^```corefile\n(.*?)^```$", COREFILE_MANUAL.replace("tls.crt tls.key", self_signed()), re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.splitlines()[0])
def test_every_example_of_the_manual_is_a_good_corefile(example: str) -> None:
    assert settings_from_text(example, str(ROOT / "Corefile"), 53, {}).blocks


def test_the_manual_has_a_section_and_an_example_for_every_directive() -> None:
    sections = set(re.findall(r"^### (\w+)$", COREFILE_MANUAL, re.MULTILINE))
    shown = {
        directive
        for example in EXAMPLES
        for block in settings_from_text(example, str(ROOT / "Corefile"), 53, {}).blocks
        for directive in block.directives
    }
    assert sections == set(ORDER)
    assert shown == set(ORDER)
