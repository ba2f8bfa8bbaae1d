"""The site of `make site`: it is what the documents are on GitHub, and loads nothing from other hosts."""

import filecmp
import re
import shutil
import subprocess
from itertools import takewhile
from pathlib import Path

import pytest

from release import mermaid
from release.site import build_site
from release.source import ROOT
from tests.site.pages import Reading, Site
from tests.support.documents import DOCUMENTS

DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DIAGRAMS = {f"{name} {nth}": text for name in DOCUMENTS for nth, text in enumerate(DIAGRAM.findall(DOCUMENTS[name]), 1)}
IN_STYLES = re.compile(r"""(?:url\(|@import )\s*["']?(?!data:)(\w+:|//)""")


@pytest.fixture(scope="module")
def drawing() -> Path:
    """The program that draws, which the build has fetched."""
    if not mermaid.kept():
        pytest.skip("NO DIAGRAMS ARE LOOKED AT: npm did not bring what draws them")
    return mermaid.FOLDER / mermaid.SCRIPT


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_has_a_page_with_all_that_github_shows_of_it(site: Site, name: str) -> None:
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable(["table", "strikethrough"])
    here, there = site.page_of(name), Reading(markdown.render(DOCUMENTS[name]))
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(here.words, there.words, strict=False)))
    assert here.words[same : same + 20] == there.words[same : same + 20]
    assert here.shapes == there.shapes


def test_every_link_leads_to_a_page_and_an_anchor_of_the_site(site: Site) -> None:
    assert sum(len(page.links) for page in site.pages.values()) > 1000
    assert list(site.leads_nowhere()) == []


def test_a_file_that_a_document_links_to_has_a_page_that_shows_it(site: Site) -> None:
    for name in ("config/kubernetes/rbac.yaml", "config/demo/Corefile", "LICENSE"):
        shown = site.pages[f"{name}.html"].words
        assert shown[:1] == [name]
        assert shown[1:] == (ROOT / name).read_text(encoding="utf-8").split()
    listed = site.pages["config/kubernetes/node-cache/index.html"].words
    assert listed[1:] == sorted(path.name for path in (ROOT / "config/kubernetes/node-cache").iterdir())


def test_a_picture_of_a_document_is_there_and_nothing_is_made_of_it(site: Site) -> None:
    name = "docs/operate/topology-page.png"
    assert filecmp.cmp(site.folder / name, ROOT / name, shallow=False)
    assert f"{name}.html" not in site.pages


def test_the_navigation_of_every_page_leads_to_every_document(site: Site) -> None:
    for name, page in site.pages.items():
        reached = {(site.folder / name).parent.joinpath(link.partition("#")[0]).resolve() for link in page.links}
        missing = [
            each for each in DOCUMENTS if page_file(site, each) not in reached | {(site.folder / name).resolve()}
        ]
        assert (name, missing) == (name, [])


def page_file(site: Site, document: str) -> Path:
    reading = site.page_of(document)
    (name,) = (name for name, page in site.pages.items() if page is reading)
    return (site.folder / name).resolve()


def test_no_page_and_no_style_loads_anything_from_another_host(site: Site) -> None:
    loaded = {link for page in site.pages.values() for link in page.loaded}
    assert any(link.endswith(".js") for link in loaded)
    assert [link for link in loaded if link.startswith("//") or ":" in link.partition("/")[0]] == []
    styles = list(site.folder.rglob("*.css"))
    assert styles
    assert [style.name for style in styles if IN_STYLES.search(style.read_text(encoding="utf-8"))] == []


def test_every_diagram_is_rendered_and_the_library_is_loaded_only_on_pages_with_diagrams(
    site: Site, drawing: Path
) -> None:
    assert DIAGRAMS
    shown = {name: site.page_of(name).diagrams for name in DOCUMENTS}
    assert shown == {name: len(DIAGRAM.findall(text)) for name, text in DOCUMENTS.items()}
    for page in site.pages.values():
        assert any(link.endswith(drawing.name) for link in page.loaded) == bool(page.diagrams)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed: no diagram is read")
@pytest.mark.parametrize("name", DIAGRAMS)
def test_the_diagram_library_can_read_each_diagram(drawing: Path, name: str) -> None:
    assert reading_of(drawing, DIAGRAMS[name]) == ""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed: no diagram is read")
def test_the_diagram_library_reports_a_diagram_that_it_cannot_read(drawing: Path) -> None:
    assert "Parse error on line 2" in reading_of(drawing, "flowchart TD\n    a[[ --> ]\n")


def reading_of(drawing: Path, diagram: str) -> str:
    """The parser's complaint about a diagram; "" where there is none."""
    script = Path(__file__).parent / "read_diagram.js"
    done = subprocess.run(["node", script, drawing], input=diagram, capture_output=True, text=True, check=False)
    assert bool(done.returncode) == bool(done.stderr)
    return done.stderr


def test_two_builds_of_the_same_files_are_the_same(site: Site, tmp_path: Path) -> None:
    build_site(tmp_path / "again")
    files = sorted(path.relative_to(site.folder) for path in site.folder.rglob("*") if path.is_file())
    again = sorted(path.relative_to(tmp_path / "again") for path in tmp_path.rglob("*") if path.is_file())
    assert files == again
    assert filecmp.cmpfiles(site.folder, tmp_path / "again", files, shallow=False)[1:] == ([], [])
