"""Metrics of autopath in a scrape."""

from tests.support.plugin_metrics import shown
from topodns.plugins.autopath.handler import AutopathCounts
from topodns.plugins.setup import Shared


def test_names_found_are_counted_by_server() -> None:
    shared = Shared()
    shared.get(AutopathCounts, "dns://:53").successes = 3
    assert shown("autopath", "coredns_autopath_success_total", shared) == {'{server="dns://:53"}': 3}
