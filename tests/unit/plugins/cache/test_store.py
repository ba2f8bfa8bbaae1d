"""The tables of one cache: answers, denials and failures, and which of them is served."""

import marshal
from random import Random

import pytest

from tests.support.query_builders import ask
from tests.support.virtual_timers import VirtualTimers
from topodns.dns.message import Response, RRset
from topodns.dns.name import ROOT, name_wire
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.soa import soa_rrset
from topodns.memory.budget import Budget, MemoryLimits
from topodns.plugins.cache.counts import CacheCounts, TableCounts
from topodns.plugins.cache.entry import CacheEntry, Sort, key_of
from topodns.plugins.cache.settings import Cache, ServeStale
from topodns.plugins.cache.store import MAX_ENTRY, FailureCache, FailureTable, Memory, SegmentedLru, _size, room_of

QUERY = ask("www.example.org")
KEY = key_of(QUERY)
CLIENT = bytes(4)


class Store:
    """One cache in virtual time. Each answer has a TTL of 60 seconds."""

    def __init__(self, settings: Cache) -> None:
        self.timers = VirtualTimers()
        room = room_of(MemoryLimits(1 << 20, 1 << 20, 1 << 20), self.timers.time)
        self.memory = Memory(settings, self.timers, CacheCounts(), room)

    def learn(self, sort: Sort, flags: int = QUERY.flags) -> bool:
        soa = soa_rrset(name_wire(ROOT), 1, 60)
        response = {
            Sort.SUCCESS: Response(answer=(RRset(b"", RRType.A, 60, (bytes(4),)),)),
            Sort.DENIAL: Response(Rcode.NXDOMAIN, authority=(soa,)),
            Sort.FAILURE: Response(Rcode.SERVFAIL),
        }[sort]
        return self.memory.learn(KEY, QUERY._replace(flags=flags), response, CLIENT) is not None

    @property
    def served(self) -> Sort | None:
        entry = self.memory.find(KEY, CLIENT)
        return entry.sort if entry is not None else None


@pytest.mark.parametrize(
    ("learned", "served"),
    [
        ([], None),
        ([Sort.SUCCESS, Sort.DENIAL], Sort.DENIAL),
        ([Sort.DENIAL, Sort.SUCCESS], Sort.SUCCESS),
        ([Sort.SUCCESS, Sort.FAILURE], Sort.SUCCESS),
        ([Sort.FAILURE, Sort.DENIAL], Sort.DENIAL),
        ([Sort.FAILURE], Sort.FAILURE),
    ],
)
def test_the_last_answer_or_denial_is_served_and_a_failure_only_without_them(
    learned: list[Sort], served: Sort | None
) -> None:
    store = Store(Cache((ROOT,)))
    assert all(store.learn(sort) for sort in learned)
    assert store.served is served
    assert store.memory.knows(KEY) is bool(learned)


def test_an_answer_is_served_beyond_its_ttl_only_as_long_as_stale_answers_are() -> None:
    store = Store(Cache((ROOT,), serve_stale=ServeStale(max_age=100.0)))
    store.learn(Sort.SUCCESS)
    store.timers.advance(159)
    assert store.served is Sort.SUCCESS
    store.timers.advance(1)
    assert store.served is None
    assert not store.memory.knows(KEY)


def test_a_failure_is_never_served_stale() -> None:
    store = Store(Cache((ROOT,), serve_stale=ServeStale(max_age=100.0)))
    store.learn(Sort.FAILURE)
    store.timers.advance(60)
    assert store.served is None


def test_answers_to_queries_without_rd_are_not_cached() -> None:
    store = Store(Cache((ROOT,)))
    assert not store.learn(Sort.SUCCESS, flags=0)
    assert store.served is None


def test_a_forgotten_name_is_asked_anew() -> None:
    store = Store(Cache((ROOT,)))
    store.learn(Sort.SUCCESS)
    store.memory.forget(KEY)
    assert store.served is None


def test_failures_have_a_part_of_the_memory_for_answers() -> None:
    room = room_of(MemoryLimits(1600, 100, 1), VirtualTimers().time)
    assert (room.success.octets, room.failure.limit, room.denial.octets) == (1500, 100, 100)


def test_failures_that_could_take_long_to_expire_together_get_no_more_room() -> None:
    limits = MemoryLimits(1 << 30, 100, 1)
    room = room_of(limits, VirtualTimers().time)
    assert room.failure.limit == 3 << 19
    assert room.success.octets == limits.answers - (3 << 19)


MUCH = 1 << 30


def entry(octets: int = 100) -> CacheEntry:
    return CacheEntry(bytes(octets), Sort.SUCCESS, 60, 0.0)


