"""Skips of suites that need more than Python, each with its reason in one line."""

from collections.abc import Sequence
from pathlib import Path

import pytest


def those_of(folder: Path, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests in this folder."""
    return [item for item in items if folder in item.path.parents]


def skip_all(config: pytest.Config, items: list[pytest.Item], those: Sequence[pytest.Item], reason: str) -> None:
    """Skip one of `those` for all of them, so that the reason is in one line; `items` are all collected."""
    first, *others = those
    first.add_marker(pytest.mark.skip(reason=reason))
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]
