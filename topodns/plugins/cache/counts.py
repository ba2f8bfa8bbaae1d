"""Counters of one `cache`, kept over reloads."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class TableCounts:
    """Counters of the table of answers, or of those of denials and failures together; kept over reloads."""

    evictions: int = 0  # entries removed to make room


@dataclass(slots=True)
class CacheCounts:
    """Counters of a cache. Hits, including copies from the packet cache, are in the general counters as plugin "cache".

    May be passed on to the cache of the next configuration, so that a reload keeps the counts.
    """

    misses: int = 0  # answers of an upstream, including those of an awaited refresh
    prefetches: int = 0  # refreshes in the background
    served_stale: int = 0
    drops: int = 0  # answers too large to be cached
    success: TableCounts = field(default_factory=TableCounts)
    denial: TableCounts = field(default_factory=TableCounts)


@dataclass(slots=True)
class SubscriptionCounts:
    """Counters of the option `push` of a cache, kept over reloads."""

    sessions: int = 0  # sessions that were established
    refused_sessions: int = 0  # by upstreams that do not know DSO
    failed_sessions: int = 0  # that could not begin: without a connection, or without a response
    lost_sessions: int = 0
    refused: Counter[str] = field(default_factory=Counter)  # refused subscriptions by the label of the rcode
    messages: int = 0  # PUSH messages
    expired: int = 0  # names and types whose entries were expired
    strays: int = 0  # changes of names without a subscription
    contradicted: int = 0  # answers with other records than those pushed


@dataclass(slots=True)
class PersistCounts:
    """Counters of the option `persist` of a cache, kept over reloads."""

    answers: int = 0  # in the file, as this process wrote it last
    written: int = 0  # times that the file was written
    failed: int = 0  # times that it could not be
    restored: int = 0  # answers that were read
    refused: int = 0  # files that could not be used
