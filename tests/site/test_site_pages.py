"""A linked file that is no document has a page that shows it as it is, or the site is not made."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from release import mermaid


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The hook, with a project of its own: all its *.md are documents."""
    site_pages: Any = pytest.importorskip("release.site_pages")
    monkeypatch.setattr(site_pages, "ROOT", tmp_path)
    monkeypatch.setattr(site_pages, "documents", lambda: sorted(tmp_path.rglob("*.md")))
    monkeypatch.setattr(mermaid, "kept", list)
    return site_pages


def make(folder: Path, **files: str) -> None:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)


def made_of(pages: Any, markdown: str) -> str:
    page: Any = SimpleNamespace(file=SimpleNamespace(src_uri="README.md"))
    made: str = pages.on_page_markdown(markdown, page, None, None)
    return made


def shown(pages: Any, *taken: str) -> list[str]:
    return list(pages._pages(set(taken)))


def refused(pages: Any, reason: str, *taken: str) -> None:
    from mkdocs.exceptions import PluginError

    with pytest.raises(PluginError, match=reason):
        [pages._shown(path) for path in pages._pages(set(taken)).values()]


def test_a_file_that_is_no_text_is_refused_by_its_name(pages: Any, tmp_path: Path) -> None:
    make(tmp_path, README_md="[an archive](a.gz)")
    (tmp_path / "a.gz").write_bytes(b"\x1f\x8b\xff\xfe")
    refused(pages, r"^a\.gz: a document links to it, and it is no text")


def test_a_picture_is_shown_as_it_is_and_has_no_page(pages: Any, tmp_path: Path) -> None:
    text = "![a picture](a.png), [the folder](b/), ![another](gone.png)\n"
    make(tmp_path, README_md=text, b_txt="b")
    (tmp_path / "b").mkdir()
    for name in ("a.png", "b/c.png"):
        (tmp_path / name).write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    assert pages._pictures() == [tmp_path / "a.png"]
    assert shown(pages) == ["b/README.md"]
    assert "(a.png)" in made_of(pages, text)


def test_a_file_that_has_fences_is_shown_to_its_end(pages: Any, tmp_path: Path) -> None:
    markdown: Any = pytest.importorskip("markdown")
    content = "a\n~~~~~\n<script>\n```\n~~~~~~~~\nz\n"
    make(tmp_path, a_txt=content)
    body = made_of(pages, pages._shown(tmp_path / "a.txt").rpartition("---\n")[2])
    html = markdown.markdown(body, extensions=["pymdownx.superfences", "pymdownx.highlight"])
    assert "<script>" not in html
    assert f" text\n{content}" in body


def test_a_file_is_shown_with_its_own_blanks_and_links(pages: Any, tmp_path: Path) -> None:
    content = "rules:\n- one: 1\n  two: [b](b.txt)\n\n- three\n"
    make(tmp_path, a_yaml=content, b_txt="b")
    assert content in made_of(pages, pages._shown(tmp_path / "a.yaml"))


def test_link_syntax_in_a_fenced_block_is_no_link(pages: Any, tmp_path: Path) -> None:
    text = "[b](b.txt)\n\n- one\n\n  ```sh\n  [a](a.txt)\n  ```\n\n```sh\n[a](a.txt)\n```\n[c](c.txt)\n"
    make(tmp_path, README_md=text, a_txt="a", b_txt="b", c_txt="c")
    assert shown(pages) == ["b.txt.md", "c.txt.md"]
    made = made_of(pages, text)
    assert made.count("(a.txt)") == 2
    assert "(b.txt.md)" in made
    assert "(c.txt.md)" in made


def test_a_folder_with_a_document_for_its_first_page_has_no_other(pages: Any, tmp_path: Path) -> None:
    make(
        tmp_path,
        README_md="[all](.) [docs](docs) [of it](of)",
        docs__README_md="# Docs",
        docs__a_txt="a",
        of__b_txt="b",
    )
    assert shown(pages, "README.md", "docs/README.md") == ["of/README.md", "of/b.txt.md"]
    assert made_of(pages, "[docs](docs)") == "[docs](docs/README.md)"


def test_a_file_that_would_have_the_page_of_a_document_is_refused(pages: Any, tmp_path: Path) -> None:
    make(tmp_path, README_md="[x](x.yaml)", x_yaml="a: 1", x_yaml_md="# A document")
    refused(pages, r"^x\.yaml: .*x\.yaml\.md would be the page of something else", "README.md", "x.yaml.md")


def test_a_file_that_would_have_the_page_of_its_folder_is_refused(pages: Any, tmp_path: Path) -> None:
    make(tmp_path, README_md="[of](of)", of__README="a")
    refused(pages, r"^of/README: .*of/README\.md would be the page of something else", "README.md")


def test_names_with_blanks_and_parentheses_lead_to_their_pages(pages: Any, tmp_path: Path) -> None:
    make(tmp_path, README_md="[b](a%20b.txt) [p](par(1).txt) [of](of)", **{"a b_txt": "b", "par(1)_txt": "p"})
    make(tmp_path, **{"of__c d_txt": "d"})
    assert shown(pages) == ["a b.txt.md", "of/README.md", "of/c d.txt.md", "par(1).txt.md"]
    assert made_of(pages, "[b](a%20b.txt) [p](par(1).txt)") == "[b](a%20b.txt.md) [p](par(1).txt.md)"
    assert "[c d.txt](c%20d.txt)" in pages._shown(tmp_path / "of")
