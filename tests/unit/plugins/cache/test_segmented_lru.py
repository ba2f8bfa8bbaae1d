import marshal
from random import Random

import pytest

from topodns.memory.budget import Budget
from topodns.plugins.cache.entry import CacheEntry, Sort
from topodns.plugins.cache.segmented_lru import MAX_ENTRY, SegmentedLru, _size

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


def ask(table: SegmentedLru, client: bytes, numbers: range, times: int = 1) -> None:
    """As the cache does it: a missing name comes in, a known one is asked for again."""
    for number in numbers:
        for _ in range(times):
            if table.peek(key(number)) is not None:
                table.touch(key(number), client)
            else:
                table.insert(key(number), entry(), client)


def test_a_new_entry_stays_where_older_ones_of_its_client_go_from_protected_on_probation() -> None:
    table = SegmentedLru(1024, Budget(MUCH))
    ask(table, A, range(400), 2)
    for number in range(400, 1024):
        table.insert(key(number), entry(), number.to_bytes(4, "big"))
    assert table.insert(key(2000), entry(), A)
    assert table.peek(key(2000)) is not None
    assert known(table, range(400)) < 400


@pytest.mark.parametrize("protected", [False, True], ids=["on probation", "protected"])
@pytest.mark.parametrize("client", [b"", A], ids=["of no client", "of a client"])
def test_a_replaced_entry_that_is_larger_now_stays_where_others_go_for_it(protected: bool, client: bytes) -> None:
    table = SegmentedLru(100_000, Budget(200_000))
    ask(table, client, range(418), 2 if protected else 1)
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
    ask(table, B, OTHERS, asked)
    ask(table, A, JUNK, junk_asked)
    assert known(table, OTHERS) == 2000
    assert len(table) > 9700


def test_n13_junk_leaves_repeated_names_alone_also_where_octets_are_the_limit() -> None:
    table = SegmentedLru(1 << 20, Budget(4 << 20))
    ask(table, B, OTHERS)
    ask(table, A, JUNK)
    assert known(table, OTHERS) == 2000
    assert table.octets <= 4 << 20


def test_a_client_that_is_alone_may_have_all() -> None:
    table = SegmentedLru(1024, Budget(MUCH))
    ask(table, A, range(1000))
    assert known(table, range(1000)) == 1000


def test_the_junk_that_goes_is_the_oldest() -> None:
    table = SegmentedLru(1024, Budget(MUCH))
    ask(table, A, range(5000))
    assert known(table, range(4100, 5000)) == 900
    assert known(table, range(3900)) == 0


def test_names_that_another_client_asked_for_as_well_are_no_junk() -> None:
    table = SegmentedLru(1024, Budget(MUCH))
    ask(table, A, range(500))
    ask(table, B, range(500))
    ask(table, C, range(1000, 20_000))
    assert known(table, range(500)) == 500


def test_several_floods_share_the_room_for_names_asked_once() -> None:
    table = SegmentedLru(1024, Budget(MUCH))
    ask(table, B, range(200), 2)
    for number in range(1000, 20_000, 2):
        ask(table, A, range(number, number + 1))
        ask(table, C, range(number + 1, number + 2))
    assert known(table, range(200)) == 200


def test_no_more_is_remembered_of_clients_than_there_are_entries() -> None:
    table = SegmentedLru(1024, Budget(MUCH))
    for number in range(20_000):
        ask(table, number.to_bytes(4, "big"), range(number, number + 1))
        table.touch(key(number), A)
        ask(table, B, range(100_000 + number, 100_001 + number))
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
