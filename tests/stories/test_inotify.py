"""Linux's notifications about directories; test_manifest_watch.py has their effect."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from topodns.files.inotify import Inotify


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Inotify]:
    with Inotify([str(tmp_path)]) as inotify:
        yield inotify


def test_a_written_renamed_or_removed_file_is_reported_by_its_name(watched: Inotify, tmp_path: Path) -> None:
    assert watched.read() == frozenset()
    (tmp_path / "one").write_text("")
    assert watched.read() == {f"{tmp_path}/one"}
    (tmp_path / "one").rename(tmp_path / "two")
    assert watched.read() == {f"{tmp_path}/one", f"{tmp_path}/two"}
    (tmp_path / "two").write_text("more")
    assert watched.read() == {f"{tmp_path}/two"}
    (tmp_path / "two").unlink()
    (tmp_path / "link").symlink_to("nowhere")
    assert watched.read() == {f"{tmp_path}/two", f"{tmp_path}/link"}
    assert watched.read() == frozenset()


def test_a_read_is_not_reported(watched: Inotify, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("text")
    watched.read()
    assert (tmp_path / "one").read_text() == "text"
    os.listdir(tmp_path)
    assert watched.read() == frozenset()


def test_a_name_that_is_not_unicode_is_reported_with_surrogate_escapes(watched: Inotify, tmp_path: Path) -> None:
    name = os.path.join(os.fsencode(tmp_path), b"\xff" * 255)
    os.close(os.open(name, os.O_CREAT))
    assert watched.read() == {os.fsdecode(name)}


def test_a_removed_directory_is_reported_as_itself(tmp_path: Path) -> None:
    directory = tmp_path / "here"
    directory.mkdir()
    with Inotify([str(directory)]) as inotify:
        directory.rename(tmp_path / "there")
        assert inotify.read() == {str(directory)}


def test_a_missing_path_or_one_that_is_no_directory_cannot_be_watched(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    before = len(os.listdir("/proc/self/fd"))
    for name, number in (("gone", errno.ENOENT), ("file", errno.ENOTDIR)):
        with pytest.raises(OSError, match=name) as raised:
            Inotify([str(tmp_path), str(tmp_path / name)])
        assert raised.value.errno == number
    assert len(os.listdir("/proc/self/fd")) == before


def test_lost_notifications_are_reported_as_changes_of_all_directories(watched: Inotify, tmp_path: Path) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("")
    for _ in range(most // 4 + 1):  # each rename is two events, which the kernel does not join
        one.rename(two)
        two.rename(one)
    told: set[str] = set()
    while changed := watched.read():
        told |= changed
    assert told == {str(one), str(two), str(tmp_path)}
