"""A file that is replaced at once: a reader finds the old or the new one, whole."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from topodns.files.atomic_write import SUFFIX, atomic_write


def write(path: Path, *pieces: bytes) -> None:
    async def written() -> None:
        async with atomic_write(str(path)) as file:
            for piece in pieces:
                file.write(piece)

    asyncio.run(written())


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_the_new_file_has_all_pieces_and_is_for_its_owner_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"something longer")
    (tmp_path / "file").chmod(0o666)
    write(tmp_path / "file", b"one ", b"two")
    assert (tmp_path / "file").read_bytes() == b"one two"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600
    assert names(tmp_path) == ["file"]


async def test_the_old_file_is_there_until_the_new_one_is_complete(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    async with atomic_write(str(tmp_path / "file")) as file:
        file.write(b"new")
        file.flush()
        assert (tmp_path / "file").read_bytes() == b"old"
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_writer_that_fails_leaves_the_old_file_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(TypeError):
        write(tmp_path / "file", b"new", "no octets")  # type: ignore[arg-type]
    assert (tmp_path / "file").read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_what_a_killed_writer_left_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / f"file{SUFFIX}").write_bytes(b"half of something longer")
    (tmp_path / f"file{SUFFIX}").chmod(0o644)
    write(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600
    assert names(tmp_path) == ["file"]


async def test_a_second_writer_is_refused_until_the_first_one_has_ended(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    async with atomic_write(path) as file:
        with pytest.raises(BlockingIOError):
            async with atomic_write(path):
                pass
        file.write(b"first")
    assert (tmp_path / "file").read_bytes() == b"first"
    async with atomic_write(path) as file:
        file.write(b"second")
    assert (tmp_path / "file").read_bytes() == b"second"


def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk/file")
    write(tmp_path / "link", b"new")
    assert (tmp_path / "disk/file").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


def test_a_link_beside_it_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / f"file{SUFFIX}").symlink_to("other")
    with pytest.raises(OSError, match="symbolic links"):
        write(tmp_path / "file", b"new")
    assert names(tmp_path) == [f"file{SUFFIX}"]


def test_a_directory_in_its_place_is_refused_and_left(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(IsADirectoryError):
        write(tmp_path / "file", b"new")
    assert names(tmp_path) == ["file"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing/file"):
        write(tmp_path / "missing/file", b"new")
