"""Kills the writer of a snapshot at random moments, and looks at the file after each: `FILE TIMES SEED` as arguments.

Prints the number of objects in the file after each kill, -1 for no file. Run as a program of its own, because it forks.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.support.model_builders import service
from topodns.cluster.model import Kind, Replaced, Service, Upserted
from topodns.cluster.publishing_state import PublishingState
from topodns.cluster.state import ClusterState
from topodns.kube.client.contract import KubeApi
from topodns.kube.informer.informer import ApiSource
from topodns.kube.snapshot.format import Section, head_steps, part_steps
from topodns.kube.snapshot.writer import SnapshotCounts, SnapshotFile, SnapshotWriter
from topodns.time_slices import do_at_once

SERVICES = 300
NEEDED = frozenset[Kind](("Service",))


async def _write(path: str, first: int, ready: int) -> None:
    """Write a state over and over, which has more Services each time, until killed; `ready`: gets an octet first."""
    state = ClusterState(NEEDED)
    state.apply(Replaced("Service", tuple(service(f"s{number}") for number in range(first))), 0)

    async def connect() -> KubeApi:
        raise NotImplementedError

    published = PublishingState(state, time.time)
    source = ApiSource((), published, connect, Random(0))
    source.cluster_uid = "0a1b"
    file = SnapshotFile(path, 86400.0, {"Service": ""}, SnapshotCounts())
    writing = asyncio.create_task(SnapshotWriter(file, 0.0, published, source).run())
    os.write(ready, b".")
    while not writing.done():
        published.apply(Upserted(service(f"s{len(state.services)}")))
        await asyncio.sleep(0.001)


def _services(path: Path) -> Iterator[Service]:
    with path.open("rb") as file:
        do_at_once(head_steps(file))
        for part in part_steps(file):
            if not isinstance(part, Section):
                yield from (each for each in part if isinstance(each, Service))


def main(path: Path, times: int, rng: Random) -> None:
    found = -1
    for _ in range(times):
        reading, ready = os.pipe()
        child = os.fork()
        if not child:
            asyncio.run(_write(str(path), max(found, SERVICES), ready))
        os.read(reading, 1)
        time.sleep(rng.uniform(0.0, 0.1))
        os.close(reading)
        os.close(ready)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        names = {each.name for each in _services(path)} if path.exists() else set()
        found = len(names) if path.exists() else -1
        assert names == {f"s{number}" for number in range(found)}, "a state that never was"
        print(found, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Random(int(sys.argv[3])))
