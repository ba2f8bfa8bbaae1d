"""Cached failures (SERVFAIL and NOTIMP): those of all caches of the process within one limit, each until its TTL ends.

Failures are not data, so they are never served stale (RFC 8767 section 4); CoreDNS does serve them.
"""

from collections import Counter
from collections.abc import Callable
from itertools import count
from math import inf
from typing import Final, NamedTuple

from topodns.memory.bounded import TLRUCache
from topodns.plugins.cache.counts import TableCounts
from topodns.plugins.cache.entry import CacheEntry
from topodns.plugins.cache.segmented_lru import MAX_ENTRY

# Octets per failure of object headers and of slots in dictionaries and the heap: see bench/cache_memory.py.
_OVERHEAD: Final = 800

_Key = tuple[int, bytes]  # number of the cache, key of the entry


class _Failure(NamedTuple):
    entry: CacheEntry
    octets: int
    counts: TableCounts


class FailureTable:
    """At most `limit` octets of failures. To make room, what has expired goes first, then the least recently used."""

    def __init__(self, limit: int, clock: Callable[[], float]) -> None:
        self.limit = limit
        self.clock = clock  # seconds, as `CacheEntry.born`
        self.entries = _Entries(limit, _expiry, clock, _octets)
        self.numbers = count()  # of caches

    def sizes(self) -> Counter[int]:
        """The number of failures of each cache, by its number. Takes 1 us per failure: call it once for all caches."""
        return Counter(number for number, _ in self.entries)


class FailureCache:
    """The failures of one cache, in a table that it shares with others.

    When a reload ends the cache, its failures stay in the table until they expire; no other cache finds them.
    """

    def __init__(self, table: FailureTable, counts: TableCounts) -> None:
        self.table = table
        self._clock = table.clock
        self._counts = counts
        self.number = next(table.numbers)
        # Monotonic seconds: no failure of this cache lives longer. Mostly there is none, and the table is not asked.
        self.until = -inf

    def __len__(self) -> int:
        return self.table.sizes()[self.number]

    def __contains__(self, key: bytes) -> bool:
        return self._clock() < self.until and (self.number, key) in self.table.entries

    def find(self, key: bytes) -> CacheEntry | None:
        """The entry, if its TTL has not ended; counts as a use."""
        if self._clock() >= self.until:
            return None
        failure = self.table.entries.get((self.number, key))
        return None if failure is None else failure.entry

    def insert(self, key: bytes, entry: CacheEntry) -> bool:
        """Insert or replace the entry. False, without effect, if it is larger than MAX_ENTRY or than the table."""
        octets = len(key) + len(entry.packed) + _OVERHEAD
        if len(entry.packed) > MAX_ENTRY or octets > self.table.limit:
            return False
        self.table.entries[self.number, key] = _Failure(entry, octets, self._counts)
        self.until = max(self.until, entry.born + entry.ttl)
        return True

    def remove(self, key: bytes) -> None:
        """Remove the entry if it exists."""
        if self._clock() < self.until:
            self.table.entries.pop((self.number, key), None)


class _Entries(TLRUCache[_Key, _Failure]):
    """Counts evictions: what `popitem` removes to make room, but not what has expired."""

    def popitem(self) -> tuple[_Key, _Failure]:
        key, failure = super().popitem()
        failure.counts.evictions += 1
        return key, failure


def _expiry(key: _Key, failure: _Failure, now: float) -> float:
    return failure.entry.born + failure.entry.ttl


def _octets(failure: _Failure) -> int:
    return failure.octets
