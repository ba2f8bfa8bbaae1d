"""Images on the nodes of a lab, through each node's own containerd."""

import subprocess
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.kubelab.machine import LabError, Machine

_STORES: Final = ("content.v1.content", "snapshotter.v1.overlayfs", "metadata.v1.bolt")
_DATABASES: Final = ("snapshotter.v1.overlayfs/metadata.db", "metadata.v1.bolt/meta.db")


def give_first_images(machines: Sequence[Machine], archives: Iterable[Path]) -> None:
    """Start containerd everywhere, with these images.

    The first node imports them; the others get its files as links, which takes no time and no disk. That is sound
    because layers never change; databases do, so those are copied, while nothing writes to them.
    """
    first, *others = machines
    first.start("containerd")
    for archive in archives:
        import_image(first, archive)
    first.stop("containerd")
    for machine in others:
        _share(first, machine)
    for machine in machines:
        machine.start("containerd")
    for machine in machines:
        _await_containerd(machine)


def load_image(machines: Sequence[Machine], archive: Path) -> None:
    """Import an image on all nodes at once."""
    with ThreadPoolExecutor(len(machines)) as pool:
        list(pool.map(lambda machine: import_image(machine, archive), machines))


def import_image(machine: Machine, archive: Path) -> None:
    _await_containerd(machine)
    with open(archive, "rb") as file:
        machine.run("ctr", "images", "import", "-", stdin=file)


def _share(first: Machine, other: Machine) -> None:
    here, there = (machine.dir / "var/lib/containerd" for machine in (first, other))
    for store in _STORES:
        subprocess.run(["cp", "--archive", "--link", here / f"io.containerd.{store}", there], check=True)
    for database in _DATABASES:
        source, target = (folder / f"io.containerd.{database}" for folder in (here, there))
        subprocess.run(["cp", "--archive", "--remove-destination", source, target], check=True)


def _await_containerd(machine: Machine, patience: float = 30) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            machine.run("ctr", "version")
            return
        except LabError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
