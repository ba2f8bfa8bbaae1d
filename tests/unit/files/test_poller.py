"""The rule by which files of directives are read again. Time is virtual; the file is real."""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.virtual_event_loop import run_virtually
from topodns.files.poller import FilePoller
from topodns.files.regular import read_regular
from topodns.files.text import BadText

INTERVAL = 60.0


class Reader:
    """Reads a file that must not have the word `bad`, and records what happens."""

    def __init__(self, path: Path, interval: float = INTERVAL) -> None:
        self.path = path
        self.text = ""
        self.log: list[str] = []
        self.poller = FilePoller(str(path), interval, self._read, self._changed, self._failed)

    def _read(self) -> Iterator[None]:
        self.log.append("read")
        text = read_regular(str(self.path), 100).decode()
        yield
        if "bad" in text:
            raise BadText(text)
        self.text = text

    def _changed(self) -> None:
        self.log.append(f"changed {self.text}")

    def _failed(self, problem: Exception) -> None:
        self.log.append(type(problem).__name__)

    def after(self, *events: Callable[[], object]) -> list[str]:
        """The log of as many intervals, each of which begins with one of these events."""

        async def pass_time() -> None:
            running = asyncio.create_task(self.poller.run())
            for event in events:
                event()
                await asyncio.sleep(INTERVAL + 1)
            running.cancel()

        run_virtually(pass_time())
        return self.log

    def write(self, text: str) -> Callable[[], object]:
        def replace() -> None:
            new = self.path.with_suffix(".new")
            new.write_text(text)
            os.replace(new, self.path)

        return replace


def nothing() -> None:
    pass


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    reader = Reader(tmp_path / "file")
    reader.write("one")()
    os.utime(reader.path, (0, 1_700_000_000.5))
    reader.poller.load()
    reader.log.clear()
    return reader


def test_a_file_is_read_at_start_and_its_time_is_known(reader: Reader) -> None:
    assert (reader.text, reader.poller.modified) == ("one", 1_700_000_000.5)


def test_a_file_is_read_again_only_after_a_change(reader: Reader) -> None:
    assert reader.after(nothing, reader.write("two"), nothing) == ["read", "changed two"]


def test_a_change_that_keeps_time_and_size_is_one(reader: Reader) -> None:
    def rewrite() -> None:
        reader.path.write_text("two")
        os.utime(reader.path, (0, 1_700_000_000.5))

    assert reader.after(rewrite) == ["read", "changed two"]


def test_bad_text_is_read_and_reported_once_and_the_last_good_content_stays(reader: Reader) -> None:
    assert reader.after(reader.write("bad"), nothing, nothing) == ["read", "BadText"]
    assert reader.text == "one"


def test_each_change_to_bad_text_is_reported(reader: Reader) -> None:
    assert reader.after(reader.write("bad"), reader.write("bad")) == ["read", "BadText"] * 2


def test_a_missing_file_is_reported_once_until_it_is_back(reader: Reader) -> None:
    found = reader.after(reader.path.unlink, nothing, reader.write("two"), reader.path.unlink)
    assert found == ["FileNotFoundError", "read", "changed two", "FileNotFoundError"]


def test_a_file_that_cannot_be_read_is_tried_at_every_look(reader: Reader) -> None:
    def replace_by_a_directory() -> None:
        reader.path.unlink()
        reader.path.mkdir()

    assert reader.after(replace_by_a_directory, nothing, nothing) == ["read", "IsADirectoryError", "read", "read"]


def test_a_missing_file_that_load_has_raised_is_not_reported_again(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        reader.poller.load()
    assert reader.after(nothing, reader.write("one")) == ["read", "changed one"]


def test_bad_text_at_start_is_raised(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "file")
    reader.write("bad")()
    with pytest.raises(BadText):
        reader.poller.load()


def test_with_an_interval_of_0_a_file_is_read_at_start_alone(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "file", interval=0)
    reader.write("one")()
    reader.poller.load()
    assert reader.after(reader.write("two")) == ["read"]
