"""A node of its own for each test, in network namespaces (root)."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.namespaced_cluster import NodeScene, node_scene
from tests.support.namespaced_node import Setup, namespaces_of, setup, why_impossible
from tests.support.node_processes import ClusterServer, cluster_dns
from tests.support.suite_skips import skip_all, those_of


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where no namespaces can be had, nothing is tried."""
    ours = those_of(Path(__file__).parent, items)
    if ours and (reason := why_impossible()):
        skip_all(config, items, ours, f"NO NETWORK NAMESPACES HERE, nothing of tests/node is tried: {reason}")


@pytest.fixture(scope="session", autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    assert namespaces_of(os.getpid()) == []


@pytest.fixture
def scene() -> Iterator[Setup]:
    """A node with servers that answer a word."""
    with setup() as made:
        yield made


@pytest.fixture
def cluster() -> Iterator[NodeScene]:
    """One node with two Pods, node-a1 of the demo; nothing runs yet."""
    with node_scene("node-a1", pods=2) as made:
        yield made


@pytest.fixture
def servers(cluster: NodeScene, tmp_path: Path) -> Iterator[tuple[ClusterServer, ClusterServer]]:
    """The cluster DNS, answering."""
    with cluster_dns(cluster, tmp_path) as made:
        yield made