def key(number: int) -> bytes:
    return b"%d.example" % number


def fill(table: SegmentedLru, numbers: range, octets: int = 100) -> None:
    for number in numbers:
        assert table.insert(key(number), entry(octets))


def known(table: SegmentedLru, numbers: range) -> int:
    return sum(table.peek(key(number)) is not None for number in numbers)


def test_no_more_entries_than_its_capacity() -> None:
    table = SegmentedLru(1024, Budget(MUCH))
    for number in range(5000):
        table.insert(key(number), entry())
        assert table.peek(key(number)) is not None  # what has just come in stays
        assert len(table) <= 1024
    assert len(table) >= 1000
    assert table.counts.evictions == 5000 - len(table)


@pytest.mark.parametrize("octets", [0, 500, 20_000, MAX_ENTRY])
def test_no_more_octets_than_allowed(octets: int) -> None:
    table = SegmentedLru(1 << 20, Budget(1 << 20))
    for number in range(4000):
        table.insert(key(number), entry(octets))
        assert table.octets <= 1 << 20
        assert table.peek(key(number)) is not None
    assert table.octets > 0.9 * (1 << 20)
    assert len(table) * octets <= table.octets


def test_the_oldest_go_first() -> None:
    table = SegmentedLru(1024, Budget(MUCH))
    fill(table, range(1024 + 100))
    assert known(table, range(100)) == 0
    assert known(table, range(200, 1124)) == 924


def test_a_scan_leaves_repeated_names_in_the_cache() -> None:
    table = SegmentedLru(1024, Budget(MUCH))
    fill(table, range(500))
    for number in range(0, 500, 2):
        table.touch(key(number))
    fill(table, range(1000, 20_000))
    assert known(table, range(0, 500, 2)) == 250
    assert known(table, range(1, 500, 2)) == 0


def test_names_repeated_long_ago_make_room_for_names_repeated_now() -> None:
    table = SegmentedLru(1000, Budget(MUCH))
    for number in range(3000):
        fill(table, range(number, number + 1))
        table.touch(key(number))
    assert known(table, range(2300, 3000)) == 700
    assert known(table, range(1000)) == 0


def test_an_entry_is_replaced_in_its_place() -> None:
    table = SegmentedLru(1024, Budget(MUCH))
    fill(table, range(2))
    table.touch(key(0))
    octets = table.octets
    fill(table, range(2), 150)
    assert (len(table), table.octets) == (2, octets + 100)
    fill(table, range(10, 3000))
    assert known(table, range(2)) == 1


def test_a_removed_entry_gives_its_room_back() -> None:
    table = SegmentedLru(1024, Budget(MUCH))
    fill(table, range(10))
    table.touch(key(3))
    for number in range(12):
        table.remove(key(number))
    assert (len(table), table.octets, table.counts.evictions) == (0, 0, 0)


def test_an_entry_larger_than_any_message_is_refused() -> None:
    table = SegmentedLru(1024, Budget(MUCH))
    assert not table.insert(key(1), entry(MAX_ENTRY + 1))
    assert (len(table), table.octets) == (0, 0)


def test_the_counted_room_is_about_the_memory_used() -> None:
    # A key, its content and an entry: what sys.getsizeof says of them, and a place in a dictionary after a flood.
    one = CacheEntry(marshal.dumps((0, 0, (), (), ())), Sort.SUCCESS, 300, 1000.5)
    table = SegmentedLru(12_000, Budget(MUCH))
    for number in range(30_000):
        table.insert(key(number), CacheEntry(one.packed, Sort.SUCCESS, 300, 1000.5), A)
    place = table._probation.__sizeof__() / len(table) + 8  # and one in the list of its owner's
    taken = sum(each.__sizeof__() for each in (key(1), one.packed, one, one.born, one.ttl)) + 16 + place
    assert 0.8 < table.octets / len(table) / taken < 1.25


A, B, C = (bytes((10, 244, 1, last)) for last in (1, 2, 3))


def use(table: SegmentedLru, client: bytes, numbers: range, times: int = 1) -> None:
    """As the cache does it: a missing name comes in, a known one is asked for again."""
    for number in numbers:
        for _ in range(times):
            if table.peek(key(number)) is not None:
                table.touch(key(number), client)
            else:
                table.insert(key(number), entry(), client)


def test_a_new_entry_stays_where_older_ones_of_its_client_go_from_protected_on_probation() -> None:
    table = SegmentedLru(1024, Budget(MUCH))
    use(table, A, range(400), 2)
    for number in range(400, 1024):
        table.insert(key(number), entry(), number.to_bytes(4, "big"))
    assert table.insert(key(2000), entry(), A)
    assert table.peek(key(2000)) is not None
    assert known(table, range(400)) < 400


