"""The four locks: no two pin one library otherwise, everything has its hashes, and no index is named."""

from pathlib import Path

import pytest

from release.lock import read_lock
from release.source import ROOT

LOCKS = sorted(ROOT.glob("requirements*.lock"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_everything_is_pinned_with_hashes_and_no_index_is_named(lock: Path) -> None:
    pinned = read_lock(lock)
    assert pinned
    assert [each.name for each in pinned if not each.hashes] == []
    assert "://" not in lock.read_text(encoding="utf-8")


def test_a_library_has_the_same_version_in_every_lock() -> None:
    """A library has two versions in one lock where they depend on the version of Python."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for lock in LOCKS:
        pinned = read_lock(lock)
        for name in {each.name for each in pinned}:
            found.setdefault(name, set()).add(tuple(each.version for each in pinned if each.name == name))
    assert len(LOCKS) == 4
    assert [name for name, versions in found.items() if len(versions) > 1] == []
