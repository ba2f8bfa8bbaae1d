"""The chart as helm renders it: nothing here runs in a cluster (tests/cluster/test_chart.py does)."""

from pathlib import Path

import pytest

from tests.support.chart.helm import HELM
from tests.support.suite_skips import skip_all, those_of


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where no helm could be built, nothing is rendered."""
    ours = those_of(Path(__file__).parent, items)
    if ours and HELM.missing:
        reason = "NO HELM HERE, nothing of tests/chart is tried: run `make test-chart`, which builds it where Go is"
        skip_all(config, items, ours, reason)
