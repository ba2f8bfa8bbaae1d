"""The workers together: what each is sent before it serves, and that none keeps the first process from ending."""

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from tests.support.model_builders import namespace
from topodns.app.workers import pool
from topodns.app.workers.link import PATIENCE, WorkerLink
from topodns.app.workers.messages import MessageType, WorkerMessageReader, message
from topodns.app.workers.pool import WorkerPool
from topodns.cluster.model import Replaced, Upserted
from topodns.cluster.state import ClusterState
from topodns.plugins.block import ExpandedCorefile

SOON = 5.0  # seconds; all of this takes milliseconds


class Frozen(WorkerLink):
    """A worker whose process does nothing but die, and whose socket is full."""

    pid = 1

    async def start(self) -> None:
        inner: Any = self
        inner._process = inner._transport = self
        self._room.clear()

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes) -> None:
        """Keeps nothing."""

    def get_write_buffer_size(self) -> int:
        return 0

    def send_signal(self, number: int) -> None:
        self._status = -number
        self.connection_lost(None)


@dataclass(eq=False)
class Feed:
    state: ClusterState


@dataclass
class Settings:
    expanded: ExpandedCorefile


@dataclass
class Generation:
    settings: Settings
    feeds: list[Feed]


def generation() -> Any:
    state = ClusterState(frozenset({"Namespace"}))
    state.apply(Replaced("Namespace", (namespace("a"),)), 0)
    return Generation(Settings(ExpandedCorefile((), "Corefile", 53, "", ())), [Feed(state)])


@pytest.mark.parametrize("served", [False, True], ids=["starting", "serving"])
def test_a_worker_that_does_not_read_its_snapshot_does_not_keep_the_first_process_from_ending(
    monkeypatch: pytest.MonkeyPatch, served: bool
) -> None:
    """Neither one that starts, nor one that serves and is given another cluster by a reload."""
    monkeypatch.setattr(pool, "WorkerLink", Frozen)
    monkeypatch.setattr(pool, "CHECK_EVERY", SOON / 100 / PATIENCE)

    async def main() -> None:
        started = Started()
        workers = WorkerPool(started.start, lambda: ())
        workers.follow(generation(), 2, {})
        link = await only_link(workers)
        if served:
            link.activation = 1
            link.data_received(message(MessageType.ACKNOWLEDGED, 1))
        await asyncio.wait_for(workers.close(), SOON)
        assert link.ended.result() < 0
        assert link.why_ended == ("stuck" if served else "exited")
        await started.end()

    asyncio.run(main())


def test_a_worker_has_all_changes_before_its_first_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those too that arrive in the turn of the loop in which the end of its snapshot is sent."""
    given = generation()
    written = bytearray()
    names: list[str] = []

    class Slow(Frozen):
        """While the pool waits for it to read a part of the snapshot, the cluster changes."""

        def write(self, data: bytes) -> None:
            written.extend(data)

        async def room(self) -> None:
            names.append(f"new-{len(names)}")
            given.feeds[0].state.apply(Upserted(namespace(names[-1])), 0)

    monkeypatch.setattr(pool, "WorkerLink", Slow)

    async def main() -> None:
        started = Started()
        workers = WorkerPool(started.start, lambda: ())
        workers.follow(given, 2, {})
        await only_link(workers)
        for _ in range(20):
            await asyncio.sleep(0)
        await asyncio.wait_for(workers.close(), SOON)
        await started.end()

    asyncio.run(main())
    sent = WorkerMessageReader().feed(bytes(written))
    activated = [one.kind for one in sent].index(MessageType.ACTIVATE)
    assert names
    assert all(any(name.encode() in one.payload for one in sent[:activated]) for name in names)


def test_a_worker_that_takes_changes_more_slowly_than_they_come_makes_the_server_unready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also while it acknowledges some of them each second; and it counts for the latency of a change only then."""
    monkeypatch.setattr(pool, "WorkerLink", Frozen)

    async def main() -> None:
        started = Started()
        workers = WorkerPool(started.start, lambda: ())
        workers.follow(generation(), 2, {})
        link = await only_link(workers)
        link.data_received(message(MessageType.SERVING, 1))
        link.data_received(message(MessageType.ACKNOWLEDGED, link.sent))
        assert list(workers.waits_for()) == []
        copied: list[int] = []
        for number in range(link.sent + 1, link.sent + 9):
            workers._send(b"change")
            workers._copied([partial(copied.append, number)])
            workers._send(b"change")
            link.check()
            link.data_received(message(MessageType.ACKNOWLEDGED, number))
        assert list(workers.waits_for()) == ["multisocket: process 2 has not taken changes for 3s"]
        assert len(copied) == 4
        link.data_received(message(MessageType.ACKNOWLEDGED, link.sent))
        assert list(workers.waits_for()) == []
        assert len(copied) == 8
        await asyncio.wait_for(workers.close(), SOON)
        await started.end()

    asyncio.run(main())


@dataclass
class Started:
    """The tasks of a pool."""

    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self, work: Any, name: str) -> asyncio.Task[None]:
        self.tasks.append(asyncio.create_task(work, name=name))
        return self.tasks[-1]

    async def end(self) -> None:
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def only_link(workers: WorkerPool) -> WorkerLink:
    """The link of the only worker, once it is started."""
    for _ in range(5):
        await asyncio.sleep(0)
    (link,) = workers._links()
    return link
