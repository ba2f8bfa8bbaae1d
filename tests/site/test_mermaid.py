"""What draws the diagrams is the one that we have the hash of, or is not there; then the diagrams are text."""

import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from release import mermaid, site


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(mermaid, "FOLDER", tmp_path / "kept")


def install_npm(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "npm").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_a_package_with_something_else_in_it_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package/dist").mkdir(parents=True)
    for name in ("dist/mermaid.min.js", "LICENSE"):
        (tmp_path / "package" / name).write_text("other")
    with tarfile.open(tmp_path / "package.tgz", "w:gz") as package:
        package.add(tmp_path / "package", "package")
    install_npm(tmp_path, f'cp {tmp_path}/package.tgz $5 && echo \'[{{"filename": "package.tgz"}}]\'', monkeypatch)
    with pytest.raises(OSError, match=r"mermaid\.min\.js is not the one that release/mermaid\.py has the hash of"):
        mermaid.fetch()
    assert not mermaid.FOLDER.exists()


def test_without_npm_the_site_is_made_and_says_that_diagrams_are_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    site.build_site(tmp_path / "site")
    assert capfd.readouterr().err == "NO DIAGRAMS, they stay as text: [Errno 2] No such file or directory: 'npm'\n"


def test_where_npm_reaches_nobody_its_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
