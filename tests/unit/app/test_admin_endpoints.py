"""The HTTP endpoints at each address."""

from collections.abc import Mapping

import pytest

from tests.support.corefile_settings import settings
from tests.support.generation_builder import assembly
from topodns.app.admin_endpoints import Admin
from topodns.app.metrics import Metrics
from topodns.corefile.arguments import Address
from topodns.inspect.routes import inspection

INSPECTION = {"/explain", "/who", "/top", "/audit"}  # at other addresses a reply that names that of `ready`
ALL = "health 127.0.0.1:1\nready 127.0.0.1:2\nprometheus 127.0.0.1:3"


def served(corefile: str, metrics_listen: Address | None = None) -> Mapping[tuple[str, int], set[str]]:
    """The paths at each address."""
    routes = Admin(Metrics(list, ()), metrics_listen, more=inspection(list))._routes(
        assembly().build(settings(corefile))
    )
    return {(at.host, at.port): set(paths) for at, paths in routes.items()}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("whoami", {}),
        (ALL, {1: {"/health"} | INSPECTION, 2: {"/ready"} | INSPECTION, 3: {"/metrics"} | INSPECTION}),
        ("ready 127.0.0.1:1\nhealth 127.0.0.1:1", {1: {"/health", "/ready"} | INSPECTION}),
    ],
)
def test_each_directive_serves_its_endpoints_at_its_address(lines: str, expected: Mapping[int, set[str]]) -> None:
    assert served(f". {{\n{lines}\n}}\n") == {("127.0.0.1", port): paths for port, paths in expected.items()}


def test_the_endpoints_of_all_blocks_are_served() -> None:
    blocks = "a.org {\nready 127.0.0.1:1\n}\nb.org {\nready 127.0.0.1:2\nprometheus 127.0.0.1:1\n}\n"
    assert served(blocks) == {
        ("127.0.0.1", 1): {"/ready", "/metrics"} | INSPECTION,
        ("127.0.0.1", 2): {"/ready"} | INSPECTION,
    }


def test_metrics_may_have_a_further_address() -> None:
    assert served(". {\nwhoami\n}\n", Address("127.0.0.1", 9253)) == {("127.0.0.1", 9253): {"/metrics"}}
