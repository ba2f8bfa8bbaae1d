"""This suite leaves nothing on the machine, also where its tests fail."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.support.namespaced_node import namespaces_of
from tests.support.server_process import ROOT, until

FAILING = """
from pathlib import Path

import pytest

from tests.node.conftest import cluster, servers
from tests.support.node_processes import node_cache
from tests.support.namespaced_cluster import LISTENED
from tests.support.stub_resolver_load import asking


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("firewall", ["nftables", "iptables"])
def test_this_fails(cluster, tmp_path, firewall):
    with node_cache(cluster.node, tmp_path, firewall), asking(cluster.pod, LISTENED, 100):
        raise AssertionError("as it should")
"""


def test_a_failing_test_leaves_neither_namespaces_nor_processes(tmp_path: Path) -> None:
    test = tmp_path / "test_failing.py"
    test.write_text(FAILING)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path}/files"]
    with subprocess.Popen(
        [*command, f"--rootdir={ROOT}", str(test)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as pytest_process:
        said, _ = pytest_process.communicate(timeout=60)
    assert "2 failed" in said
    assert said.count("as it should") >= 2
    assert namespaces_of(pytest_process.pid) == []
    until(lambda: not processes_about(str(tmp_path)), "its processes are gone")


def processes_about(text: str) -> list[str]:
    """The command lines, of whatever process, that have this text in them."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it ended meanwhile
            line = path.read_bytes().decode(errors="replace")
            found += [line] if text in line else []
    return found
