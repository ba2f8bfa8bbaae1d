"""When a snapshot is written: after changes of a state that is complete and live, and never otherwise."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.support.api_objects import Object, namespace, service
from tests.support.event_loops import eventually
from tests.support.snapshots import UID, snapshot_file, write_snapshot
from tests.support.state_with_fake_api import FRONT, MOVED, WEB, Setup
from topodns.kube.snapshot.format import Head, Part, Section, head_steps, part_steps
from topodns.kube.snapshot.restorer import SnapshotRestorer
from topodns.kube.snapshot.writer import SnapshotFile, SnapshotWriter
from topodns.time_slices import do_at_once

SYSTEM: Object = namespace("kube-system")
SYSTEM["metadata"]["uid"] = UID
INTERVAL = 0.02  # seconds


@asynccontextmanager
async def writing(
    file: SnapshotFile, *objects: Object, up: bool = True, restored: bool = False
) -> AsyncIterator[Setup]:
    """A state that a source keeps current, and that is written into the file."""
    setup = Setup((SYSTEM, *objects))
    async with setup.api:
        if not up:
            await setup.api.close()
        await setup.source.connect()
        restorer = SnapshotRestorer(file, setup.writes, setup.source)
        if restored:
            await restorer.restore()
        writer = SnapshotWriter(file, INTERVAL, setup.writes, setup.source)
        works = [setup.source.run(), restorer.compare(), writer.run()]
        tasks = [asyncio.create_task(work) for work in works]
        try:
            yield setup
        finally:
            for task in tasks:
                task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*tasks)


def read(path: Path) -> tuple[Head, list[Part]]:
    with path.open("rb") as file:
        head = do_at_once(head_steps(file))
        return head, list(part_steps(file))


def names(path: Path) -> set[str]:
    """The names of all objects."""
    parts = read(path)[1]
    return {each.key.name for part in parts if not isinstance(part, Section) for each in part}


async def looks(times: int = 5) -> None:
    """Let the writer look at the state so many times; each look that has nothing to write takes no time."""
    await asyncio.sleep(INTERVAL * times)


async def test_a_complete_state_is_written_with_its_cluster_time_and_versions(tmp_path: Path) -> None:
    file = snapshot_file(tmp_path / "snapshot")
    async with writing(file, *WEB) as setup:
        await eventually(lambda: file.counts.writes["written"] >= 1)
        head, parts = read(tmp_path / "snapshot")
        assert (head.cluster_uid, head.serial) == (UID, setup.state.serial)
        assert 0 <= setup.writes.wall_clock() - head.unix_time < 60
        sections = [part for part in parts if isinstance(part, Section)]
        assert {part.kind for part in sections} == setup.state.needed
        assert {part.version for part in sections} == {str(setup.api.revisions.last)}
        assert names(tmp_path / "snapshot") == {"default", "kube-system", "web", "web-1"}


async def test_it_is_written_after_changes_only(tmp_path: Path) -> None:
    file = snapshot_file(tmp_path / "snapshot")
    async with writing(file, *WEB, FRONT) as setup:
        await eventually(lambda: file.counts.writes["written"] >= 1)
        written = os.stat(tmp_path / "snapshot")
        await looks()
        assert os.stat(tmp_path / "snapshot") == written
        setup.api.put(service("late", cluster_ip="10.96.0.8"))
        await eventually(lambda: "late" in names(tmp_path / "snapshot"))
        setup.api.put(MOVED)
        await eventually(lambda: setup.cluster_ip("front") == "10.96.0.2")
        revision = setup.state.revision
        times = file.counts.writes["written"]
        await eventually(lambda: file.counts.writes["written"] > times)
        assert setup.state.revision == revision


async def test_a_state_without_changes_is_written_before_its_snapshot_looks_old(tmp_path: Path) -> None:
    file = snapshot_file(tmp_path / "snapshot", max_age=4.0)
    async with writing(file, *WEB) as setup:
        await eventually(lambda: file.counts.writes["written"] >= 1)
        first = read(tmp_path / "snapshot")[0].unix_time
        for progress in setup.source.progress:
            progress.last_received += 1.0  # as by a bookmark a second later
        await eventually(lambda: read(tmp_path / "snapshot")[0].unix_time > first + 0.5)


async def test_an_outage_makes_no_snapshot_look_new(tmp_path: Path) -> None:
    file = snapshot_file(tmp_path / "snapshot", max_age=1.0)
    async with writing(file, *WEB) as setup:
        await eventually(lambda: file.counts.writes["written"] >= 1)
        await setup.api.close()
        await eventually(lambda: all(progress.trouble is not None for progress in setup.source.progress))
        contact = max(progress.last_received for progress in setup.source.progress)
        await eventually(lambda: setup.now > contact + 1.0)
        head = read(tmp_path / "snapshot")[0]
        assert setup.writes.wall_clock() - head.unix_time >= setup.now - contact - 0.1


@pytest.mark.parametrize("denied", ["namespaces", "services", "endpointslices"])
async def test_a_state_that_is_not_complete_is_not_written(tmp_path: Path, denied: str) -> None:
    file = snapshot_file(tmp_path / "snapshot")
    setup_objects = (*WEB,)
    async with writing(file, *setup_objects, up=False) as setup:
        setup.api.deny(denied)
        await setup.api.open()
        await eventually(lambda: len(setup.state.unsynced) == 1)
        await looks()
        assert not (tmp_path / "snapshot").exists()
        setup.api.heal()
        await eventually(lambda: file.counts.writes["written"] >= 1)


async def test_a_state_of_a_snapshot_is_not_written_before_it_is_live(tmp_path: Path) -> None:
    file = snapshot_file(tmp_path / "snapshot")
    written = write_snapshot(tmp_path / "snapshot")
    async with writing(file, *WEB, up=False, restored=True) as setup:
        assert setup.state.restored is not None
        await looks()
        setup.api.deny("services")
        await setup.api.open()
        await eventually(lambda: setup.state.unsynced == ("Service",))
        await looks()
        assert (tmp_path / "snapshot").read_bytes() == written
        setup.api.heal()
        await eventually(lambda: file.counts.writes["written"] >= 1)
        assert "web" in names(tmp_path / "snapshot")


async def test_what_cannot_be_written_is_said_once_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    file = snapshot_file(tmp_path / "snapshot")
    (tmp_path / "snapshot").mkdir()
    async with writing(file, *WEB):
        await eventually(lambda: file.counts.writes["failed"] >= 3)
        assert caplog.text.count("cannot write the snapshot") == 1
        assert "Is a directory" in caplog.text
        (tmp_path / "snapshot").rmdir()
        await eventually(lambda: file.counts.writes["written"] >= 1)
        assert f"the snapshot {tmp_path}/snapshot is written again" in caplog.text
    assert os.listdir(tmp_path) == ["snapshot"]


async def test_a_file_of_another_program_is_never_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = snapshot_file(tmp_path / "resolv.conf")
    (tmp_path / "resolv.conf").write_bytes(b"nameserver 192.0.2.1")
    async with writing(file, *WEB):
        await eventually(lambda: file.counts.writes["failed"] >= 2)
    assert (tmp_path / "resolv.conf").read_bytes() == b"nameserver 192.0.2.1"
    assert "it begins with other octets than 'topodns snapshot'" in caplog.text


async def test_a_step_has_few_objects_however_many_there_are(tmp_path: Path) -> None:
    """So that the queries between two steps wait for some 0.1 ms."""
    file = snapshot_file(tmp_path / "snapshot")
    many = [service(f"s{number}", cluster_ip=f"10.96.{number // 250}.{number % 250}") for number in range(1000)]
    async with writing(file, *WEB, *many):
        await eventually(lambda: file.counts.writes["written"] >= 1)
        batches = [part for part in read(tmp_path / "snapshot")[1] if not isinstance(part, Section)]
        assert max(map(len, batches)) <= 64
        assert sum(map(len, batches)) > 1000
