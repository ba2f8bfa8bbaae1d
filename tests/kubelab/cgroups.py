"""The cgroups that a lab's processes live in, by which all of them are found again. Cgroup v1, v2, and both at once."""

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Cgroup:
    """A lab's directory in one cgroup hierarchy, and how its machines mount that hierarchy."""

    type: str  # cgroup (v1) or cgroup2
    options: str  # for mount -o
    name: str  # directory under /sys/fs/cgroup
    path: str

    def make(self, *parts: str) -> None:
        """Make the directory and those below it, each with the settings without which it could hold no process."""
        path = Path(self.path)
        self._make(path, may_hand_down=True)
        for part in parts:
            path = path / part
            self._make(path, may_hand_down=part != "init")

    def _make(self, path: Path, may_hand_down: bool) -> None:
        path.mkdir(parents=True, exist_ok=True)
        if self.type == "cgroup2":
            controllers = (path / "cgroup.controllers").read_text().split()
            if may_hand_down and controllers:
                (path / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))
        elif "cpuset" in self.options.split(","):
            for setting in ("cpuset.cpus", "cpuset.mems"):
                (path / setting).write_text((path.parent / setting).read_text())


class _Mount(NamedTuple):
    type: str
    options: set[str]
    root: str
    point: str


def own_cgroups(name: str) -> list[Cgroup]:
    """v1: a child of the caller's cgroup in each mounted hierarchy. v2: a child of the root, where processes do no
    harm.
    """
    mounts = list(_mounts())
    pure_v2 = all(mount.type == "cgroup2" for mount in mounts)
    found = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for mount in mounts:
            if mount.type == "cgroup2" and not controllers:
                shown = "." if pure_v2 else os.path.basename(mount.point)
                found.append(Cgroup("cgroup2", "", shown, f"{mount.point}/{name}"))
                break
            if mount.type == "cgroup" and controllers and set(controllers.split(",")) <= mount.options:
                found.append(_v1(mount, controllers, path, name))
                break
    return found


def _mounts() -> Iterator[_Mount]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, right = line.split(" - ")
        kind, _, options = right.split()[:3]
        if kind.startswith("cgroup"):
            yield _Mount(kind, set(options.split(",")), left.split()[3], left.split()[4])


def _v1(mount: _Mount, controllers: str, path: str, name: str) -> Cgroup:
    inside = os.path.relpath(path, mount.root) if path.startswith(mount.root) else "."
    options = f"none,{controllers}" if "=" in controllers else controllers
    place = os.path.normpath(f"{mount.point}/{inside}/{name}")
    return Cgroup("cgroup", options, os.path.basename(mount.point), place)


def cgroup_pids(paths: Iterable[str]) -> set[int]:
    """Every process in these directories and below them."""
    pids: set[int] = set()
    for top in paths:
        for folder, _, _ in os.walk(top):
            with suppress(OSError):
                pids |= {int(pid) for pid in Path(folder, "cgroup.procs").read_text().split()}
    return pids


def remove_cgroups(paths: Iterable[str]) -> list[str]:
    """Remove these directories and all below; which of them are still there."""
    for folder in (folder for top in paths for folder, _, _ in os.walk(top, topdown=False)):
        with suppress(OSError):
            os.rmdir(folder)
    return [path for path in paths if os.path.isdir(path)]


def join(cgroups: Sequence[str]) -> str:
    """Shell text that moves the shell into these cgroups."""
    return f'for d in {" ".join(map(shlex.quote, cgroups))}; do echo $$ > "$d/cgroup.procs" || exit 1; done'
