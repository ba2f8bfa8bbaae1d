"""A node of its own for each test, in network namespaces (root)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.namespaces import World, why_impossible, world
from tests.support.skipping import skip_all, those_of


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where no namespaces can be had, nothing is tried."""
    ours = those_of(Path(__file__).parent, items)
    if ours and (reason := why_impossible()):
        skip_all(config, items, ours, f"NO NETWORK NAMESPACES HERE, nothing of tests/node is tried: {reason}")


@pytest.fixture
def scene() -> Iterator[World]:
    with world() as made:
        yield made
