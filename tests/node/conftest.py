"""A node of its own for each test, in network namespaces (root)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.namespaces import World, why_impossible, world


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where no namespaces can be had, one test is skipped for all, so that the reason stands in one line."""
    ours = [item for item in items if Path(__file__).parent in item.path.parents]
    if not ours or not (reason := why_impossible()):
        return
    first, *others = ours
    first.add_marker(pytest.mark.skip(reason=f"NO NETWORK NAMESPACES HERE, nothing of tests/node is tried: {reason}"))
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]


@pytest.fixture
def scene() -> Iterator[World]:
    with world() as made:
        yield made
