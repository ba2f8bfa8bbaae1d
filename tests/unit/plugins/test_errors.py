"""`errors`: a line for each failure, or one line for all that look alike."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from tests.support.query_builders import ask
from tests.support.virtual_timers import VirtualTimers
from topodns.dns.rrtype import type_text
from topodns.plugins.errors import Consolidation, ErrorLog, Errors

TIMEOUT = "read udp 10.0.0.1:53: i/o timeout"


def story(lines: str, *problems: str) -> list[str]:
    """The log after these problems, a second apart, and then a minute."""
    timers, written = VirtualTimers(), list[str]()
    settings = only_block(f"errors {{\n{lines}\n}}").settings.get("errors")
    assert settings is not None
    log = ErrorLog(settings, timers, lambda level, line: written.append(f"{level} {line}"))
    for problem in problems:
        log(ask("example.org."), problem)
        timers.advance(1)
    timers.advance(60)
    return written


@pytest.mark.parametrize(
    ("lines", "problems", "written"),
    [
        ("", [TIMEOUT, TIMEOUT], [f"40 2 example.org. A: {TIMEOUT}"] * 2),
        (
            'consolidate 30s ".* i/o timeout$"',
            [TIMEOUT, TIMEOUT, "refused"],
            ["40 2 example.org. A: refused", "40 2 errors like '.* i/o timeout$' occurred in last 30s"],
        ),
        ("consolidate 30s timeout", [TIMEOUT], ["40 1 errors like 'timeout' occurred in last 30s"]),
        ("consolidate 30s timeout warning show_first", [TIMEOUT], [f"30 2 example.org. A: {TIMEOUT}"]),
        (
            "consolidate 30s timeout info show_first",
            [TIMEOUT] * 3,
            [f"20 2 example.org. A: {TIMEOUT}", "20 3 errors like 'timeout' occurred in last 30s"],
        ),
        (
            "consolidate 30s udp debug\nconsolidate 30s timeout",
            [TIMEOUT] * 2,
            ["10 2 errors like 'udp' occurred in last 30s"],
        ),
        (
            "consolidate 2s timeout",
            [TIMEOUT] * 4,
            ["40 2 errors like 'timeout' occurred in last 2s", "40 2 errors like 'timeout' occurred in last 2s"],
        ),
    ],
)
def test_errors_are_logged_one_by_one_or_together(lines: str, problems: list[str], written: list[str]) -> None:
    assert story(lines, *problems) == written


@pytest.mark.parametrize(
    ("qtype", "name"), [(257, "CAA"), (35, "NAPTR"), (13, "HINFO"), (99, "SPF"), (65, "HTTPS"), (64999, "TYPE64999")]
)
def test_every_type_is_named_as_in_the_query_log(qtype: int, name: str) -> None:
    written = list[str]()
    query = ask("example.org.")._replace(qtype=qtype)
    ErrorLog(Errors(), VirtualTimers(), lambda level, line: written.append(line))(query, "refused")
    assert written == [f"2 example.org. {name}: refused"]
    assert type_text(qtype) == name


def test_errors_left_over_are_logged_at_the_end() -> None:
    timers, written = VirtualTimers(), list[str]()
    settings = only_block("errors {\nconsolidate 30s timeout\n}").settings.get("errors")
    assert settings is not None
    log = ErrorLog(settings, timers, lambda level, line: written.append(line))
    log(ask("example.org."), TIMEOUT)
    log.close()
    assert written == ["1 errors like 'timeout' occurred in last 30s"]
    assert timers.pending == 0


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("errors", Errors()),
        ("errors stdout", Errors()),
        ("errors {\n}", Errors()),
        ("errors {\n stacktrace\n}", Errors()),
        ('errors {\n consolidate 5m ".* timeout$"\n}', Errors((Consolidation(300.0, "5m", ".* timeout$"),))),
        (
            "errors {\n consolidate 30s a warning show_first\n consolidate 1s b\n}",
            Errors((Consolidation(30.0, "30s", "a", "warning", True), Consolidation(1.0, "1s", "b"))),
        ),
    ],
)
def test_errors(lines: str, expected: Errors) -> None:
    block = only_block(lines)
    assert block.settings.get("errors") == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("errors stderr", "2: 'errors' has the arguments 'stderr', expected none"),
        ("errors {\n stacktrace on\n}", "3: 'stacktrace' has the arguments 'on', expected none"),
        (
            "errors {\n consolidate 5m\n}",
            "3: 'consolidate' has the arguments '5m', expected a duration and a regular expression",
        ),
        ("errors {\n consolidate 5m (\n}", "3: 'consolidate' has the regular expression '(': missing ): ("),
        (
            "errors {\n consolidate 5m a loud\n}",
            "3: 'consolidate' has 'loud', expected debug, info, warning or error, then show_first",
        ),
        (
            "errors {\n consolidate 5m a show_first info\n}",
            "3: 'consolidate' has 'show_first info', expected debug, info, warning or error, then show_first",
        ),
        ("errors {\n stacktraces\n}", "3: unknown option 'stacktraces' of 'errors', did you mean 'stacktrace'?"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"
