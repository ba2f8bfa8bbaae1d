"""The metrics of one plugin, as a scrape shows them."""

from collections.abc import Iterable

from tests.support.exposition_samples import only, scraped
from topodns.plugins.plugin import load
from topodns.plugins.setup import BlockSetup, MetricsSource, Shared
from topodns.query.counters import QueryCounters


def shown(
    plugin: str,
    name: str,
    shared: Shared | None = None,
    blocks: Iterable[BlockSetup] = (),
    counters: Iterable[QueryCounters] = (),
) -> dict[str, float]:
    """The samples of the metric `name` by their labels."""
    metrics = load(plugin).metrics
    assert metrics is not None
    source = MetricsSource(shared or Shared(), lambda: blocks, lambda: counters)
    return only(scraped(readings=metrics(source)), name)
