"""The memory limit of this process: that of its cgroup, of version 1 or 2."""

from contextlib import suppress
from pathlib import Path
from typing import Final

_MOUNT: Final = "/sys/fs/cgroup"
_UNLIMITED: Final = 1 << 60  # octets; version 1 has 2**63 - 4096 for none


def memory_limit(own: str = "/proc/self/cgroup", mount: str = _MOUNT) -> int | None:
    """The least memory limit of the cgroup of this process and those above it, in octets; None: there is none.

    In a container the path of the cgroup may be the host's, which is not mounted there: its own is the root then.
    """
    limits = []
    with suppress(OSError):
        for line in Path(own).read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                limits += _limits(Path(mount), path, "memory.max")
            elif "memory" in controllers.split(","):
                limits += _limits(Path(mount) / "memory", path, "memory.limit_in_bytes")
    return min(limits, default=None)


def _limits(root: Path, path: str, name: str) -> list[int]:
    found = []
    at = root / path.lstrip("/")
    for directory in (at, *at.parents):
        if directory != root and root not in directory.parents:
            break
        with suppress(OSError, ValueError):  # ValueError: "max"
            limit = int((directory / name).read_text(encoding="ascii"))
            if limit < _UNLIMITED:
                found.append(limit)
    return found
