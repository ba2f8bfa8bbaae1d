"""A hook of mkdocs: the site has the folders of this repository, so that every link of a document leads where it leads
there. What is linked to and is no document has a page that shows it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

from release import mermaid
from release.source import ROOT, documents

_ASSETS: Final = "assets/mermaid"
_LINK: Final = re.compile(r"(?<=\]\()([^()\s#:]+)(?=[#)])")
_ROW: Final = re.compile(r"^\|.*\|$", re.MULTILINE)
_CODE: Final = re.compile(r"`[^`]+`")
_BULLET: Final = re.compile(r"(?:\d+\.|-) +")
_LANGUAGES: Final = {".json": "json", ".py": "python", ".yaml": "yaml"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The theme's files; our documents, and what they show, under their paths from the root."""
    own = [file for file in files if file.src_dir != config.docs_dir]
    for path in documents():
        own.append(File(_name(path), str(ROOT), config.site_dir, use_directory_urls=False))
    for path in sorted({shown for document in documents() for shown in _shown_by(document)}):
        own.append(File.generated(config, _page_of(path), content=_shown(path), inclusion=InclusionLevel.NOT_IN_NAV))
    for path in mermaid.kept():
        own.append(File.generated(config, f"{_ASSETS}/{path.name}", abs_src_path=str(path)))
    return Files(own)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The same for Python-Markdown as GitHub makes of it, with links to files and folders led to their pages."""
    folder = (ROOT / page.file.src_uri).parent

    def to_its_page(link: "re.Match[str]") -> str:
        path = (folder / link[0]).resolve()
        if not _is_shown(path):
            return link[0]
        return link[0].rstrip("/") + ("/README.md" if path.is_dir() else ".md")

    text = _LINK.sub(to_its_page, markdown)
    text = _ROW.sub(lambda row: _CODE.sub(_unescaped, row[0]), text)
    text = "".join(_indented(text))
    return text if mermaid.kept() else text.replace("```mermaid\n", "```text\n")


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """What draws diagrams is loaded where there are some."""
    if 'class="mermaid"' not in output:
        return output
    script = f'<script src="{get_relative_url(f"{_ASSETS}/{mermaid.SCRIPT}", page.url)}"></script>'
    return output.replace("</body>", f"{script}</body>")


def _unescaped(code: "re.Match[str]") -> str:
    """GitHub wants a bar escaped in a table's code, too; Python-Markdown would show the backslash."""
    return code[0].replace(r"\|", "|")


def _indented(text: str) -> Iterator[str]:
    """The lines, with lists as Python-Markdown wants them: four blanks before what belongs to an item, whatever its
    bullet, and an empty line before the first item, or before one that follows a second paragraph.
    """
    width = 0  # of the bullet of the item that we are in
    fenced = loose = False
    before = ""
    for line in text.splitlines(keepends=True):
        fenced ^= line.startswith("```")
        bullet = None if fenced else _BULLET.match(line)
        if bullet:
            yield "\n" if before.strip() and (loose or not width) else ""
            width, loose = len(bullet[0]), False
        elif line.strip() and not line.startswith(" " * width):
            width = 0
        loose = loose or not line.strip()
        yield " " * (4 - width) + line if width and line.strip() and not bullet else line
        before = line


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _is_shown(path: Path) -> bool:
    return path.is_relative_to(ROOT) and path.exists() and path.suffix != ".md"


def _shown_by(document: Path) -> Iterator[Path]:
    """The files and folders that a document links to, and the files of these folders."""
    for link in _LINK.findall(document.read_text(encoding="utf-8")):
        path = (document.parent / link).resolve()
        if _is_shown(path):
            yield path
            if path.is_dir():
                yield from _files_of(path)


def _files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and path.suffix != ".md")


def _page_of(path: Path) -> str:
    return _name(path / "README.md" if path.is_dir() else path.with_name(f"{path.name}.md"))


def _shown(path: Path) -> str:
    head = f"---\nsearch: {{exclude: true}}\n---\n\n# {_name(path)}\n\n"
    if path.is_dir():
        return head + "\n".join(f"- [{file.name}]({file.name})" for file in _files_of(path))
    return f"{head}~~~~~ {_LANGUAGES.get(path.suffix, 'text')}\n{path.read_text(encoding='utf-8')}\n~~~~~\n"
