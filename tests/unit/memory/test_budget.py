"""Several tables and one amount of memory."""

from pathlib import Path
from random import Random

import pytest

from topodns.memory.budget import Budget, FairShares, cluster_octets, memory_limit
from topodns.plugins.cache.entry import CacheEntry, Sort
from topodns.plugins.cache.store import SegmentedLru

KIB = 1 << 10


def fill(table: SegmentedLru, number: int, octets: int = 200) -> None:
    for each in range(number):
        table.insert(b"%d" % each, CacheEntry(bytes(octets), Sort.SUCCESS, 60, 0.0))


def test_a_table_alone_has_all_of_it() -> None:
    budget = Budget(512 * KIB)
    table = SegmentedLru(1 << 20, budget)
    fill(table, 10_000)
    assert 0.9 < table.octets / budget.octets <= 1


def test_however_many_there_are_they_keep_to_it_together() -> None:
    budget, rng = Budget(512 * KIB), Random(1)
    tables = [SegmentedLru(1 << 20, budget) for _ in range(30)]
    for _ in range(400):
        fill(rng.choice(tables), rng.randrange(200), rng.randrange(1000))
        assert budget.granted <= budget.octets
        assert sum(table.octets for table in tables) <= budget.octets


def test_the_one_that_has_the_most_makes_room_for_one_that_comes_late() -> None:
    budget = Budget(512 * KIB)
    first, late = SegmentedLru(1 << 20, budget), SegmentedLru(1 << 20, budget)
    fill(first, 10_000)
    fill(late, 100)
    assert len(late) == 100
    assert 0.8 < first.octets / budget.octets < 1


@pytest.mark.parametrize("tables", [2, 5, 40])
def test_those_that_all_want_more_get_about_the_same(tables: int) -> None:
    budget = Budget(2048 * KIB)
    several = [SegmentedLru(1 << 20, budget) for _ in range(tables)]
    for table in several:
        fill(table, 20_000 // tables)
    for table in several:
        assert table.limit <= table.octets + budget.octets / 20
        assert 0.5 < table.limit * tables / budget.octets < 2


def test_a_small_table_is_left_alone_by_a_large_one() -> None:
    budget = Budget(512 * KIB)
    small, large = SegmentedLru(1 << 20, budget), SegmentedLru(1 << 20, budget)
    fill(small, 100)
    fill(large, 10_000)
    assert len(small) == 100


def test_the_room_of_a_removed_table_is_free_again() -> None:
    budget = Budget(512 * KIB)
    table = SegmentedLru(1 << 20, budget)
    fill(table, 10_000)
    del table
    assert budget.granted == 0


def test_room_that_a_table_no_longer_uses_goes_to_another() -> None:
    budget = Budget(512 * KIB)
    emptied, other = SegmentedLru(1 << 20, budget), SegmentedLru(1 << 20, budget)
    fill(emptied, 10_000)
    for number in range(10_000):
        emptied.remove(b"%d" % number)
    fill(other, 10_000)
    assert len(emptied) == 0
    assert 0.9 < other.octets / budget.octets <= 1


@pytest.mark.parametrize(
    ("limit", "processes", "octets"),
    [
        (None, 1, 192_122_547),
        (512 << 20, 1, 192_122_547),
        (640 << 20, 1, 272_653_184),
        (512 << 20, 2, 61_061_273),
        (128 << 20, 1, 16 << 20),
        (128 << 20, 4, 4 << 20),
    ],
)
def test_the_objects_of_clusters_have_what_the_server_leaves_of_the_limit(
    limit: int | None, processes: int, octets: int
) -> None:
    assert cluster_octets(limit, processes) == octets


def test_a_holder_may_grow_while_it_has_no_more_than_is_left() -> None:
    shares = FairShares()
    for holder in (b"a", b"b", b"c"):
        while shares.may_grow(holder, 1600):
            shares.add(holder, 1)
    assert [shares.of(holder) for holder in (b"a", b"b", b"c")] == [801, 400, 200]
    shares.add(b"a", 199)  # an answer that it has grows
    assert (shares.octets, shares.is_full(1600), shares.may_grow(b"d", 1600)) == (1600, True, True)
    shares.add(b"a", -1000)
    assert (shares.of(b"a"), shares.octets, shares.is_full(1600)) == (0, 600, False)


@pytest.mark.parametrize(
    ("own", "files", "limit"),
    [
        pytest.param("0::/\n", {"memory.max": "536870912\n"}, 536870912, id="version 2, in a container"),
        pytest.param("0::/../../a\n", {"memory.max": "536870912\n"}, 536870912, id="with the path of the host"),
        pytest.param("0::/\n", {"memory.max": "max\n"}, None, id="none"),
        pytest.param("0::/\n", {}, None, id="no controller"),
        pytest.param(
            "0::/a/b\n", {"a/b/memory.max": "max\n", "a/memory.max": "1000000\n"}, 1000000, id="of the one above"
        ),
        pytest.param("0::/a/b\n", {"a/b/memory.max": "500000\n", "a/memory.max": "1000000\n"}, 500000, id="the least"),
        pytest.param(
            "4:cpu,memory:/a\n0::/\n", {"memory/a/memory.limit_in_bytes": "536870912\n"}, 536870912, id="version 1"
        ),
        pytest.param(
            "4:memory:/kubepods/x\n", {"memory/memory.limit_in_bytes": "536870912\n"}, 536870912, id="in a container"
        ),
        pytest.param(
            "4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, None, id="version 1, none"
        ),
    ],
)
def test_the_limit_is_that_of_the_cgroup_and_those_above(
    tmp_path: Path, own: str, files: dict[str, str], limit: int | None
) -> None:
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        file = tmp_path / "mount" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert memory_limit(str(tmp_path / "own"), str(tmp_path / "mount")) == limit


def test_without_cgroups_there_is_no_limit(tmp_path: Path) -> None:
    assert memory_limit(str(tmp_path / "own"), str(tmp_path)) is None
