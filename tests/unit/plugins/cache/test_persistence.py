"""When the file of `persist` is read and written, and what becomes of queries where it cannot be."""

import asyncio
import logging
import os
import resource
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from tests.support.cache_with_upstream import Story, failed, positive
from tests.support.corefile_settings import only_directive
from tests.support.event_loops import eventually
from topodns.app.cluster_lifecycle import end_tasks
from topodns.files.framed_file import replacing
from topodns.plugins.cache.answer_file import KIND
from topodns.plugins.cache.counts import PersistCounts
from topodns.plugins.cache.persistence import Persistence
from topodns.plugins.cache.settings import Cache, Persist, ServeStale
from topodns.plugins.cache.store import UsedEntry
from topodns.time_slices import SLICE

SETTINGS = Cache(serve_stale=ServeStale(86_400, verify=True))
NEVER = 1e6  # seconds: an interval that no test waits for
OTHER = b"nameserver 192.0.2.1\n"
OWNER = ("a.:53", "", "a.", "", "", "")


class Running:
    """A cache with a file, and what it counts. `story` asks it."""

    def __init__(self, place: object, interval: float = 0.01, writes: bool = True) -> None:
        self.story = Story(SETTINGS, positive())
        self.counts = PersistCounts()
        self.persistence = Persistence(
            settings=Persist(str(place), only_directive("persist"), interval),
            owner=OWNER,
            memory=self.story.cache.memory,
            timers=self.story.timers,
            counts=self.counts,
            writes=writes,
            wall=lambda: 1.7e9,
        )
        self._by_use, self._looks = self.story.cache.memory.by_use, 0
        self.story.cache.memory.by_use = self._look  # type: ignore[method-assign]

    def _look(self) -> Iterator[UsedEntry]:
        self._looks += 1
        return self._by_use()

    def ask(self, name: str = "www") -> str:
        return self.story.ask(f"{name}.example. A")

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Running"]:
        """As a generation does it: at its end the work is cancelled, and awaited."""
        await self.persistence.read()
        self.task = asyncio.create_task(self.persistence.run())
        await asyncio.sleep(0)
        yield self
        await end_tasks([self.task])

    async def some_intervals(self) -> None:
        """Return once it has looked for changes a few times more."""
        enough = self._looks + 3
        await eventually(lambda: self._looks >= enough)


