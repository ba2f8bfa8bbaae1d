"""The failures of the caches of a process: how long they are cached, and which one goes first."""

import pytest

from tests.support.virtual_timers import VirtualTimers
from topodns.plugins.cache.counts import TableCounts
from topodns.plugins.cache.entry import CacheEntry, Sort
from topodns.plugins.cache.failures import FailureCache, FailureTable


class Failures:
    """Two caches that share a table, in virtual time."""

    def __init__(self, limit: int = 1 << 20) -> None:
        self.timers = VirtualTimers()
        self.table = FailureTable(limit, self.timers.time)
        self.counts, self.other_counts = TableCounts(), TableCounts()
        self.cache = FailureCache(self.table, self.counts)
        self.other = FailureCache(self.table, self.other_counts)

    def fail(self, key: bytes, ttl: int = 5, octets: int = 10, cache: FailureCache | None = None) -> bool:
        entry = CacheEntry(bytes(octets), Sort.FAILURE, ttl, self.timers.time())
        return (self.cache if cache is None else cache).insert(key, entry)


def test_a_failure_is_found_until_its_ttl_ends() -> None:
    failures = Failures()
    failures.fail(b"five")
    failures.fail(b"nine", ttl=9)
    failures.timers.advance(4.9)
    assert failures.cache.find(b"five") is not None
    assert b"five" in failures.cache
    failures.timers.advance(0.1)
    assert failures.cache.find(b"five") is None
    assert b"five" not in failures.cache
    assert b"nine" in failures.cache
    assert len(failures.cache) == 1


def test_a_newer_failure_replaces_the_one_before() -> None:
    failures = Failures()
    failures.fail(b"key", ttl=300)
    failures.fail(b"key", ttl=5)
    assert len(failures.cache) == 1
    failures.timers.advance(5)
    assert b"key" not in failures.cache


def test_each_cache_has_its_own_failures() -> None:
    failures = Failures()
    failures.fail(b"key")
    assert b"key" not in failures.other
    assert failures.other.find(b"key") is None
    failures.fail(b"key", cache=failures.other)
    failures.cache.remove(b"key")
    assert b"key" in failures.other
    assert (len(failures.cache), len(failures.other)) == (0, 1)


@pytest.mark.parametrize("key", [b"key", b"other"])
def test_a_failure_is_removed_if_there_is_one(key: bytes) -> None:
    failures = Failures()
    failures.cache.remove(key)
    failures.fail(b"key")
    failures.cache.remove(key)
    assert (b"key" in failures.cache) is (key != b"key")
    failures.timers.advance(5)
    failures.cache.remove(b"key")


def test_of_too_many_the_one_used_least_recently_goes_and_its_cache_counts_it() -> None:
    failures = Failures(limit=3 * 1000)
    failures.fail(b"a", octets=150)
    failures.fail(b"b", octets=150, cache=failures.other)
    failures.fail(b"c", octets=150)
    assert failures.cache.find(b"a") is not None
    failures.fail(b"d", octets=150)
    assert b"b" not in failures.other
    assert len(failures.cache) == 3
    assert (failures.counts.evictions, failures.other_counts.evictions) == (0, 1)


def test_expired_failures_make_room_and_are_no_evictions() -> None:
    failures = Failures(limit=3 * 1000)
    for key in (b"a", b"b", b"c"):
        failures.fail(key, octets=150)
    failures.timers.advance(5)
    for key in (b"d", b"e", b"f"):
        failures.fail(key, octets=150)
    assert len(failures.cache) == 3
    assert failures.counts.evictions == 0


def test_the_memory_stays_within_the_limit() -> None:
    failures = Failures(limit=100_000)
    for number in range(2000):
        failures.fail(b"%d" % number, octets=number % 3000)
        assert failures.table.entries.currsize <= 100_000
    assert len(failures.cache) < 2000


def test_a_failure_larger_than_an_entry_may_be_or_than_the_table_is_not_cached() -> None:
    assert not Failures(limit=10 << 20).fail(b"key", octets=65_536)
    assert Failures(limit=10 << 20).fail(b"key", octets=65_535)
    failures = Failures(limit=2000)
    assert not failures.fail(b"key", octets=1500)
    assert len(failures.cache) == 0
