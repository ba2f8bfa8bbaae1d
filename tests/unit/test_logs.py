""""""

import asyncio
import logging
import warnings
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.virtual_event_loop import virtual_time
from topodns.logs import (
    FLUSH_AFTER,
    LONGEST,
    MAX_KINDS,
    MAX_PER_SECOND,
    LineWriter,
    RateLimit,
    one_line,
    printable,
    start_logging,
)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.5

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


class Output:
    """All that was written to stdout."""

    def __init__(self, captured: pytest.CaptureFixture[str]) -> None:
        self._captured = captured
        self._text = ""

    def getvalue(self) -> str:
        self._text += self._captured.readouterr().out
        return self._text


@pytest.fixture
def stream(clock: Clock, capsys: pytest.CaptureFixture[str]) -> Iterator[Output]:
    """Where the log goes; the root logger is put back in the end."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = []
    start_logging(clock)
    yield Output(capsys)
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)


log = logging.getLogger("topodns.story")


@pytest.mark.parametrize(
    ("level", "line"),
    [
        (logging.INFO, "[INFO] plugin/reload: Running configuration SHA512 = 00\n"),
        (logging.WARNING, "[WARNING] plugin/reload: Running configuration SHA512 = 00\n"),
        (logging.ERROR, "[ERROR] plugin/reload: Running configuration SHA512 = 00\n"),
        (logging.CRITICAL, "[FATAL] plugin/reload: Running configuration SHA512 = 00\n"),
        (logging.DEBUG, ""),
    ],
)
def test_a_line_begins_with_its_level_as_coredns_spells_it(stream: Output, level: int, line: str) -> None:
    log.log(level, "plugin/%s: Running configuration SHA512 = %s", "reload", "00")
    assert stream.getvalue() == line


def test_every_line_of_a_traceback_has_its_level(stream: Output) -> None:
    try:
        raise ZeroDivisionError("as bugs do")
    except ZeroDivisionError:
        log.exception("bug: %s", "example. A")
    lines = stream.getvalue().splitlines()
    assert lines[0] == "[ERROR] bug: example. A"
    assert lines[-1] == "[ERROR] ZeroDivisionError: as bugs do"
    assert len(lines) > 3
    assert all(line.startswith("[ERROR] ") for line in lines)


def test_a_name_in_a_message_forges_no_line_and_does_nothing_to_a_terminal(stream: Output) -> None:
    log.warning("plugin/topology: Service %s", "a\n[FATAL] b\x1b[31m\u2028c")
    assert stream.getvalue() == "[WARNING] plugin/topology: Service a\\n[FATAL] b\\x1b[31m\\u2028c\n"


def test_neither_does_the_text_of_an_exception(stream: Output) -> None:
    try:
        raise ValueError("red \x1b[31m")
    except ValueError:
        log.exception("bug")
    assert stream.getvalue().splitlines()[-1] == "[ERROR] ValueError: red \\x1b[31m"


def test_warnings_of_libraries_are_log_lines(stream: Output) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old ways", DeprecationWarning, stacklevel=1)
    assert "[WARNING] " in stream.getvalue()
    assert "DeprecationWarning: old ways" in stream.getvalue()


def not_yet(number: int) -> None:
    log.error("plugin/errors: 2 %d.example. A: not yet", number)


def test_of_one_kind_of_line_so_many_are_written_a_second(stream: Output) -> None:
    for number in range(MAX_PER_SECOND + 5):
        not_yet(number)
    log.error("something else")
    lines = stream.getvalue().splitlines()
    assert len(lines) == MAX_PER_SECOND + 1
    assert lines[-2:] == [
        f"[ERROR] plugin/errors: 2 {MAX_PER_SECOND - 1}.example. A: not yet",
        "[ERROR] something else",
    ]


def test_other_lines_of_code_with_the_same_format_are_another_kind(stream: Output) -> None:
    for number in range(MAX_PER_SECOND + 5):
        log.error("%s", number)
    log.error("%s", "something else")
    assert stream.getvalue().splitlines()[MAX_PER_SECOND:] == ["[ERROR] something else"]


def test_the_next_second_logs_the_number_of_dropped_lines(stream: Output, clock: Clock) -> None:
    for number in range(MAX_PER_SECOND + 5):
        not_yet(number)
    clock.now += 1
    for number in range(2):
        not_yet(number)
    assert stream.getvalue().splitlines()[MAX_PER_SECOND:] == [
        "[ERROR] plugin/errors: 2 0.example. A: not yet (5 lines like it left out)",
        "[ERROR] plugin/errors: 2 1.example. A: not yet",
    ]


def test_a_kind_that_is_logged_all_the_time_is_written_every_second(stream: Output, clock: Clock) -> None:
    for _ in range(30 * 4):
        log.error("plugin/errors: again")
        clock.now += 0.025
    assert len(stream.getvalue().splitlines()) == 3 * MAX_PER_SECOND


def record(line: int) -> logging.LogRecord:
    """What this line of some file logs."""
    return logging.makeLogRecord({"msg": f"kind {line}", "lineno": line})


def test_no_more_kinds_are_remembered_than_allowed(clock: Clock) -> None:
    limit = RateLimit(clock)
    kept_back = 0
    for number in range(3 * MAX_KINDS):
        for _ in range(MAX_PER_SECOND + 1):
            kept_back += not limit.filter(record(number))
    assert kept_back == 3 * MAX_KINDS
    clock.now += 1
    texts = [record(number) for number in (0, 3 * MAX_KINDS - 1)]
    assert all(map(limit.filter, texts))
    assert [text.getMessage() for text in texts] == ["kind 0", f"kind {3 * MAX_KINDS - 1} (1 lines like it left out)"]


def test_percent_signs_in_logged_text_stay(stream: Output, clock: Clock) -> None:
    for seconds in [*[0] * MAX_PER_SECOND, 1, 0]:
        log.error("%s", "100%d of %s")
        clock.now += seconds
    assert stream.getvalue().splitlines()[-1] == "[ERROR] 100%d of %s (1 lines like it left out)"


@virtual_time
async def test_a_query_log_is_written_in_its_order_soon_after(capsys: pytest.CaptureFixture[str]) -> None:
    write = LineWriter()
    write("a.example.")
    write("b.example.")
    assert capsys.readouterr().out == ""
    await asyncio.sleep(FLUSH_AFTER)
    assert capsys.readouterr().out == "[INFO] a.example.\n[INFO] b.example.\n"
    write("c.example.")
    await asyncio.sleep(FLUSH_AFTER)
    assert capsys.readouterr().out == "[INFO] c.example.\n"


@virtual_time
async def test_gathered_lines_can_be_written_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    write = LineWriter()
    write("a.example.")
    write.flush()
    assert capsys.readouterr().out == "[INFO] a.example.\n"
    write.flush()
    write("b.example.")
    await asyncio.sleep(FLUSH_AFTER)
    assert capsys.readouterr().out == "[INFO] b.example.\n"


# Foreign text is shown as one short line that forges no other and does nothing to a terminal.

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates too, which no stream can write


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("default/web: an address", "default/web: an address"),
        ("größer als 名前", "größer als 名前"),
        ("red \x1b[31m", r"red \x1b[31m"),
        ("two\nlines", r"two\nlines"),
        ("right to left \u202e", r"right to left \u202e"),
        ("half \ud800", r"half \ud800"),
    ],
)
def test_unprintable_text_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" one\r\n\ttwo  three\x00 ", r"one two three\x00"),
        ("x" * LONGEST, "x" * LONGEST),
        ("x" * (LONGEST + 1), "x" * (LONGEST - 1) + "…"),
        ("\x1b" * LONGEST, (r"\x1b" * LONGEST)[: LONGEST - 1] + "…"),
        ("x" * 10_000_000, "x" * (LONGEST - 1) + "…"),
    ],
    ids=["white space", "just short enough", "too long", "too long once escaped", "very long"],
)
def test_a_line_is_short_and_has_single_blanks(text: str, shown: str) -> None:
    assert one_line(text) == shown


@given(ANY_TEXT)
def test_every_text_can_be_shown(text: str) -> None:
    for shown in (printable(text), one_line(text)):
        assert shown.isprintable()
        shown.encode()
    assert len(one_line(text)) <= LONGEST
