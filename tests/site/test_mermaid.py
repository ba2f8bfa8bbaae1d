"""The library that draws the diagrams is the one with the pinned hash, or is missing; then the diagrams are text."""

import hashlib
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from release import mermaid, site

IN_THE_PACKAGE = {"script": "package/dist/mermaid.min.js", "license": "package/LICENSE"}
BRINGS = """cp {folder}/package.tgz $5 && echo '[{{"filename": "package.tgz"}}]'"""


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(mermaid, "FOLDER", tmp_path / "kept")


def install_npm(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "npm").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def pack(folder: Path, **members: str) -> None:
    """folder/package.tgz"""
    with tarfile.open(folder / "package.tgz", "w:gz") as package:
        for number, (name, content) in enumerate(members.items()):
            (folder / f"member{number}").write_text(content)
            package.add(folder / f"member{number}", IN_THE_PACKAGE[name])


def test_a_package_with_something_else_in_it_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack(tmp_path, script="other", license="other")
    install_npm(tmp_path, BRINGS.format(folder=tmp_path), monkeypatch)
    with pytest.raises(OSError, match=r"mermaid\.min\.js is not the one that release/mermaid\.py has the hash of"):
        mermaid.fetch()
    assert not mermaid.FOLDER.exists()


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """npm brings the archive of the pinned hash."""
    held = {mermaid.SCRIPT: "draw()", "LICENSE": "as you like"}
    hashes = {name: hashlib.sha256(content.encode()).hexdigest() for name, content in held.items()}
    monkeypatch.setattr(mermaid, "_SHA256", hashes)
    pack(tmp_path, script=held[mermaid.SCRIPT], license=held["LICENSE"])
    install_npm(tmp_path, BRINGS.format(folder=tmp_path), monkeypatch)


def test_a_changed_file_in_the_cache_is_fetched_again(ours: None) -> None:
    mermaid.fetch()
    (mermaid.FOLDER / mermaid.SCRIPT).write_text("draw")
    assert mermaid.kept() == []
    mermaid.fetch()
    assert [path.read_text() for path in mermaid.kept()] == ["draw()", "as you like"]


def test_nothing_but_the_files_is_left_of_fetching_them(ours: None) -> None:
    mermaid.fetch()
    assert sorted(path.name for path in mermaid.FOLDER.iterdir()) == ["LICENSE", mermaid.SCRIPT]


def test_the_archive_is_looked_for_in_npm_s_configured_folder(
    ours: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = BRINGS.format(folder=tmp_path).replace('"package.tgz"', '"../../somewhere/package.tgz"')
    install_npm(tmp_path, script, monkeypatch)
    mermaid.fetch()
    assert mermaid.kept()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo '<html>'", "names no archive: '<html>"),
        ("echo '[]'", "names no archive"),
        ("echo '[{{}}]'", "names no archive"),
        ("echo '[{{\"filename\": 5}}]'", "names no archive"),
        ("printf '\\377'", "names no archive"),
        ('echo \'[{{"filename": "package.tgz"}}]\'', r"No such file"),
        ("echo log in > {folder}/package.tgz; " + BRINGS, "no archive that can be read|[Nn]ot a gzip"),
        ("head -c 100 {folder}/package.tgz > {folder}/a; mv {folder}/a {folder}/package.tgz; " + BRINGS, "can be read"),
    ],
)
def test_every_unexpected_archive_from_npm_is_one_kind_of_problem(
    ours: None, script: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_npm(tmp_path, script.format(folder=tmp_path), monkeypatch)
    with pytest.raises(OSError, match=reason):
        mermaid.fetch()
    assert mermaid.kept() == []


def test_a_package_without_one_of_the_files_is_not_kept(ours: None, tmp_path: Path) -> None:
    pack(tmp_path, script="draw()")
    with pytest.raises(OSError, match="LICENSE is not in the package"):
        mermaid.fetch()
    assert mermaid.kept() == []


def test_without_npm_the_site_is_made_and_says_that_diagrams_are_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    site.build_site(tmp_path / "site")
    assert capfd.readouterr().err == "NO DIAGRAMS, they stay as text: [Errno 2] No such file or directory: 'npm'\n"


def test_without_a_registry_npm_s_reason_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_npm(tmp_path, "echo 'no route to host' >&2; exit 1", monkeypatch)
    with pytest.raises(OSError, match=r"^no route to host$"):
        mermaid.fetch()


@pytest.mark.parametrize("kept", [True, False])
def test_a_diagram_is_text_where_nothing_draws_it(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    site_pages: Any = pytest.importorskip("release.site_pages")
    monkeypatch.setattr(mermaid, "kept", lambda: [Path("mermaid.min.js")] * kept)
    page: Any = SimpleNamespace(file=SimpleNamespace(src_uri="README.md"))
    made = site_pages.on_page_markdown("```mermaid\nflowchart TD\n```\n", page, None, None)
    assert made.startswith("```mermaid\n" if kept else "```text\n")
