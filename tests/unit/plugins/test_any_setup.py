"""Directives that have no arguments: `any`, `whoami`, `local` and `minimal`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block


@pytest.mark.parametrize("name", ["any", "whoami", "local", "minimal"])
def test_a_directive_that_is_only_its_name(name: str) -> None:
    assert (only_block(name).settings, only_block("").settings) == ({name: True}, {})
    assert block_problem(f"{name} x") == f"Corefile:2: '{name}' has the arguments 'x', expected none"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("any {\n x\n}", "3: found 'x', but 'any' has no options"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"
