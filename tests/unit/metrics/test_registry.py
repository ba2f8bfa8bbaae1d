"""Readings as the lines of a scrape, read back by Prometheus's own parser."""

from tests.support.exposition_samples import only, scraped
from topodns.metrics.registry import Distribution, Reading
from topodns.query.histogram import Histogram


def test_readings_are_gauges_and_counters_with_their_labels() -> None:
    readings = [
        Reading("coredns_reload_failed", "Bad Corefiles.", "counter", (), lambda: [((), 5)]),
        Reading(
            "coredns_plugin_enabled",
            "Directives.",
            "gauge",
            ("server", "zone", "view", "name"),
            lambda: [(("dns://:53", ".", "", "errors"), 1), (("dns://:53", ".", "", 'a"b\\c\n'), 1)],
        ),
    ]
    samples = scraped(readings=readings)
    assert only(samples, "coredns_reload_failed_total") == {"": 5}
    assert only(samples, "coredns_plugin_enabled") == {
        '{name="errors",server="dns://:53",view="",zone="."}': 1,
        '{name="a"b\\c\n",server="dns://:53",view="",zone="."}': 1,
    }


def test_a_distribution_is_a_histogram_without_labels() -> None:
    name = "coredns_health_request_duration_seconds"
    histogram = Histogram((0.00025, 0.0025))
    histogram.counts, histogram.sum = [1, 2, 3], 0.5
    samples = scraped(readings=[Distribution(name, "Health checks.", (), lambda: [((), histogram)])])
    assert only(samples, f"{name}_bucket") == {'{le="0.00025"}': 1, '{le="0.0025"}': 3, '{le="+Inf"}': 6}
    assert only(samples, f"{name}_count") == {"": 6}
    assert only(samples, f"{name}_sum") == {"": 0.5}