class Place:
    """The path of the file, and what is there."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "answers"

    def __str__(self) -> str:
        return str(self.path)

    @property
    def is_there(self) -> bool:
        return self.path.exists()

    @property
    def inode(self) -> int:
        """Another one for each writing, which replaces the file."""
        return self.path.stat().st_ino

    @property
    def content(self) -> bytes:
        return self.path.read_bytes()

    @content.setter
    def content(self, octets: bytes) -> None:
        self.path.write_bytes(octets)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def with_answer(place: Place, name: str = "www") -> None:
    """Leave the file of a cache that has this name."""
    async with Running(place, NEVER).running() as cache:
        cache.ask(name)


async def stale_at(place: Place, name: str = "www") -> str:
    """What a cache with this file answers where its upstream does not."""
    async with Running(place, NEVER).running() as cache:
        cache.story.upstream.says = failed()
        return cache.ask(name)


async def test_the_file_is_written_at_the_end_and_read_at_the_start(place: Place) -> None:
    async with Running(place, NEVER).running() as cache:
        cache.ask()
        assert not place.is_there
    assert (cache.counts.written, cache.counts.answers) == (1, 1)
    assert await stale_at(place) == "192.0.2.1 30 stale"


async def test_it_is_written_each_interval_but_only_after_changes(place: Place) -> None:
    async with Running(place).running() as cache:
        cache.ask()
        await eventually(lambda: place.is_there)
        first = place.inode
        cache.ask()  # from the cache
        await cache.some_intervals()
        assert (place.inode, cache.counts.written) == (first, 1)
        cache.story.timers.advance(400)
        cache.ask()  # the same records, fetched again
        await eventually(lambda: cache.counts.written == 2)
        cache.story.cache.memory.forget(next(cache.story.cache.memory.by_use()).key)
        await eventually(lambda: cache.counts.written == 3)
    assert (cache.counts.written, cache.counts.answers) == (3, 0)


async def test_a_start_without_changes_writes_nothing(place: Place) -> None:
    await with_answer(place)
    before = place.inode
    async with Running(place).running() as cache:
        await cache.some_intervals()
    assert (place.inode, cache.counts.written, cache.counts.restored) == (before, 0, 1)


async def test_a_process_beside_the_writer_only_reads(place: Place) -> None:
    await with_answer(place)
    before = place.content
    cache = Running(place, writes=False)
    async with cache.running():
        cache.ask("other")
    assert (cache.counts.restored, place.content) == (1, before)


async def test_queries_are_answered_while_thousands_of_answers_are_written_and_read(place: Place) -> None:
    turns = 0

    async def other_work() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with Running(place, NEVER).running() as cache:
        for number in range(5000):
            cache.ask(f"n{number}")
        beside = asyncio.create_task(other_work())
    written, turns = turns, 0
    async with Running(place, NEVER).running() as again:
        await eventually(lambda: again.counts.restored == 5000)
    beside.cancel()
    assert written * SLICE > 0.005  # each turn follows a slice: fewer would mean longer ones
    assert turns * SLICE > 0.005


def damaged(content: bytes) -> bytes:
    return content[:-20] + bytes(20)


def truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


def newer(content: bytes) -> bytes:
    at = content.index(b"\n") + 1
    return content[:at] + b"\0\2" + content[at + 2 :]


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (damaged, "is damaged: SIZE octets without their checksum"),
        (truncated, "is damaged: SIZE octets without their checksum"),
        (newer, "has format 2, expected 1: another topodns wrote it"),
        (lambda content: b"", "is damaged: 0 octets without their checksum"),
        (lambda content: content + bytes(8_000_001), "is damaged: it has SIZE octets, expected at most 8000000"),
    ],
    ids=["damaged", "truncated", "newer", "empty", "too-long"],
)
async def test_n23_a_file_that_cannot_be_used_is_named_and_stays_until_there_are_answers(
    place: Place, harm: Callable[[bytes], bytes], says: str, caplog: pytest.LogCaptureFixture
) -> None:
    await with_answer(place)
    place.content = found = harm(place.content)
    caplog.clear()
    async with Running(place).running() as cache:
        await cache.some_intervals()
        assert cache.counts.refused == 1
        assert place.content == found
        says = says.replace("SIZE", str(len(found)))
        assert caplog.messages == [f"plugin/cache: '{place}' {says}; it is not used, and stays"]
        assert cache.ask() == "192.0.2.1 300 upstream"
        await eventually(lambda: cache.counts.written == 1)
    assert await stale_at(place) == "192.0.2.1 30 stale"


async def test_n23_a_file_of_another_program_is_never_replaced(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.content = OTHER
    async with Running(place).running() as cache:
        assert cache.ask() == "192.0.2.1 300 upstream"
        await eventually(lambda: cache.counts.failed > 2)
    assert place.content == OTHER
    assert caplog.messages == [
        f"plugin/cache: '{place}' begins with other octets than 'topodns cache'; it is not used, and stays",
        f"plugin/cache: cannot write '{place}': it begins with other octets than 'topodns cache'",
    ]


async def test_n23_what_is_no_file_is_never_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with Running(tmp_path).running() as cache:
        cache.ask()
        await eventually(lambda: cache.counts.failed > 2)
    assert os.listdir(tmp_path) == []
    assert caplog.messages == [
        f"plugin/cache: '{tmp_path}' cannot be read: Is a directory; it is not used, and stays",
        f"plugin/cache: cannot write '{tmp_path}': Is a directory",
    ]
    assert cache.counts.refused == 1


async def test_n23_a_folder_that_cannot_be_written_is_named_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = Place(tmp_path / "missing")
    caplog.set_level(logging.INFO, "topodns")
    async with Running(place).running() as cache:
        assert cache.ask() == "192.0.2.1 300 upstream"
        await eventually(lambda: cache.counts.failed > 3)
        assert caplog.messages == [f"plugin/cache: cannot write '{place}': No such file or directory"]
        os.mkdir(tmp_path / "missing")
        await eventually(lambda: cache.counts.written == 1)
        assert caplog.messages[1:] == [f"plugin/cache: '{place}' is written again"]
    assert await stale_at(place) == "192.0.2.1 30 stale"


@contextmanager
def full_disk(octets: int) -> Iterator[None]:
    """No file may become larger, as by far the most of a disk is in use."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (octets, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_n23_a_full_disk_leaves_the_old_file_until_there_is_room(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    await with_answer(place)
    caplog.clear()
    async with Running(place).running() as cache:
        with full_disk(20_000):
            for number in range(1000):
                cache.ask(f"n{number}")
            await eventually(lambda: cache.counts.failed > 2)
            assert await stale_at(place) == "192.0.2.1 30 stale"
        await eventually(lambda: cache.counts.written == 1)
    assert caplog.messages == [f"plugin/cache: cannot write '{place}': File too large"]
    assert os.listdir(place.path.parent) == ["answers"]


async def test_while_another_process_writes_it_is_left_to_it(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "topodns")
    async with Running(place).running() as cache:
        async with replacing(str(place), KIND) as file:
            cache.ask()
            await cache.some_intervals()
            assert (cache.counts.written, cache.counts.failed) == (0, 0)
            file.write(b"of the other one")
        await eventually(lambda: cache.counts.written == 1)
    assert caplog.messages == []
