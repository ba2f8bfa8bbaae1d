"""The program that draws the diagrams of the site, from npm, held by its hash. Kept in build/ once it is there."""

import hashlib
import json
import subprocess
import tarfile
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from release.source import ROOT

VERSION: Final = "11.17.2"  # of the major version that mkdocs-material draws with
FOLDER: Final = ROOT / "build" / f"mermaid-{VERSION}"
SCRIPT: Final = "mermaid.min.js"

_SHA256: Final = {
    SCRIPT: "581ed7d74bd9048d0e3a91363927d72ef22942d7722546b27f7cc29e35390eb8",
    "LICENSE": "ec9fb67dcb25eccc416ed56e1aab819222c805a2a4bfe4cb19e7556bf2ffde80",
}
_IN_THE_PACKAGE: Final = {SCRIPT: f"package/dist/{SCRIPT}", "LICENSE": "package/LICENSE"}
_PATIENCE: Final = 300  # seconds, for 18 MB


def kept() -> list[Path]:
    """The script and its license; nothing where they were not fetched, or have become something else since."""
    files = [FOLDER / name for name in _SHA256]
    return files if all(file.is_file() and _is_held(file.name, file.read_bytes()) for file in files) else []


def fetch() -> None:
    """Have both. Raises OSError where npm is missing, reaches nobody, or brings something else."""
    if kept():
        return
    with TemporaryDirectory(prefix="topodns-npm-") as folder:
        found = _unpacked(_packed(Path(folder)))
    FOLDER.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=FOLDER) as unfinished:  # a build that is cut off leaves no half of a file
        for name, content in found.items():
            (Path(unfinished) / name).write_bytes(content)
            (Path(unfinished) / name).replace(FOLDER / name)


def _packed(folder: Path) -> Path:
    """The package as npm, with whatever registry it is told, brings it."""
    command = ["npm", "pack", "--json", "--fetch-retries=0", "--pack-destination", str(folder), f"mermaid@{VERSION}"]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, errors="replace", check=False, timeout=_PATIENCE
        )
    except subprocess.TimeoutExpired as problem:
        raise OSError(str(problem)) from None
    if done.returncode:
        raise OSError((done.stderr.strip() or "npm: no word of why").splitlines()[0])
    try:
        return folder / Path(json.loads(done.stdout)[0]["filename"]).name
    except (ValueError, LookupError, TypeError):
        raise OSError(f"npm pack names no archive: {done.stdout[:80]!r}") from None


def _unpacked(archive: Path) -> dict[str, bytes]:
    try:
        with tarfile.open(archive, "r:gz") as package:
            return {name: _content(package, name) for name in _SHA256}
    except (tarfile.TarError, EOFError, zlib.error) as problem:
        raise OSError(f"mermaid {VERSION}: npm brought no archive that can be read: {problem}") from None


def _content(package: tarfile.TarFile, name: str) -> bytes:
    members = [member for member in package.getmembers() if member.name == _IN_THE_PACKAGE[name] and member.isfile()]
    file = package.extractfile(members[-1]) if members else None
    if file is None:
        raise OSError(f"mermaid {VERSION}: {name} is not in the package")
    content = file.read()
    if not _is_held(name, content):
        raise OSError(f"mermaid {VERSION}: {name} is not the one that release/mermaid.py has the hash of")
    return content


def _is_held(name: str, content: bytes) -> bool:
    return hashlib.sha256(content).hexdigest() == _SHA256[name]
