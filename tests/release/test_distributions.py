"""Wheel and sdist: the same octets for the same files, and both can be installed."""

import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from release import source
from release.distributions import build_sdist, build_wheel
from release.source import VERSION, created, epoch


@pytest.mark.parametrize("build", [build_wheel, build_sdist], ids=["wheel", "sdist"])
def test_two_builds_have_the_same_octets(
    build: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build(tmp_path / "first")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    second = build(tmp_path / "second")
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


def test_another_time_is_another_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    assert (epoch(), created()) == (1000000000, "2001-09-09T01:46:40Z")
    with zipfile.ZipFile(build_wheel(tmp_path)) as wheel:
        assert {info.date_time[:3] for info in wheel.infolist()} == {(2001, 9, 9)}


def test_the_wheel_has_every_module_and_all_commands(tmp_path: Path) -> None:
    with zipfile.ZipFile(build_wheel(tmp_path)) as wheel:
        names = set(wheel.namelist())
        commands = wheel.read(f"topodns-{VERSION}.dist-info/entry_points.txt").decode()
    package = source.ROOT / "topodns"
    modules = {str(path.relative_to(source.ROOT)) for path in package.rglob("*.py")} | {"topodns/py.typed"}
    parts = ("css", "details.js", "html", "js", "picture.js")
    others = {f"topodns/inspect/page/page.{part}" for part in parts} | {"topodns/cli/completion.bash"}
    assert {name for name in names if ".dist-info/" not in name} == modules | others
    assert "topodns = topodns.cli.main:main" in commands
    assert "node-cache = topodns.cli.main:node_cache" in commands
    assert "kubectl-topodns = topodns.cli.kubectl:main" in commands


def test_the_sdist_contains_nothing_about_the_build_machine(tmp_path: Path) -> None:
    with tarfile.open(build_sdist(tmp_path)) as sdist:
        members = sdist.getmembers()
    assert {(each.uid, each.gid, each.uname, each.gname) for each in members} == {(0, 0, "", "")}
    assert {each.mtime for each in members} == {epoch()}
    assert {f"topodns-{VERSION}/{name}" for name in ("pyproject.toml", "LICENSE", "topodns/cli/main.py")} <= {
        each.name for each in members
    }


def test_without_a_repository_the_files_are_found_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source.copy_tree(tmp_path / "with")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    source.copy_tree(tmp_path / "without")
    found = [{path.relative_to(tree) for path in tree.rglob("*")} for tree in (tmp_path / "with", tmp_path / "without")]
    assert found[0] == found[1]
