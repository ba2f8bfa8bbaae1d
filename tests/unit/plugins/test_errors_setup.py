"""The options of `errors`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.plugins.errors import Consolidation, Errors


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
