"""The version and the authors of `chaos`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.plugins.chaos import Chaos


@pytest.mark.parametrize(
    ("lines", "chaos"),
    [
        ("chaos", Chaos()),
        ("chaos CoreDNS-001", Chaos("CoreDNS-001")),
        ("chaos v1 miek bob miek", Chaos("v1", ("bob", "miek"))),
        (f"chaos {'v' * 256}", Chaos("v" * 255)),
        (f"chaos {'é' * 200}", Chaos("é" * 127)),  # two octets each
    ],
)
def test_chaos(lines: str, chaos: Chaos) -> None:
    assert only_block(lines).settings.get("chaos") == chaos


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("chaos {\n x\n}", "3: found 'x', but 'chaos' has no options"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"
