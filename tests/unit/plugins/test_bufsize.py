"""The size of `bufsize`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block


@pytest.mark.parametrize(
    ("lines", "size"), [("bufsize", 1232), ("bufsize 512", 512), ("bufsize 4096", 4096), ("", None)]
)
def test_bufsize(lines: str, size: int | None) -> None:
    assert only_block(lines).settings.get("bufsize") == size


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("bufsize 511", "2: 'bufsize' has '511', expected a whole number from 512 to 4096"),
        ("bufsize 4097", "2: 'bufsize' has '4097', expected a whole number from 512 to 4096"),
        ("bufsize 1 2", "2: 'bufsize' has the arguments '1 2', expected one size at most"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"
