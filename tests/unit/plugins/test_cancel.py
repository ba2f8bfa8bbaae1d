"""The duration of `cancel`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block


@pytest.mark.parametrize(
    ("directive", "problem"),
    [
        ("cancel 0s", "'cancel' has 0s, expected a duration above 0"),
        ("cancel 1s 2s", "'cancel' has the arguments '1s 2s', expected one duration at most"),
    ],
)
def test_values_without_a_meaning_are_refused(directive: str, problem: str) -> None:
    assert problem in block_problem(directive)


def test_a_query_is_cancelled_after_five_seconds_unless_said_otherwise() -> None:
    assert only_block("cancel").settings.get("cancel") == 5.001
    assert only_block("cancel 2s").settings.get("cancel") == 2.0
