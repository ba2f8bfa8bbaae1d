"""The address of `prometheus`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.corefile.arguments import Address
from topodns.plugins.prometheus import Prometheus


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("prometheus", Prometheus(Address("localhost", 9153))),
        ("prometheus :9153", Prometheus(Address("", 9153))),
        ("prometheus 0.0.0.0:9253", Prometheus(Address("0.0.0.0", 9253))),
    ],
)
def test_prometheus(lines: str, expected: Prometheus) -> None:
    assert only_block(lines).settings.get("prometheus") == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("prometheus {\n tls web.yml\n}", "3: CoreDNS has the option 'tls' of 'prometheus', topodns does not"),
        ("prometheus {\n path /m\n}", "3: unknown option 'path' of 'prometheus', expected none"),
    ],
)
def test_a_wrong_line_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:{expected}"
