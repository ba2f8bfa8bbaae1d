"""Metrics of the plugins cache, hosts, template, autopath and dns64."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import attrgetter
from typing import Final

from topodns.app.counters import CacheLabels, Counted, cache_labels, servers_of
from topodns.app.server_block import Workings
from topodns.metrics.registry import Published, Reading
from topodns.query.counters import QueryCounters
from topodns.query.plugin_counts import FailureKey, TemplateCounts

AllWorkings = Callable[[], Iterable[Workings]]
Tallies = Callable[[], Iterable[QueryCounters]]
Labels = tuple[str, ...]
Rows = Iterable[tuple[Labels, float]]

_CACHE: Final = ("server", "zones", "view")
_CACHE_BY_TYPE: Final = ("server", "type", "zones", "view")

# name, documentation, attribute of CacheCounts
_OF_CACHE: Final = (
    ("coredns_cache_misses", "Queries that the cache could not answer by itself.", "misses"),
    ("coredns_cache_prefetch", "Answers that were asked for anew before anybody had to wait for them.", "prefetches"),
    ("coredns_cache_served_stale", "Answers given beyond their TTL.", "served_stale"),
    ("coredns_cache_drops", "Responses that are too large to be kept.", "drops"),
)
_FAILURES: Final = (
    ("coredns_template_template_failures", "Templates that could not be filled in.", "render_failures"),
    ("coredns_template_rr_failures", "Texts of templates that are no record.", "record_failures"),
)


def resolver_readings(counted: Counted, workings: AllWorkings, tallies: Tallies) -> Iterator[Published]:
    """Metrics of the process-wide counters, and of the workings (shared state) and tallies at scrape time."""
    yield from _caches(counted, tallies)
    yield Reading(
        "coredns_cache_entries", "Answers kept.", "gauge", _CACHE_BY_TYPE, lambda: _entries(workings()).items()
    )
    yield from _hosts(workings)
    for name, documentation, attribute in _FAILURES:
        labels = ("server", "zone", "view", "class", "type", "section", "template")
        yield Reading(name, documentation, "counter", labels, partial(_template_failures, counted, attribute))
    yield Reading(
        "coredns_autopath_success",
        "Names that were found further on in a search list.",
        "counter",
        ("server",),
        lambda: [((server,), counts.successes) for server, counts in counted.autopath.items()],
    )
    yield Reading(
        "coredns_dns64_requests_translated",
        "Answers with AAAA records made from A records.",
        "counter",
        ("server",),
        lambda: [((server,), counts.translated) for server, counts in counted.dns64.items()],
    )


def _caches(counted: Counted, tallies: Tallies) -> Iterator[Published]:
    yield Reading(
        "coredns_cache_hits",
        "Queries that the cache answered.",
        "counter",
        _CACHE_BY_TYPE,
        lambda: _hits(tallies()).items(),
    )
    yield Reading(
        "coredns_cache_requests",
        "Queries that came as far as the cache.",
        "counter",
        _CACHE,
        lambda: _requests(counted, tallies()).items(),
    )
    for name, documentation, attribute in _OF_CACHE:
        yield Reading(name, documentation, "counter", _CACHE, partial(_of_caches, counted, attribute))
    yield Reading(
        "coredns_cache_evictions",
        "Answers that had to make room for others.",
        "counter",
        _CACHE_BY_TYPE,
        lambda: _evictions(counted),
    )


def _hits(tallies: Iterable[QueryCounters]) -> Counter[Labels]:
    """Cache hits by labels, including packet cache hits: a copy counts like its original answer."""
    hits: Counter[Labels] = Counter()
    for tally in tallies:
        for kind, times in tally.kinds():
            if kind.plugin == "cache":
                *_, sort, zones = kind.outcome.split(" ")
                hits[(tally.server, sort, zones, kind.view)] += times
    return hits


def _requests(counted: Counted, tallies: Iterable[QueryCounters]) -> Counter[Labels]:
    requests: Counter[Labels] = Counter({labels: counts.misses for labels, counts in counted.caches.items()})
    for (server, _, zones, view), times in _hits(tallies).items():
        requests[CacheLabels(server, zones, view)] += times
    return requests


def _of_caches(counted: Counted, attribute: str) -> Rows:
    return [(labels, getattr(counts, attribute)) for labels, counts in counted.caches.items()]


def _evictions(counted: Counted) -> Rows:
    for (server, zones, view), counts in counted.caches.items():
        yield (server, "success", zones, view), counts.success.evictions
        yield (server, "denial", zones, view), counts.denial.evictions


def _entries(all_workings: Iterable[Workings]) -> Counter[Labels]:
    """Cache entries by labels: each server of a block counts the whole cache of the block."""
    entries: Counter[Labels] = Counter()
    for workings in all_workings:
        if workings.cache is None:
            continue
        memory = workings.cache.memory
        for server in servers_of(workings.settings):
            _, zones, view = cache_labels(workings.settings, server)
            entries[(server, "success", zones, view)] += len(memory.success)
            entries[(server, "denial", zones, view)] += len(memory.denial) + len(memory.failure)
    return entries


def _hosts(workings: AllWorkings) -> Iterator[Published]:
    yield Reading(
        "coredns_hosts_entries",
        "Names and addresses of hosts, those of the Corefile included.",
        "gauge",
        ("hostsfile",),
        lambda: _host_entries(workings()).items(),
    )
    yield Reading(
        "coredns_hosts_reload_timestamp_seconds",
        "When a hosts file that was read had been changed last.",
        "gauge",
        (),
        lambda: _host_times(workings()),
    )


def _host_entries(all_workings: Iterable[Workings]) -> Counter[Labels]:
    entries: Counter[Labels] = Counter()
    for workings in all_workings:
        if workings.hosts is not None and workings.settings.hosts is not None:
            entries[(workings.settings.hosts.file,)] += workings.hosts.entries
    return entries


def _host_times(all_workings: Iterable[Workings]) -> Rows:
    sources = (workings.hosts_source for workings in all_workings)
    newest = max((source.modified for source in sources if source is not None), default=0.0)
    return [((), newest)] if newest else []


def _template_failures(counted: Counted, attribute: str) -> Rows:
    failures_of: Callable[[TemplateCounts], Counter[FailureKey]] = attrgetter(attribute)
    for (server, view), counts in counted.templates.items():
        for (origin, *rest), times in failures_of(counts).items():
            yield (server, origin, view, *rest), times