@pytest.mark.parametrize("protected", [False, True], ids=["on probation", "protected"])
@pytest.mark.parametrize("client", [b"", A], ids=["of no client", "of a client"])
def test_a_replaced_entry_that_is_larger_now_stays_where_others_go_for_it(protected: bool, client: bytes) -> None:
    table = SegmentedLru(100_000, Budget(200_000))
    use(table, client, range(418), 2 if protected else 1)
    assert table.counts.evictions == 0
    assert table.insert(key(0), entry(6000), client)
    assert table.peek(key(0)) is not None
    assert table.counts.evictions > 0
    assert table.octets <= table.limit


OTHERS = range(2000)
JUNK = range(10_000, 40_000)


@pytest.mark.parametrize("asked", [1, 2], ids=["asked for once", "asked for twice"])
@pytest.mark.parametrize("junk_asked", [1, 2], ids=["junk once", "junk twice"])
def test_n13_a_client_s_junk_pushes_out_nothing_of_another_client(asked: int, junk_asked: int) -> None:
    table = SegmentedLru(9984, Budget(MUCH))
    use(table, B, OTHERS, asked)
    use(table, A, JUNK, junk_asked)
    assert known(table, OTHERS) == 2000
    assert len(table) > 9700


def test_n13_junk_leaves_repeated_names_alone_also_where_octets_are_the_limit() -> None:
    table = SegmentedLru(1 << 20, Budget(4 << 20))
    use(table, B, OTHERS)
    use(table, A, JUNK)
    assert known(table, OTHERS) == 2000
    assert table.octets <= 4 << 20


def test_a_client_that_is_alone_may_have_all() -> None:
    table = SegmentedLru(1024, Budget(MUCH))
    use(table, A, range(1000))
    assert known(table, range(1000)) == 1000


def test_the_junk_that_goes_is_the_oldest() -> None:
    table = SegmentedLru(1024, Budget(MUCH))
    use(table, A, range(5000))
    assert known(table, range(4100, 5000)) == 900
    assert known(table, range(3900)) == 0


def test_names_that_another_client_asked_for_as_well_are_no_junk() -> None:
    table = SegmentedLru(1024, Budget(MUCH))
    use(table, A, range(500))
    use(table, B, range(500))
    use(table, C, range(1000, 20_000))
    assert known(table, range(500)) == 500


def test_several_floods_share_the_room_for_names_asked_once() -> None:
    table = SegmentedLru(1024, Budget(MUCH))
    use(table, B, range(200), 2)
    for number in range(1000, 20_000, 2):
        use(table, A, range(number, number + 1))
        use(table, C, range(number + 1, number + 2))
    assert known(table, range(200)) == 200


def test_no_more_is_remembered_of_clients_than_there_are_entries() -> None:
    table = SegmentedLru(1024, Budget(MUCH))
    for number in range(20_000):
        use(table, number.to_bytes(4, "big"), range(number, number + 1))
        table.touch(key(number), A)
        use(table, B, range(100_000 + number, 100_001 + number))
        table.remove(key(100_000 + number))
    assert len(table._owners) <= len(table) + 1
    assert sum(len(owner.keys) for owner in table._owners.values()) < 3 * 1024


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_each_octet_is_counted_once(seed: int) -> None:
    rng = Random(seed)
    table = SegmentedLru(rng.choice((64, 1024)), Budget(rng.choice((20_000, 200_000))))
    clients = [b"", *(bytes((10, 0, 0, last)) for last in range(rng.choice((1, 3, 200))))]
    for _ in range(20_000):
        name, client = key(int(rng.paretovariate(0.5)) % 3000), rng.choice(clients)
        chance = rng.random()
        if chance < 0.5:
            table.insert(name, entry(rng.randrange(500)), client)
            assert name in table
        elif chance < 0.95 and table.peek(name) is not None:
            table.touch(name, client)
        elif chance < 0.99:
            table.remove(name)
        elif table.limit > 10_000:
            table.lower(500)
    kept = {**table._probation, **table._protected}
    assert len(kept) == len(table)
    assert table.octets == sum(map(_size, kept.keys(), kept.values()))
    for owner in table._owners.values():
        own = {name for name, each in kept.items() if each.owner is owner}
        assert own <= set(owner.keys)
        assert owner.octets == sum(_size(name, kept[name]) for name in own) > 0
    assert sum(each.owner is not None for each in kept.values()) == sum(
        each.owner is owner for owner in table._owners.values() for each in kept.values()
    )


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
