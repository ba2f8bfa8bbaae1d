"""A lock, read: what is pinned, for which Python, by which hashes, and which libraries require it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)(?: ; (.*?))?(?: \\)?$")
_VERSIONS: Final = re.compile(r"python_(?:full_)?version (<|>=) '(\d+)\.(\d+)'")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_OURS: Final = "topodns (pyproject.toml)"
_NO_LIBRARIES: Final = ("-c ", "topodns (pyproject.toml:")  # another lock, and a group of pyproject.toml


@dataclass(frozen=True, slots=True)
class Pinned:
    """A library at a version. `wanted_by` has names of other libraries, and "topodns" where we ask for it ourselves."""

    name: str
    version: str
    marker: str  # where it is installed (PEP 508): "python_full_version < '3.13'"; "" for everywhere
    hashes: Sequence[str]  # SHA-256, hexadecimal, of each file that the index has of this version
    wanted_by: Sequence[str]
    text: str  # its lines in the lock

    @property
    def installed(self) -> bool:
        """False for what only builds the package."""
        return bool(self.wanted_by)

    def installed_by(self, python: str) -> bool:
        """Whether a Python of this version ("3.13") has it. Raises ValueError where that depends on something else."""
        if not self.marker:
            return self.installed
        found = _VERSIONS.fullmatch(self.marker)
        if found is None:
            raise ValueError(f"{self.name}: unknown marker {self.marker!r}")
        older = [int(number) for number in python.split(".")] < [int(found[2]), int(found[3])]
        return self.installed and older == (found[1] == "<")


def read_lock(lock: Path) -> list[Pinned]:
    """All of a lock that `uv pip compile --generate-hashes` has written, in its order."""
    blocks: list[list[str]] = []
    for line in lock.read_text(encoding="utf-8").splitlines():
        if _PIN.match(line):
            blocks.append([])
        if blocks:
            blocks[-1].append(line)
    return [_pinned(block) for block in blocks]


def _pinned(lines: list[str]) -> Pinned:
    found = _PIN.match(lines[0])
    assert found is not None
    text = "\n".join(lines)
    comments = (line.partition("#")[2].strip().removeprefix("via").strip() for line in lines if "#" in line)
    names = [name for name in comments if name and not name.startswith(_NO_LIBRARIES)]
    wanted_by = ["topodns" if name == _OURS else name for name in names]
    return Pinned(found[1], found[2], found[3] or "", _HASH.findall(text), wanted_by, text)
