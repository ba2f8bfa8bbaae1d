"""A stream whose reader is scripted, and files."""

import asyncio
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.virtual_event_loop import run_virtually
from topodns.app.standard_streams import (
    ATOMIC,
    CAPACITY,
    LONGEST_PAUSE,
    BoundedStream,
    dropped_reading,
    unblocked_output,
)

LEFT_OUT = re.compile(r"\[WARNING\] (\d+) lines of the log were left out here: its reader did not take them")


class Pipe:
    """Takes octets while it has room."""

    def __init__(self, room: int = sys.maxsize) -> None:
        self.room = room
        self.writes: list[bytes] = []
        self.attempts = 0
        self.error: OSError = BlockingIOError()

    def __call__(self, octets: bytes) -> int:
        self.attempts += 1
        if not self.room:
            raise self.error
        taken = octets[: self.room]
        self.room -= len(taken)
        self.writes.append(taken)
        return len(taken)

    @property
    def lines(self) -> list[str]:
        return b"".join(self.writes).decode().splitlines()


def stream_to(pipe: Pipe) -> BoundedStream:
    return BoundedStream(1, "utf-8", pipe)


def test_a_line_is_written_at_once_and_whole() -> None:
    pipe = Pipe()
    stream = stream_to(pipe)
    print("[INFO] one", file=stream, flush=True)
    stream.write("[INFO] ")
    stream.write("two\n[INFO] three\n[INFO] fo")
    assert pipe.writes == [b"[INFO] one\n", b"[INFO] two\n[INFO] three\n"]
    stream.write("ur\n")
    assert pipe.writes[2:] == [b"[INFO] four\n"]


def test_each_write_is_whole_lines_and_no_more_than_a_pipe_keeps_together() -> None:
    pipe = Pipe()
    lines = [f"{number}.{'ä' * 60}" for number in range(200)]
    stream_to(pipe).write("".join(f"{line}\n" for line in lines))
    assert all(each.endswith(b"\n") and len(each) <= ATOMIC for each in pipe.writes)
    assert len(pipe.writes) < len(lines) / 20
    assert pipe.lines == lines
    stream_to(pipe).write("x" * ATOMIC + "\n")
    assert len(pipe.writes[-1]) == ATOMIC + 1  # nothing is lost


def test_text_that_the_encoding_lacks_is_escaped() -> None:
    pipe = Pipe()
    BoundedStream(1, "latin-1", pipe).write("ä … \udcff\n")
    assert pipe.writes == [b"\xe4 \\u2026 \\udcff\n"]


@pytest.mark.parametrize("error", [BlockingIOError(), BrokenPipeError(), OSError(28, "no space"), OSError(5, "I/O")])
def test_lines_wait_for_a_reader_that_comes_back(error: OSError) -> None:
    async def story() -> None:
        pipe = Pipe(room=14)
        pipe.error = error
        stream = stream_to(pipe)
        for line in ("one\n", "two\n", "three\n", "four\n"):
            stream.write(line)
        assert pipe.lines == ["one", "two", "three"]
        await asyncio.sleep(100)
        pipe.room = 2
        await asyncio.sleep(LONGEST_PAUSE)
        pipe.room = sys.maxsize
        await asyncio.sleep(LONGEST_PAUSE)
        assert pipe.lines == ["one", "two", "three", "four"]
        stream.write("five\n")
        assert pipe.lines[-1] == "five"
        assert stream.dropped == 0

    run_virtually(story())


def test_a_reader_that_stays_away_is_tried_once_a_second() -> None:
    async def story() -> None:
        pipe = Pipe(room=0)
        stream = stream_to(pipe)
        for number in range(1000):
            stream.write(f"{number}\n")
            await asyncio.sleep(0.1)
        assert pipe.attempts < 120

    run_virtually(story())


