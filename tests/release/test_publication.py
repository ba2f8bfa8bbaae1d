"""What one tag publishes, made of the last commit in a scratch clone, and read back: by us, helm, and a registry."""

import hashlib
import json
import shutil
import socket
import subprocess
import tarfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from release import publication
from release.image import NAME, labels
from release.publication import CHECKSUMS, INDEXES, NOTES, PACKAGE, Unready, index_digest
from release.source import VERSION, revision
from tests.kubelab.cache import filling
from tests.kubelab.debian import RELEASE
from tests.kubelab.images import WHEELS
from tests.kubelab.programs import PROGRAMS, place
from tests.release.conftest import why_no_image
from tests.support.chart.helm import build_helm, helm
from tests.support.emulation import MACHINES
from tests.support.image_root import Archive
from tests.support.server_process import until

INDEX = "application/vnd.oci.image.index.v1+json"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a release."""
    if reason := why_no_image():
        pytest.skip(f"NO RELEASE CAN BE MADE HERE: {reason}")
    try:
        build_helm()
    except (OSError, subprocess.CalledProcessError) as problem:
        pytest.skip(f"NO RELEASE CAN BE MADE HERE: helm cannot be built: {problem}")
    made = tmp_path_factory.mktemp("dist")
    publication.dry_run(made)
    return made


def test_everything_is_there_and_named_by_the_version(dist: Path) -> None:
    assert {path.name for path in dist.iterdir()} == {
        CHECKSUMS,
        NOTES,
        f"topodns-{VERSION}-py3-none-any.whl",
        f"topodns-{VERSION}.tar.gz",
        f"topodns-{VERSION}.tgz",
        f"kubectl-topodns-{VERSION}.tar.gz",
        f"topodns-{VERSION}.cdx.json",
        f"topodns-{VERSION}.image.cdx.json",
        f"topodns-{VERSION}.index.tar",
        f"topodns-tools-{VERSION}.index.tar",
    }


def test_the_checksums_are_those_of_all_files(dist: Path) -> None:
    done = subprocess.run(["sha256sum", "--check", CHECKSUMS], cwd=dist, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(list(dist.iterdir())) - 1


def test_the_notes_are_the_changes_of_this_version(dist: Path) -> None:
    notes = (dist / NOTES).read_text()
    assert notes.startswith("### Added\n")
    assert f"## [{VERSION}]" not in notes
    assert notes.rstrip() in publication.CHANGELOG.read_text()


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_has_both_architectures_and_every_blob_its_digest(dist: Path, name: str) -> None:
    archive = Archive(dist / INDEXES[name])
    assert archive.top()["mediaType"] == INDEX
    assert archive.top()["annotations"] == {"io.containerd.image.name": f"docker.io/library/{name}"}
    with tarfile.open(archive.path) as tar:
        blobs = {each.name.rpartition("/")[2]: each for each in tar.getmembers() if each.name.startswith("blobs/")}
        for digest, member in blobs.items():
            content = tar.extractfile(member)
            assert content is not None
            assert hashlib.file_digest(content, "sha256").hexdigest() == digest  # type: ignore[arg-type]
    images = [Archive(archive.path, architecture) for architecture in WHEELS]
    assert [image.config()["architecture"] for image in images] == list(WHEELS) == list(MACHINES)
    named = [index_digest(archive.path)]
    named += [each["digest"] for image in images for each in (image.manifest()["config"], *image.manifest()["layers"])]
    assert {digest.removeprefix("sha256:") for digest in named} < blobs.keys()
    assert len(blobs) == len(named) + len(images)


def test_the_image_is_of_the_tagged_commit(dist: Path) -> None:
    prefix = "org.opencontainers.image"
    found = Archive(dist / INDEXES[NAME], "arm64").config()["config"]["Labels"]
    assert found.keys() == labels().keys()
    assert found[f"{prefix}.version"] == VERSION
    assert found[f"{prefix}.revision"] not in ("", revision())  # the commit that dates the changelog


def test_helm_reads_the_package_of_the_chart(dist: Path) -> None:
    shown = subprocess.run(helm("show", "chart", dist / PACKAGE), capture_output=True, text=True, check=True).stdout
    chart = yaml.safe_load(shown)
    assert (chart["name"], chart["version"], chart["appVersion"]) == ("topodns", VERSION, VERSION)
    with tarfile.open(dist / PACKAGE) as tar:
        assert {(each.uid, each.uname) for each in tar} == {(0, "")}


def test_a_registry_has_images_and_chart_by_the_digests_that_are_printed(dist: Path, tmp_path: Path) -> None:
    if not shutil.which("skopeo"):
        pytest.skip("NOTHING IS PUSHED HERE: it takes Debian's skopeo")
    with registry(tmp_path) as address:
        digests = publication.push(dist, f"{address}/example", plain_http=True)
        assert digests.keys() == {"topodns", "topodns-tools", "chart"}
        assert digests["topodns"] == index_digest(dist / INDEXES[NAME])
        index = fetched(f"{address}/v2/example/topodns/manifests/{VERSION}", INDEX, digests["topodns"])
        assert [each["platform"]["architecture"] for each in index["manifests"]] == list(WHEELS)
        kind = "application/vnd.oci.image.manifest.v1+json"
        chart = fetched(f"{address}/v2/example/charts/topodns/manifests/{VERSION}", kind, digests["chart"])
        (layer,) = chart["layers"]
        assert layer["digest"] == f"sha256:{hashlib.sha256((dist / PACKAGE).read_bytes()).hexdigest()}"


@contextmanager
def registry(folder: Path) -> Iterator[str]:
    """The address of a registry on loopback, Debian's, empty at first."""
    program = PROGRAMS / RELEASE / "docker-registry"  # not installed: its package would start a service
    if not program.exists():
        with filling():
            place("docker-registry", {f"usr/bin/{program.name}": program})
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    settings = {"version": 0.1, "storage": {"filesystem": {"rootdirectory": f"{folder}/registry"}}}
    (folder / "registry.yaml").write_text(yaml.safe_dump(settings | {"http": {"addr": address}}))
    command = [str(program), "serve", str(folder / "registry.yaml")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: answers(address), "the registry answers")
            yield address
        finally:
            process.terminate()


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/v2/") as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def fetched(path: str, media_type: str, digest: str) -> dict[str, Any]:
    """A manifest of the registry, which has this digest."""
    request = urllib.request.Request(f"http://{path}", headers={"Accept": media_type})
    with urllib.request.urlopen(request) as reply:
        text = reply.read()
    assert f"sha256:{hashlib.sha256(text).hexdigest()}" == digest
    read: dict[str, Any] = json.loads(text)
    return read


def test_a_commit_without_the_tag_of_its_version_is_no_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publication, "TAG", "v0.0.0-absent")
    with pytest.raises(Unready, match=r"the commit has no tag v0\.0\.0-absent"):
        publication.build_release()


def test_a_version_without_a_date_is_no_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publication, "CHANGELOG", tmp_path / "CHANGELOG.md")
    for heading in (f"## [{VERSION}] - Unreleased", "## [0.0.1] - 2026-01-01"):
        (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n\n### Added\n\n- One.\n")
        with pytest.raises(Unready, match=r"CHANGELOG\.md has no heading"):
            publication.release_notes()
