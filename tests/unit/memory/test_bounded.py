"""Dictionaries with a bound: what is read as a plain dictionary, and what leaves it."""

from topodns.memory.bounded import ReadLRU


def test_a_further_entry_replaces_the_one_written_least_recently() -> None:
    kept: ReadLRU[str, int] = ReadLRU(2)
    entries = kept.entries
    kept["a"], kept["b"], kept["a"] = 1, 2, 3
    kept["c"] = 4
    assert entries == {"a": 3, "c": 4}
    assert entries is kept.entries


def test_a_reading_is_no_use() -> None:
    kept: ReadLRU[str, int] = ReadLRU(2)
    kept["a"], kept["b"] = 1, 2
    assert kept.entries.get("a") == 1
    kept["c"] = 3
    assert kept.entries == {"b": 2, "c": 3}


def test_a_discarded_entry_leaves_its_place_to_another() -> None:
    kept: ReadLRU[str, int] = ReadLRU(2)
    kept["a"], kept["b"] = 1, 2
    kept.discard("a")
    kept.discard("never there")
    kept["c"] = 3
    assert kept.entries == {"b": 2, "c": 3}


def test_of_many_entries_the_latest_are_there() -> None:
    kept: ReadLRU[int, int] = ReadLRU(100)
    for number in range(10_000):
        kept[number] = number
        if number % 7 == 0:
            kept.discard(number - 50)
        assert len(kept.entries) <= 100
    assert list(kept.entries)[-1] == 9_999
    assert min(kept.entries) >= 9_900 - 20