def test_lines_beyond_the_capacity_are_dropped_and_counted_until_all_that_waited_is_written() -> None:
    async def story() -> None:
        pipe = Pipe(room=0)
        stream = stream_to(pipe)
        line = "x" * 999 + "\n"
        for _ in range(CAPACITY // 1000 + 10):
            stream.write(line)
        assert stream.dropped == 10
        pipe.room = 500_000
        await asyncio.sleep(LONGEST_PAUSE)
        stream.write("after\n")  # there is room for it, but it would not be in its place
        assert stream.dropped == 11
        pipe.room = sys.maxsize
        await asyncio.sleep(LONGEST_PAUSE)
        stream.write("again\n")
        *kept, said, last = pipe.lines
        assert kept == [line[:-1]] * (CAPACITY // 1000)
        assert (said, last) == (
            "[WARNING] 11 lines of the log were left out here: its reader did not take them",
            "again",
        )

    run_virtually(story())


@settings(max_examples=80, deadline=None)
@given(st.lists(st.one_of(st.integers(1, 6000), st.integers(-20_000, -1)), max_size=40))
def test_whatever_a_reader_takes_it_gets_whole_lines_in_order_and_the_number_of_those_it_missed(
    steps: list[int],
) -> None:
    """A positive step is a line of this length, a negative one lets the reader take so many octets."""

    async def story() -> None:
        pipe = Pipe(room=0)
        stream = stream_to(pipe)
        written = []
        for number, step in enumerate(steps):
            if step > 0:
                written.append(f"{number} {'x' * step}")
                stream.write(f"{written[-1]}\n")
            else:
                pipe.room += -step
                await asyncio.sleep(LONGEST_PAUSE)
        pipe.room = sys.maxsize
        await asyncio.sleep(LONGEST_PAUSE)
        _assert_told(pipe.lines, written)
        assert pipe.writes == [] or pipe.writes[-1].endswith(b"\n")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("topodns.app.standard_streams.CAPACITY", 10_000)
        run_virtually(story())


def _assert_told(lines: list[str], written: list[str]) -> None:
    """Each line was either read or is counted at its place."""
    place = 0
    for line in lines:
        if missed := LEFT_OUT.fullmatch(line):
            place += int(missed[1])
        else:
            assert line == written[place]
            place += 1
    assert place == len(written)


@pytest.fixture
def print_within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Prints a line before, within and after `unblocked_output`, to both streams; returns the content of the file."""

    def prints() -> str:
        path = tmp_path / "log"
        path.write_text("earlier\n")
        with path.open("a") as out, path.open("a") as err:
            monkeypatch.setattr(sys, "stdout", out)
            monkeypatch.setattr(sys, "stderr", err)
            print("before")
            with unblocked_output():
                print("out")
                print("err", file=sys.stderr)
                assert isinstance(sys.stdout, BoundedStream)
                assert sys.stdout is sys.stderr
            assert [id(sys.stdout), id(sys.stderr)] == [id(out), id(err)]
            print("after", flush=True)
        monkeypatch.undo()
        return path.read_text()

    return prints


def test_a_file_gets_all_lines_of_both_streams_in_order_behind_what_it_has(print_within: Callable[[], str]) -> None:
    assert print_within() == "earlier\nbefore\nout\nerr\nafter\n"


def test_a_stream_whose_reader_does_not_come_stays_bounded_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    monkeypatch.setattr("topodns.app.standard_streams.AT_EXIT", 0.0)
    with os.fdopen(write_end, "w") as out, os.fdopen(read_end):
        monkeypatch.setattr(sys, "stdout", out)
        with unblocked_output():
            print("x" * 70_000)
            print("x" * 70_000)
            for _ in range(CAPACITY // 1000):
                print("x" * 999)
        assert sys.stdout is not out
        print("this does not wait either", flush=True)
        monkeypatch.undo()


def test_streams_that_are_no_files_stay_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout
    with unblocked_output():
        assert sys.stdout is before
        (row,) = dropped_reading().read()
    assert row == ((), 0)
