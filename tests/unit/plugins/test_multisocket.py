"""The number of processes of `multisocket`."""

import os
from pathlib import Path

import pytest

from tests.support.corefile_settings import block_problem, only_block, settings
from topodns.corefile.parser import Directive
from topodns.plugins.context import Context
from topodns.plugins.multisocket import parse_multisocket, process_count, usable_cpus


def test_without_a_number_the_processors_decide() -> None:
    assert only_block("multisocket").settings.get("multisocket") == 0
    assert only_block("multisocket 4").settings.get("multisocket") == 4


def test_no_socket_at_all_is_refused() -> None:
    assert "'multisocket' has '0', expected a whole number from 1 to 1024" in block_problem("multisocket 0")


def test_more_than_coredns_allows_is_refused() -> None:
    assert only_block("multisocket 1024").settings.get("multisocket") == 1024
    assert "'multisocket' has '1025', expected a whole number from 1 to 1024" in block_problem("multisocket 1025")


@pytest.mark.parametrize(
    ("corefile", "count"),
    [
        (". {\n}\n", 1),
        (". {\n multisocket 1\n}\n", 1),
        (". {\n multisocket 3\n}\n", 3),
        (". {\n multisocket\n}\n", 8),
        ("a. {\n multisocket 3\n}\nb. {\n multisocket 5\n}\nc. {\n}\n", 5),
        ("a. {\n multisocket 3\n}\nb. {\n multisocket\n}\n", 8),
    ],
)
def test_the_largest_number_of_all_blocks_counts(corefile: str, count: int) -> None:
    assert process_count(settings(corefile), cpus=8) == count


@pytest.mark.parametrize(("words", "excess"), [((), ()), (("2",), ()), (("3",), ("3 processes on 2 CPUs",))])
def test_a_line_that_requests_more_processes_than_cpus_is_warned_of(
    words: tuple[str, ...], excess: tuple[str, ...]
) -> None:
    lines: list[str] = []
    parse_multisocket(Directive("multisocket", words, (), "Corefile", 9), Context((), warn=lines.append), cpus=2)
    assert lines == [f"plugin/multisocket: {text}: more memory, no more speed (Corefile:9)" for text in excess]


@pytest.mark.parametrize(
    ("quota", "cpus"), [("100000 100000", 1), ("10000 100000", 1), ("max 100000", None), ("nonsense", None)]
)
def test_the_cpus_are_those_that_the_cgroup_grants(tmp_path: Path, quota: str, cpus: int | None) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    assert usable_cpus(str(tmp_path / "cpu.max")) == (cpus or len(os.sched_getaffinity(0)))


def test_without_a_quota_they_are_those_of_the_affinity(tmp_path: Path) -> None:
    assert usable_cpus(str(tmp_path / "none")) == len(os.sched_getaffinity(0))
