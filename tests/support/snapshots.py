"""Snapshot files with the objects that a test names."""

import io
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, get_args

from topodns.cluster.model import ClusterObject, Kind, kind_of
from topodns.files.framed_file import FrameWriter
from topodns.kube.snapshot.format import KIND, Head, Part, Section, snapshot_frames
from topodns.kube.snapshot.writer import SnapshotCounts, SnapshotFile

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
UID: Final = "0a1b-2c3d"


def snapshot_file(path: Path, max_age: float = 86400.0) -> SnapshotFile:
    """The file of a state with all objects of every kind."""
    return SnapshotFile(str(path), max_age, dict.fromkeys(KINDS, ""), SnapshotCounts())


def write_snapshot(
    path: Path,
    *objects: ClusterObject,
    uid: str = UID,
    age: float = 0.0,
    version: str = "900",
    kinds: Iterable[Kind] = KINDS,
    selection: str = "",
    denied: tuple[Kind, ...] = (),
) -> bytes:
    """Write a snapshot of these kinds, and return its octets. `age`: seconds, by the clock of this machine."""

    def parts() -> Iterator[Part]:
        for kind in kinds:
            yield Section(kind, version, selection)
            if some := [each for each in objects if kind_of(each) == kind]:
                yield some

    head = Head(uid, time.time() - age, 1_700_000_000, denied)
    octets = snapshot_octets(head, parts())
    path.write_bytes(octets)
    return octets


def snapshot_octets(head: Head, parts: Iterable[Part]) -> bytes:
    """The octets of the file of a snapshot."""
    file = io.BytesIO()
    writer = FrameWriter(file, KIND)
    for frame in snapshot_frames(head, parts):
        writer.write(frame)
    writer.end()
    return file.getvalue()
