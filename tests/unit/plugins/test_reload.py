"""The interval and the jitter of `reload`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.plugins.reload import Reload


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", Reload(30.0, 15.0)),
        ("10s", Reload(10.0, 5.0)),  # the jitter is at most half the interval
        ("2m 10s", Reload(120.0, 10.0)),
        ("2s 0s", Reload(2.0, 0.0)),
        ("off", None),
    ],
)
def test_reload(arguments: str, expected: Reload | None) -> None:
    assert only_block(f"reload {arguments}").settings.get("reload") == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("1s", "'reload' has the interval 1s, expected at least 2s"),
        ("5s 500ms", "'reload' has the jitter 500ms, expected 0 or at least 1s"),
        ("5s 1s 1s", "'reload' has the arguments '5s 1s 1s', expected an interval and a jitter at most, or off"),
        ("5", "'reload' has '5', expected a duration such as 5s, 1m30s or 500ms"),
        ("often", "'reload' has 'often', expected a duration such as 5s, 1m30s or 500ms"),
    ],
)
def test_a_wrong_reload_is_refused(arguments: str, expected: str) -> None:
    assert block_problem(f"reload {arguments}") == f"Corefile:2: {expected}"
