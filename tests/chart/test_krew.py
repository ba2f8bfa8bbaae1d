"""krew itself takes the manifest of the kubectl plugin, and installs the archive that it names."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.krew import write_krew
from release.source import ROOT, VERSION
from tests.support.chart.tools import KREW

REPOSITORY = "https://example.com/topodns"

pytestmark = pytest.mark.skipif(
    bool(KREW.missing), reason="NO KREW HERE: run `make test-chart`, which builds it where Go is"
)


def installed(folder: Path, manifest: Path, archive: Path) -> "subprocess.CompletedProcess[str]":
    """`krew install` into this folder; no network is used: the archive is taken in place of the manifest's `uri`."""
    command = [str(KREW.folder / "krew"), "install", f"--manifest={manifest}", f"--archive={archive}"]
    environment = {**os.environ, "KREW_ROOT": str(folder / "krew"), "HOME": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_krew_installs_a_plugin_that_runs_without_python(tmp_path: Path) -> None:
    archive, manifest = write_krew(tmp_path / "dist", REPOSITORY)
    run = installed(tmp_path, manifest, archive)
    assert run.returncode == 0, run.stderr
    assert f"Documentation:\n\t{REPOSITORY}" in run.stderr.replace(" | ", "")
    plugin = tmp_path / "krew/bin/kubectl-topodns"
    assert plugin.read_bytes() == (ROOT / "topodns/cli/kubectl-topodns.sh").read_bytes()
    helped = subprocess.run([plugin, "--help"], capture_output=True, text=True, env={"PATH": "/bin"}, check=False)
    assert (helped.returncode, helped.stdout.splitlines()[0]) == (0, "usage: kubectl topodns COMMAND [ARGUMENT...]")
    (store,) = (tmp_path / "krew/store/topodns").iterdir()
    assert {path.name for path in store.iterdir()} == {"kubectl-topodns", "LICENSE"}


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("version", VERSION, "failed to parse plugin version"),
        ("shortDescription", "", "should have a short description"),
        ("platforms", [], "should have a platform specified"),
    ],
)
def test_krew_refuses_what_breaks_its_rules(tmp_path: Path, key: str, value: Any, complaint: str) -> None:
    """So the test above is one that can fail."""
    archive, manifest = write_krew(tmp_path / "dist", REPOSITORY)
    content = yaml.safe_load(manifest.read_text())
    content["spec"][key] = value
    manifest.write_text(yaml.safe_dump(content))
    run = installed(tmp_path, manifest, archive)
    assert run.returncode != 0
    assert complaint in run.stderr


def test_krew_compares_the_checksum_of_the_archive(tmp_path: Path) -> None:
    archive, manifest = write_krew(tmp_path / "dist", REPOSITORY)
    archive.write_bytes(archive.read_bytes() + b"\0")
    run = installed(tmp_path, manifest, archive)
    assert run.returncode != 0
    assert "checksum" in run.stderr


def test_the_archive_has_the_same_octets_each_time_and_is_among_the_files_of_the_release(tmp_path: Path) -> None:
    first, manifest = write_krew(tmp_path / "first", f"{REPOSITORY}/")
    assert first.read_bytes() == write_krew(tmp_path / "second", REPOSITORY)[0].read_bytes()
    (platform,) = yaml.safe_load(manifest.read_text())["spec"]["platforms"]
    assert platform["uri"] == f"{REPOSITORY}/releases/download/v{VERSION}/{first.name}"
