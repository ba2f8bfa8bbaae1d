"""What one tag publishes: everything of a release in dist/, made from the tagged commit, and its way to a registry."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from release.distributions import build_sdist, build_wheel, normalize
from release.image import NAME, TOOLS, assemble_index
from release.krew import write_archive
from release.sbom import IMAGE_LOCK, LOCK, write_sbom
from release.source import DIST, ROOT, VERSION, epoch
from tests.support.chart.helm import CHART, build_helm, helm

TAG: Final = f"v{VERSION}"
CHANGELOG: Final = ROOT / "CHANGELOG.md"
NOTES: Final = "release-notes.md"
CHECKSUMS: Final = "SHA256SUMS"
INDEXES: Final = {name: f"{name.replace(':', '-')}.index.tar" for name in (NAME, TOOLS)}  # of both architectures
PACKAGE: Final = f"topodns-{VERSION}.tgz"  # the chart; helm's name for it

_UNDATED: Final = f"## [{VERSION}] - Unreleased"


class Unready(Exception):
    """The commit is no release, or a tool is missing; says which and what to do."""


def build_release() -> None:
    """Write all of a release into dist/. Raises Unready, and CalledProcessError if a tool fails."""
    if TAG not in _git(ROOT, "tag", "--points-at", "HEAD").split():
        raise Unready(f"the commit has no tag {TAG}, the version of topodns/__init__.py")
    if _git(ROOT, "status", "--porcelain"):
        raise Unready("files differ from the tagged commit: git status")
    notes = release_notes()
    DIST.mkdir(exist_ok=True)
    (DIST / NOTES).write_text(notes, encoding="utf-8")
    made = [DIST / NOTES, build_wheel(DIST), build_sdist(DIST), *write_boms(), build_chart(DIST), write_archive(DIST)]
    for (name, archive), lock in zip(INDEXES.items(), (IMAGE_LOCK, LOCK), strict=True):
        assemble_index(DIST / archive, name, lock)
        made.append(DIST / archive)
    lines = [f"{_sha256(path)}  {path.name}\n" for path in sorted(made)]
    (DIST / CHECKSUMS).write_text("".join(lines))  # for `sha256sum --check`


def release_notes() -> str:
    """The section of this version in the changelog, without its heading. Raises Unready if it has no date."""
    text = CHANGELOG.read_text(encoding="utf-8")
    found = re.search(rf"^## \[{re.escape(VERSION)}\] - (\S+)\n+(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None or found[1] == "Unreleased":
        raise Unready(f"CHANGELOG.md has no heading `## [{VERSION}] - DATE`")
    return found[2].rstrip() + "\n"


def write_boms() -> list[Path]:
    """Write the bills of materials into dist/. Returns where they are."""
    made = {DIST / f"topodns-{VERSION}.cdx.json": LOCK, DIST / f"topodns-{VERSION}.image.cdx.json": IMAGE_LOCK}
    for path, lock in made.items():
        write_sbom(path, lock)
    return list(made)


def build_chart(folder: Path) -> Path:
    """The package of the chart, the same octets each time that it is made of the same files. Raises as build_helm."""
    build_helm()
    subprocess.run(helm("package", CHART, "--destination", folder), check=True, stdout=subprocess.DEVNULL)
    normalize(folder / PACKAGE)
    return folder / PACKAGE


def dry_run(out: Path) -> None:
    """Make a release of the last commit in a scratch clone, as a maintainer does: date, commit, tag, `make release`.

    Its files replace those of the folder `out`. Raises Unready; the reason is on standard error.
    """
    with TemporaryDirectory(prefix="topodns-release-") as folder:
        clone = Path(folder, "topodns")
        _git(ROOT, "clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone))
        changelog = clone / CHANGELOG.name
        text = changelog.read_text(encoding="utf-8")
        today = datetime.fromtimestamp(epoch(), UTC).date()
        changelog.write_text(text.replace(_UNDATED, f"## [{VERSION}] - {today}"), encoding="utf-8")
        _git(clone, "commit", "--quiet", "--all", "--allow-empty", "--message", f"release: {VERSION}")
        _git(clone, "tag", "--force", TAG)
        done = subprocess.run([sys.executable, "-m", "release", "all"], cwd=clone, check=False, env=_environment())
        if done.returncode:
            raise Unready("what the scratch clone lacks is said above")
        out.mkdir(exist_ok=True)
        for path in (clone / DIST.name).iterdir():
            shutil.move(path, out / path.name)


def push(dist: Path, registry: str, plain_http: bool) -> dict[str, str]:
    """Push images and chart of a folder to REGISTRY/topodns, REGISTRY/topodns-tools and REGISTRY/charts/topodns.

    Returns the digest of each by its name; those of images are the ones in the files. Raises CalledProcessError.
    """
    digests = {}
    for name, archive in INDEXES.items():
        flags = ["--all", "--preserve-digests", *(["--dest-tls-verify=false"] if plain_http else [])]
        target = f"docker://{registry}/{name}"
        subprocess.run(["skopeo", "copy", "--quiet", *flags, f"oci-archive:{dist / archive}", target], check=True)
        digests[name.partition(":")[0]] = index_digest(dist / archive)
    flags = ["--plain-http"] if plain_http else []
    command = helm("push", dist / PACKAGE, f"oci://{registry}/charts", *flags)
    said = subprocess.run(command, check=True, capture_output=True, text=True)
    found = re.search(r"^Digest: (sha256:[0-9a-f]{64})$", said.stdout + said.stderr, re.MULTILINE)
    assert found is not None, said
    return digests | {"chart": found[1]}


def index_digest(archive: Path) -> str:
    """The digest by which a registry has the index of an archive."""
    with tarfile.open(archive) as tar:
        member = tar.extractfile("index.json")
        assert member is not None
        (descriptor,) = json.load(member)["manifests"]
    return str(descriptor["digest"])


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _environment() -> dict[str, str]:
    """Commits by this name where the machine knows no other; the time of the last commit."""
    names = {f"GIT_{role}_{what}": "topodns" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    times = {f"GIT_{role}_DATE": f"{epoch()} +0000" for role in ("AUTHOR", "COMMITTER")}
    return {**os.environ, **names, **times}


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=_environment()).stdout
