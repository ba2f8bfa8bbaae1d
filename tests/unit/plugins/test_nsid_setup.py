"""The text of `nsid`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block


@pytest.mark.parametrize(("lines", "nsid"), [("nsid", ""), ("nsid a", "a"), ("nsid a  b", "a b"), ("", None)])
def test_nsid_is_all_its_arguments(lines: str, nsid: str | None) -> None:
    assert only_block(lines).settings.get("nsid") == nsid


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("nsid " + "x" * 256, "2: 'nsid' has 256 octets, expected at most 255"),
        ("nsid {\n x\n}", "3: found 'x', but 'nsid' has no options"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"
