"""Metrics of `cache`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import attrgetter
from typing import Final

from topodns.metrics.registry import Published, Reading
from topodns.plugins.block import ServerBlock
from topodns.plugins.cache.counts import CacheCounts
from topodns.plugins.cache.handler import ResponseCache
from topodns.plugins.cache.settings import Cache, zones_label
from topodns.plugins.setup import MetricsSource
from topodns.query.answer_detail import CacheHit

Labels = tuple[str, ...]
Rows = Iterable[tuple[Labels, float]]

_LABELS: Final = ("server", "zones", "view")
_LABELS_BY_TYPE: Final = ("server", "type", "zones", "view")

# name, documentation, attribute of CacheCounts
_COUNTERS: Final = (
    ("coredns_cache_misses", "Queries that the cache could not answer by itself.", "misses"),
    ("coredns_cache_prefetch", "Refreshes of cached answers in the background.", "prefetches"),
    ("coredns_cache_served_stale", "Answers given beyond their TTL.", "served_stale"),
    ("coredns_cache_drops", "Responses that are too large to be kept.", "drops"),
)


def cache_labels(block: ServerBlock, settings: Cache, server: str) -> tuple[str, str, str]:
    """The values of the labels server, zones and view for the cache of a block."""
    return server, zones_label(settings), block.view_name


def readings(source: MetricsSource) -> Iterator[Published]:
    """The metrics, under CoreDNS's names."""
    shared = source.shared
    yield Reading(
        "coredns_cache_hits",
        "Queries that the cache answered.",
        "counter",
        _LABELS_BY_TYPE,
        lambda: _hits(source).items(),
    )
    yield Reading(
        "coredns_cache_requests",
        "Queries that came as far as the cache.",
        "counter",
        _LABELS,
        lambda: _requests(source).items(),
    )
    for name, documentation, attribute in _COUNTERS:
        yield Reading(name, documentation, "counter", _LABELS, partial(_counts, source, attrgetter(attribute)))
    yield Reading(
        "coredns_cache_evictions",
        "Answers that had to make room for others.",
        "counter",
        _LABELS_BY_TYPE,
        lambda: _evictions(shared.all(CacheCounts)),
    )
    yield Reading("coredns_cache_entries", "Answers kept.", "gauge", _LABELS_BY_TYPE, lambda: _entries(source).items())


def _hits(source: MetricsSource) -> Counter[Labels]:
    """Cache hits by labels, including packet cache hits: a copy counts like its original answer."""
    hits: Counter[Labels] = Counter()
    for counters in source.counters():
        for kind, times in counters.kinds():
            if isinstance(kind.detail, CacheHit):
                hits[(counters.server, kind.detail.type, kind.detail.zones, kind.view)] += times
    return hits


def _requests(source: MetricsSource) -> Counter[Labels]:
    requests: Counter[Labels] = Counter({labels: counts.misses for labels, counts in source.shared.all(CacheCounts)})
    for (server, _, zones, view), times in _hits(source).items():
        requests[(server, zones, view)] += times
    return requests


def _counts(source: MetricsSource, count: Callable[[CacheCounts], int]) -> Rows:
    return [(labels, count(counts)) for labels, counts in source.shared.all(CacheCounts)]


def _evictions(caches: Iterable[tuple[Labels, CacheCounts]]) -> Rows:
    for (server, zones, view), counts in caches:
        yield (server, "success", zones, view), counts.success.evictions
        yield (server, "denial", zones, view), counts.denial.evictions


def _entries(source: MetricsSource) -> Counter[Labels]:
    """Cache entries by labels: each server of a block counts the whole cache of the block."""
    entries: Counter[Labels] = Counter()
    for prepared in source.blocks():
        block = prepared.block
        for cache in prepared.provided(ResponseCache):
            memory = cache.memory
            for server in block.servers:
                _, zones, view = cache_labels(block, block.settings["cache"], server)
                entries[(server, "success", zones, view)] += len(memory.success)
                entries[(server, "denial", zones, view)] += len(memory.denial) + len(memory.failure)
    return entries
