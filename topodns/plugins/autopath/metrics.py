"""Metrics of `autopath`."""

from collections.abc import Iterator

from topodns.metrics.registry import Published, Reading
from topodns.plugins.autopath.handler import AutopathCounts
from topodns.plugins.setup import MetricsSource


def readings(source: MetricsSource) -> Iterator[Published]:
    """The counter of names found further on in a search list, under CoreDNS's name."""
    yield Reading(
        "coredns_autopath_success",
        "Names that were found further on in a search list.",
        "counter",
        ("server",),
        lambda: [(labels, counts.successes) for labels, counts in source.shared.all(AutopathCounts)],
    )
