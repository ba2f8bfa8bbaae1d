"""The address and the monitor of `ready`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.corefile.arguments import Address
from topodns.plugins.ready import Ready


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("ready", Ready(Address("", 8181), continuously=False)),
        ("ready 127.0.0.1:1", Ready(Address("127.0.0.1", 1))),
        ("ready {\n monitor until-ready\n}", Ready()),
        ("ready {\n monitor continuously\n}", Ready(continuously=True)),
    ],
)
def test_ready(lines: str, expected: Ready) -> None:
    assert only_block(lines).settings.get("ready") == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            "ready localhost",
            "2: 'ready' has the arguments 'localhost', expected one address HOST:PORT or :PORT at most",
        ),
        ("ready {\n monitor always\n}", "3: 'monitor' has 'always', expected until-ready or continuously"),
        ("ready {\n watch\n}", "3: unknown option 'watch' of 'ready', expected monitor"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"
