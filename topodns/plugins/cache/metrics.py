"""Metrics of `cache`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache as cached
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from topodns.metrics.registry import Published, Reading
from topodns.plugins.block import ServerBlock
from topodns.plugins.cache.counts import CacheCounts, PersistCounts, SubscriptionCounts
from topodns.plugins.cache.handler import ResponseCache
from topodns.plugins.cache.settings import Cache, zones_label
from topodns.plugins.cache.store import FailureTable
from topodns.plugins.setup import MetricsSource
from topodns.query.counters import CacheHit

if TYPE_CHECKING:
    from topodns.plugins.cache.subscriptions import PushSubscriptions

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

# Likewise, attribute of SubscriptionCounts
_PUSH_COUNTERS: Final = (
    ("topodns_cache_push_messages", "PUSH messages of upstreams.", "messages"),
    (
        "topodns_cache_push_expired",
        "Names and types whose cached answers a PUSH or a new subscription ended.",
        "expired",
    ),
    ("topodns_cache_push_strays", "Changes of names without a subscription.", "strays"),
    ("topodns_cache_push_contradicted", "Answers with other records than those pushed.", "contradicted"),
)

# Likewise, attribute of PersistCounts
_PERSIST_COUNTERS: Final = (
    ("topodns_cache_persist_written", "Writings of the file of answers.", "written"),
    ("topodns_cache_persist_failed", "Writings of the file of answers that failed.", "failed"),
    ("topodns_cache_persist_restored", "Answers that were read from the file.", "restored"),
    ("topodns_cache_persist_refused", "Files of answers that could not be used.", "refused"),
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
    yield from _counters(source, CacheCounts, _COUNTERS)
    yield Reading(
        "coredns_cache_evictions",
        "Answers that had to make room for others.",
        "counter",
        _LABELS_BY_TYPE,
        lambda: _evictions(shared.all(CacheCounts)),
    )
    yield from _push(source)
    yield from _counters(source, PersistCounts, _PERSIST_COUNTERS)
    yield Reading(
        "topodns_cache_persist_answers",
        "Answers in the file, as it was written last.",
        "gauge",
        _LABELS,
        partial(_counts, source, PersistCounts, attrgetter("answers")),
    )
    yield Reading("coredns_cache_entries", "Answers kept.", "gauge", _LABELS_BY_TYPE, lambda: _entries(source).items())


def _push(source: MetricsSource) -> Iterator[Published]:
    """The metrics of the option `push`; those of a block with several servers have the label of its first one."""
    shared = source.shared
    for name, documentation, value in (
        ("topodns_cache_push_sessions", "Sessions with upstreams that push changes.", attrgetter("is_connected")),
        ("topodns_cache_push_subscriptions", "Names and types that upstreams push.", attrgetter("live")),
    ):
        yield Reading(name, documentation, "gauge", _LABELS, partial(_subscriptions, source, value))
    yield from _counters(source, SubscriptionCounts, _PUSH_COUNTERS)
    yield Reading(
        "topodns_cache_push_sessions_ended",
        "Sessions that upstreams refused, that could not begin, and that were lost.",
        "counter",
        (*_LABELS, "reason"),
        lambda: [
            ((*labels, reason), number)
            for labels, counts in shared.all(SubscriptionCounts)
            for reason, number in (
                *(("refused", counts.refused_sessions), ("failed", counts.failed_sessions)),
                ("lost", counts.lost_sessions),
            )
        ],
    )
    yield Reading(
        "topodns_cache_push_refused",
        "Subscriptions that upstreams refused.",
        "counter",
        (*_LABELS, "rcode"),
        lambda: [
            ((*labels, rcode), number)
            for labels, counts in shared.all(SubscriptionCounts)
            for rcode, number in counts.refused.items()
        ],
    )


def _subscriptions(source: MetricsSource, value: Callable[["PushSubscriptions"], int]) -> Rows:
    for prepared in source.blocks():
        block = prepared.block
        for cache in prepared.provided(ResponseCache):
            if cache.push is not None:
                yield cache_labels(block, block.settings["cache"], block.servers[0]), value(cache.push)


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


def _counters(source: MetricsSource, kind: type[object], rows: Iterable[tuple[str, str, str]]) -> Iterator[Published]:
    """The counters that are attributes of the objects of this kind: (name, documentation, attribute) of each."""
    for name, documentation, attribute in rows:
        yield Reading(name, documentation, "counter", _LABELS, partial(_counts, source, kind, attrgetter(attribute)))


def _counts(source: MetricsSource, kind: type[object], count: Callable[[object], int]) -> Rows:
    return [(labels, count(counts)) for labels, counts in source.shared.all(kind)]


def _evictions(caches: Iterable[tuple[Labels, CacheCounts]]) -> Rows:
    for (server, zones, view), counts in caches:
        yield (server, "success", zones, view), counts.success.evictions
        yield (server, "denial", zones, view), counts.denial.evictions


def _entries(source: MetricsSource) -> Counter[Labels]:
    """Cache entries by labels: each server of a block counts the whole cache of the block."""
    entries: Counter[Labels] = Counter()
    failures_in = cached(FailureTable.sizes)  # one pass over the table that all caches share, not one for each server
    for prepared in source.blocks():
        block = prepared.block
        for provided in prepared.provided(ResponseCache):
            memory = provided.memory
            failures = failures_in(memory.failure.table)[memory.failure.number]
            for server in block.servers:
                _, zones, view = cache_labels(block, block.settings["cache"], server)
                entries[(server, "success", zones, view)] += len(memory.success)
                entries[(server, "denial", zones, view)] += len(memory.denial) + failures
    return entries
