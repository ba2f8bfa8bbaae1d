"""The five locks: no two pin one library otherwise, everything has its hashes, and no index is named."""

from dataclasses import replace
from pathlib import Path

import pytest

from release.lock import Pinned, read_lock
from release.sbom import IMAGE_LOCK, LOCK
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
    assert len(LOCKS) == 5
    assert [name for name, versions in found.items() if len(versions) > 1] == []


@pytest.mark.parametrize(
    ("marker", "versions"),
    [
        ("", ["3.9", "3.12", "3.13", "3.14"]),
        ("python_full_version < '3.13'", ["3.9", "3.12"]),
        ("python_version >= '3.13'", ["3.13", "3.14"]),
    ],
)
def test_a_library_is_installed_by_the_versions_of_python_that_its_marker_names(
    marker: str, versions: list[str]
) -> None:
    pin = Pinned("x", "1", marker, (), ("topodns",), "")
    assert [version for version in ("3.9", "3.12", "3.13", "3.14") if pin.installed_by(version)] == versions
    assert not replace(pin, wanted_by=()).installed_by(versions[0])  # it only builds


def test_a_marker_that_is_not_understood_is_an_error() -> None:
    with pytest.raises(ValueError, match="x: unknown marker \"sys_platform == 'win32'\""):
        Pinned("x", "1", "sys_platform == 'win32'", (), ("topodns",), "").installed_by("3.13")


def test_the_image_has_what_topodns_requires_but_kubernetes_and_what_only_that_requires() -> None:
    pinned = [each for each in read_lock(LOCK) if each.name != "kubernetes"]
    kept = {each.name for each in pinned if not each.installed}  # of the group `build`
    while more := {each.name for each in pinned if kept & {*each.wanted_by} or "topodns" in each.wanted_by} - kept:
        kept |= more
    assert [hashes(each) for each in read_lock(IMAGE_LOCK)] == [hashes(each) for each in pinned if each.name in kept]


def hashes(pin: Pinned) -> tuple[str, str, list[str]]:
    return pin.name, pin.version, list(pin.hashes)
