"""Notifications about files and directories, by the kernel; test_manifest_watch.py and test_config_watch.py have what
follows from them.
"""

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
from asyncinotify import Inotify

from tests.support.event_loops import PATIENCE, either_loop, run
from topodns.files.watch import GLANCE, watch_directories, watch_files

Batches = AsyncGenerator[frozenset[str]]


@asynccontextmanager
async def watching(*directories: object) -> AsyncIterator[Batches]:
    """A watch that has begun: its first batch is an empty one."""
    async with aclosing(watch_directories([str(directory) for directory in directories])) as batches:
        assert await anext(batches) == frozenset()
        yield batches


def descriptors() -> list[str]:
    return [os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.islink(entry.path)]


@either_loop
async def test_a_written_renamed_or_removed_file_is_reported_by_its_name(loop_name: str, tmp_path: Path) -> None:
    one, two, link = tmp_path / "one", tmp_path / "two", tmp_path / "link"
    async with watching(tmp_path) as batches:
        one.write_text("")
        assert await anext(batches) == {str(one)}
        one.rename(two)
        assert await anext(batches) == {str(one), str(two)}
        two.write_text("more")
        assert await anext(batches) == {str(two)}
        two.unlink()
        link.symlink_to("nowhere")
        assert await anext(batches) == {str(two), str(link)}


def test_a_read_is_not_reported(tmp_path: Path) -> None:
    async def story() -> None:
        (tmp_path / "one").write_text("text")
        async with watching(tmp_path) as batches:
            assert (tmp_path / "one").read_text() == "text"
            os.listdir(tmp_path)
            assert await anext(batches) == frozenset()

    run("uvloop", story())


def test_a_name_that_is_not_unicode_is_reported_with_surrogate_escapes(tmp_path: Path) -> None:
    async def story() -> None:
        name = os.path.join(os.fsencode(tmp_path), b"\xff" * 255)
        async with watching(tmp_path) as batches:
            os.close(os.open(name, os.O_CREAT))
            assert await anext(batches) == {os.fsdecode(name)}

    run("uvloop", story())


@pytest.mark.parametrize("change", [lambda path: path.rename(path.with_name("there")), os.rmdir])
def test_a_moved_or_removed_directory_is_reported_as_itself(tmp_path: Path, change: Callable[[Path], object]) -> None:
    async def story() -> None:
        directory = tmp_path / "here"
        directory.mkdir()
        async with watching(directory) as batches:
            change(directory)
            assert await anext(batches) == {str(directory)}
            assert await anext(batches) == frozenset()

    run("uvloop", story())


@either_loop
async def test_one_directory_under_two_paths_is_reported_under_both(loop_name: str, tmp_path: Path) -> None:
    """The kernel has one watch for them."""
    other = f"{tmp_path}/."
    async with watching(tmp_path, other) as batches:
        (tmp_path / "one").write_text("")
        assert await anext(batches) == {f"{tmp_path}/one", f"{other}/one"}


@either_loop
async def test_lost_notifications_are_reported_as_changes_of_all_directories(loop_name: str, tmp_path: Path) -> None:
    one, two = tmp_path / "a" / "one", tmp_path / "a" / "two"
    quiet = tmp_path / "b"
    one.parent.mkdir()
    quiet.mkdir()
    one.write_text("")
    async with watching(one.parent, quiet) as batches:
        overflow(one, two)
        reported = frozenset[str]()
        async for changed in batches:
            reported |= changed
            if not changed:
                break
        assert reported == {str(one), str(two), str(one.parent), str(quiet)}


def overflow(one: Path, two: Path) -> None:
    """More events than the kernel's queue has places; each rename is two events, which it does not join."""
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for _ in range(most // 4 + 1):
        one.rename(two)
        two.rename(one)


def test_after_an_overflow_every_file_is_named_and_the_watch_goes_on(tmp_path: Path) -> None:
    noisy, quiet = tmp_path / "a" / "noisy", tmp_path / "b" / "quiet"
    for file in (noisy, quiet):
        file.parent.mkdir()
        file.write_text("")

    async def story() -> None:
        async with aclosing(watch_files([str(noisy), str(quiet)])) as changes:
            assert await anext(changes) == frozenset()
            overflow(noisy, noisy.with_name("other"))
            named = frozenset[str]()
            while named != {str(noisy), str(quiet)}:
                named |= await anext(changes)
            while await anext(changes):
                pass
            quiet.write_text("more")
            while (changed := await anext(changes)) == frozenset():
                pass
            assert changed == {str(quiet)}

    run("uvloop", story())


def test_a_flood_of_notifications_leaves_the_event_loop_its_turns(tmp_path: Path) -> None:
    """A read from the kernel has at most as many events as fit into 2,720 octets."""

    async def story() -> None:
        loop = asyncio.get_running_loop()
        turns = 0

        def turn() -> None:
            nonlocal turns
            turns += 1
            loop.call_soon(turn)

        async with watching(tmp_path) as batches:
            for number in range(4000):
                (tmp_path / str(number)).touch()
            turn()
            named = frozenset[str]()
            while len(named) < 4000:
                named |= await anext(batches)
            assert turns > 4000 * 16 // 2720

    run("uvloop", story())


def test_a_missing_path_or_one_that_is_no_directory_cannot_be_watched(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    async def story() -> None:
        for name, number in (("gone", errno.ENOENT), ("file", errno.ENOTDIR)):
            with pytest.raises(OSError, match=f"'{tmp_path / name}'$") as raised:
                await anext(watch_directories([str(tmp_path), str(tmp_path / name)]))
            assert raised.value.errno == number

    run("uvloop", story())
    assert [name for name in descriptors() if "inotify" in name] == []


@either_loop
async def test_a_watch_that_ends_leaves_no_task_and_no_descriptor(loop_name: str, tmp_path: Path) -> None:
    before = descriptors()
    async with watching(tmp_path):
        assert "inotify" in {task.get_name() for task in asyncio.all_tasks()}
        assert len(descriptors()) > len(before)
    assert {task.get_name() for task in asyncio.all_tasks()}.isdisjoint({"inotify"})
    assert len(descriptors()) == len(before)


def test_without_inotify_instances_files_are_looked_at_with_one_warning_until_there_are_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """EMFILE: fs.inotify.max_user_instances of this user are in use."""
    file = tmp_path / "a.yaml"
    left = 2

    def exhausted() -> Inotify:
        nonlocal left
        left -= 1
        if left >= 0:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return Inotify()

    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with aclosing(watch_files([str(file)])) as changes:
            began = loop.time()
            assert [await anext(changes) for _ in range(2)] == [frozenset()] * 2
            assert loop.time() - began > 1.9 * GLANCE
            assert await anext(changes) == frozenset()  # the watch has begun
            file.write_text("")
            assert await anext(changes) == {str(file)}

    monkeypatch.setattr("topodns.files.watch.Inotify", exhausted)
    run("uvloop", story())
    assert caplog.messages == [f"cannot watch {file}: [Errno 24] Too many open files; looking every 0.5 s instead"]


def test_inotify_needs_no_thread() -> None:
    script = (
        "import asyncio, threading\n"
        "from topodns.files.watch import watch_directories\n"
        "async def story(): await anext(watch_directories(['/']))\n"
        "asyncio.run(story())\n"
        "print(threading.active_count())\n"
    )
    command = [sys.executable, "-c", script]
    assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout == "1\n"
