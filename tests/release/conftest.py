"""The images of the working tree, for each architecture, assembled once for all tests of them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from release.image import TOOLS, assemble
from release.sbom import LOCK
from release.source import ROOT
from tests.kubelab.images import WHEELS
from tests.support.emulation import why_not_emulated
from tests.support.image_root import Archive


def why_no_image() -> str:
    """Why none can be assembled here; "" if one can."""
    missing = [program for program in ("apt-get", "dpkg-deb") if not shutil.which(program)]
    return f"it takes {' and '.join(missing)}" if missing else ""


@pytest.fixture(scope="session", params=list(WHEELS))
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """The image for Pods, of one architecture and then of the other."""
    if reason := why_no_image():
        pytest.skip(f"NO IMAGE CAN BE ASSEMBLED HERE: {reason}")
    path = tmp_path_factory.mktemp("image") / "topodns.tar"
    assemble(path, architecture=request.param)
    return Archive(path)


@pytest.fixture(scope="session")
def root(archive: Archive, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image for Pods, unpacked."""
    return unpacked(archive, tmp_path_factory.mktemp("unpacked"))


@pytest.fixture(scope="session")
def tools_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image with the package kubernetes, of this machine's architecture, unpacked."""
    if reason := why_no_image():
        pytest.skip(f"NO IMAGE CAN BE ASSEMBLED HERE: {reason}")
    folder = tmp_path_factory.mktemp("tools")
    assemble(folder / "tools.tar", TOOLS, LOCK)
    return unpacked(Archive(folder / "tools.tar"), folder)


def unpacked(archive: Archive, folder: Path) -> Path:
    command = ["unshare", "--mount", "--net", "--pid", "--fork", "true"]
    trial = subprocess.run(command, capture_output=True, text=True, check=False)
    if trial.returncode:
        pytest.skip(f"NO NAMESPACES HERE, nothing of the image is run: {trial.stderr.strip()}")
    architecture = archive.config()["architecture"]
    if reason := why_not_emulated(architecture):
        pytest.skip(f"NOTHING OF {architecture} RUNS HERE: {reason}")
    archive.unpack(folder / "root")
    return folder / "root"


@pytest.fixture
def demo() -> Path:
    return ROOT / "config/demo"
