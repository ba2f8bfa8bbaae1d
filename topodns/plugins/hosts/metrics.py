"""Metrics of `hosts`."""

from collections import Counter
from collections.abc import Iterable, Iterator

from topodns.metrics.registry import Published, Reading
from topodns.plugins.hosts.handler import HostNames
from topodns.plugins.hosts.source import HostsSource
from topodns.plugins.setup import MetricsSource

Labels = tuple[str, ...]


def readings(source: MetricsSource) -> Iterator[Published]:
    """The metrics, under CoreDNS's names."""
    yield Reading(
        "coredns_hosts_entries",
        "Names and addresses of hosts, those of the Corefile included.",
        "gauge",
        ("hostsfile",),
        lambda: _entries(source).items(),
        adds_up=False,
    )
    yield Reading(
        "coredns_hosts_reload_timestamp_seconds",
        "When a hosts file that was read had been changed last.",
        "gauge",
        (),
        lambda: _times(source),
        adds_up=False,
    )


def _entries(source: MetricsSource) -> Counter[Labels]:
    entries: Counter[Labels] = Counter()
    for prepared in source.blocks():
        for handler in prepared.provided(HostNames):
            entries[(handler.file,)] += handler.entries
    return entries


def _times(source: MetricsSource) -> Iterable[tuple[Labels, float]]:
    files = (file for prepared in source.blocks() for file in prepared.provided(HostsSource))
    newest = max((file.poller.modified for file in files), default=0.0)
    return [((), newest)] if newest else []
