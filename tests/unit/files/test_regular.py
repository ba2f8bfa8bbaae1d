"""Files that are followed: a pipe or device in their place delays no reader."""

import io
import os
from pathlib import Path
from typing import Any

import pytest

from topodns.files.regular import read_regular, write_text


def test_a_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_bytes(b"0123456789")
    assert read_regular(str(tmp_path / "hosts"), 4) == b"0123"
    (tmp_path / "link").symlink_to("hosts")
    assert read_regular(str(tmp_path / "link"), 100) == b"0123456789"


def test_a_pipe_without_a_writer_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is no regular file"):
        read_regular(str(tmp_path / "pipe"), 100)


@pytest.mark.parametrize("path", ["/dev/zero", "/"])
def test_devices_and_directories_are_refused(path: str) -> None:
    with pytest.raises(OSError, match=r"is no regular file|Is a directory"):
        read_regular(path, 100)


def test_a_missing_file_is_reported_as_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_regular(str(tmp_path / "hosts"), 100)


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("something longer")
    write_text(str(path), "short\n")
    assert path.read_text() == "short\n"


def test_a_pipe_without_a_reader_is_refused_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    with pytest.raises(OSError, match="No such device"):
        write_text(path, "text")


def test_a_regular_file_that_has_nothing_to_read_at_present_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As /proc/kmsg: a read without waiting gives None, not an error."""

    class Waiting(io.BytesIO):
        def read(self, size: int | None = -1, /) -> Any:
            return None

    monkeypatch.setattr("builtins.open", lambda *_: Waiting())
    with pytest.raises(BlockingIOError):
        read_regular(__file__, 100)
