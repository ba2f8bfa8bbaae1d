"""The topology page in a real browser: Debian's Chromium without a window."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.chromium import HOW_TO, PROGRAM, chromium
from tests.support.suite_skips import skip_all, those_of


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = those_of(Path(__file__).parent, items)
    if ours and PROGRAM is None:
        skip_all(config, items, ours, f"NO CHROMIUM HERE, the topology page is tried in no browser: {HOW_TO}")


@pytest.fixture(scope="session")
def browser() -> Iterator[int]:
    with chromium() as port:
        yield port
