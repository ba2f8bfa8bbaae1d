"""A real Prometheus over a real server, and over a real node cache (root), for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dashboard_targets import asked_node_cache, asked_server
from tests.support.namespaced_node import why_impossible
from tests.support.prometheus import Prometheus, kept
from tests.support.suite_skips import skip_all, those_of


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where no Prometheus could be had, nothing is asked of it; without namespaces, no node cache."""
    ours = those_of(Path(__file__).parent, items)
    if ours and not kept("prometheus").exists():
        reason = "NO PROMETHEUS HERE, no dashboard is tried: run `make test-dashboards`, which takes Debian's"
        skip_all(config, items, ours, reason)
        return
    of_nodes = [item for item in ours if "node_cache" in getattr(item, "fixturenames", ())]
    if of_nodes and (reason := why_impossible()):
        skip_all(
            config, items, of_nodes, f"NO NETWORK NAMESPACES HERE, no dashboard of a node cache is tried: {reason}"
        )


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with asked_server(tmp_path_factory.mktemp("server")) as scraping:
        yield scraping


@pytest.fixture(scope="session")
def node_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with asked_node_cache(tmp_path_factory.mktemp("node")) as scraping:
        yield scraping
