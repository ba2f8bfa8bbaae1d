"""The address and the lameduck of `health`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.corefile.arguments import Address
from topodns.plugins.health import Health


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("health", Health(Address("", 8080), 0.0)),
        ("health :8081", Health(Address("", 8081))),
        ("health localhost:8081", Health(Address("localhost", 8081))),
        ("health [::1]:8081", Health(Address("::1", 8081))),
        ("health {\n lameduck 5s\n}", Health(lameduck=5.0)),
    ],
)
def test_health(lines: str, expected: Health) -> None:
    assert only_block(lines).settings.get("health") == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            "health 8080",
            "2: 'health' has the arguments '8080', expected one address HOST:PORT or :PORT at most; "
            "did you mean ':8080'?",
        ),
        ("health 8080 1", "2: 'health' has the arguments '8080 1', expected one address HOST:PORT or :PORT at most"),
        ("health 127.0.0.300:80", "2: 'health' has '127.0.0.300:80', expected an IP address or a name"),
        ("health [localhost]:80", "2: 'health' has '[localhost]:80', expected an IP address or a name"),
        ("health *:80", "2: 'health' has '*:80', expected an IP address or a name"),
        ("health :65536", "2: 'health' has ':65536', expected a port from 1 to 65535"),
        ("health :999999", "2: 'health' has ':999999', expected a port from 1 to 65535"),
        ("health ::1:80", "2: 'health' has the arguments '::1:80', expected one address HOST:PORT or :PORT at most"),
        ("health :1 :2", "2: 'health' has the arguments ':1 :2', expected one address HOST:PORT or :PORT at most"),
        ("health {\n lameduck\n}", "3: 'lameduck' has no argument, expected a duration"),
        ("health {\n lameduck 5\n}", "3: 'lameduck' has '5', expected a duration such as 5s, 1m30s or 500ms"),
        ("health {\n lameduk 5s\n}", "3: unknown option 'lameduk' of 'health', did you mean 'lameduck'?"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"
