"""The wheel and the sdist, the same octets each time that they are made of the same files."""

import gzip
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from release.source import copy_tree, epoch

_BUILD: Final = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"


def build_wheel(folder: Path) -> Path:
    """Its path in the folder, which is made where missing."""
    return _build("build_wheel", folder)


def build_sdist(folder: Path) -> Path:
    """Its path in the folder, which is made where missing."""
    made = _build("build_sdist", folder)
    normalize(made)
    return made


def _build(what: str, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(max(epoch(), 315532800))}  # a zip knows no time before 1980
    with TemporaryDirectory(prefix="topodns-") as tree:
        copy_tree(Path(tree))
        command = [sys.executable, "-c", _BUILD, what, str(folder.resolve())]
        done = subprocess.run(
            command, cwd=tree, env=environment, umask=0o022, check=True, stdout=subprocess.PIPE, text=True
        )
    return folder / done.stdout.splitlines()[-1]


def normalize(archive: Path) -> None:
    """Take times and owners of this machine, which setuptools and helm leave in a .tar.gz, out of it."""
    with tarfile.open(archive) as old:
        members = [(each, old.extractfile(each)) for each in sorted(old.getmembers(), key=lambda each: each.name)]
        with (
            open(archive.with_suffix(".new"), "wb") as file,
            gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
        ):
            for info, content in members:
                info.uid = info.gid = 0
                info.uname = info.gname = ""
                info.mtime, info.pax_headers = epoch(), {}
                new.addfile(info, content)
    archive.with_suffix(".new").rename(archive)
