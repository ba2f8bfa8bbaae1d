"""A hook of mkdocs: the site has the folders of this repository, so that every link of a document leads where it leads
there. What is linked to and is no document has a page that shows it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

from release import mermaid
from release.source import ROOT, documents

_ASSETS: Final = "assets/mermaid"
_LINK: Final = re.compile(r"(?<=\]\()((?:[^()\s#:]|\([^()\s#:]*\))+)(?=[#)])")
_FENCE: Final = re.compile(r"`{3,}|~{3,}")
_FENCED: Final = re.compile(r"^ *(`{3,}|~{3,}).*?(?:^ *\1[`~]* *$|\Z)", re.MULTILINE | re.DOTALL)
_ROW: Final = re.compile(r"^\|.*\|$", re.MULTILINE)
_CODE: Final = re.compile(r"`[^`]+`")
_BULLET: Final = re.compile(r"(?:\d+\.|-) +")
_PICTURES: Final = frozenset({".png", ".svg"})
_LANGUAGES: Final = {".json": "json", ".py": "python", ".yaml": "yaml"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The theme's files; our documents, and what they show, under their paths from the root.

    Raises PluginError for what they link to and no page can show.
    """
    own = [file for file in files if file.src_dir != config.docs_dir]
    for path in (*documents(), *_pictures()):
        own.append(File(_name(path), str(ROOT), config.site_dir, use_directory_urls=False))
    for page, path in _pages({file.src_uri for file in own}).items():
        own.append(File.generated(config, page, content=_shown(path), inclusion=InclusionLevel.NOT_IN_NAV))
    for path in mermaid.kept():
        own.append(File.generated(config, f"{_ASSETS}/{path.name}", abs_src_path=str(path)))
    return Files(own)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The same for Python-Markdown as GitHub makes of it, with links to files and folders led to their pages."""
    folder = (ROOT / page.file.src_uri).parent

    def to_its_page(link: "re.Match[str]") -> str:
        path = _target(folder, link[0])
        if not _is_shown(path):
            return link[0]
        return link[0].rstrip("/") + ("/README.md" if path.is_dir() else ".md")

    parts = (part if is_code else _LINK.sub(to_its_page, part) for part, is_code in _parts(markdown))
    text = _ROW.sub(lambda row: _CODE.sub(_unescaped, row[0]), "".join(parts))
    text = "".join(_indented(text))
    if "```mermaid\n" not in text or mermaid.kept():
        return text
    return text.replace("```mermaid\n", "```text\n")


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """What draws diagrams is loaded where there are some."""
    if 'class="mermaid"' not in output:
        return output
    script = f'<script src="{get_relative_url(f"{_ASSETS}/{mermaid.SCRIPT}", page.url)}"></script>'
    return output.replace("</body>", f"{script}</body>")


def _unescaped(code: "re.Match[str]") -> str:
    """GitHub wants a bar escaped in a table's code, too; Python-Markdown would show the backslash."""
    return code[0].replace(r"\|", "|")


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """All of it, piece by piece; and whether that is a fenced block."""
    end = 0
    for fenced in _FENCED.finditer(text):
        yield text[end : fenced.start()], False
        yield fenced[0], True
        end = fenced.end()
    yield text[end:], False


def _indented(text: str) -> Iterator[str]:
    """The lines, with lists as Python-Markdown wants them: four blanks before what belongs to an item, whatever its
    bullet, and an empty line before the first item, or before one that follows a second paragraph.
    """
    width = 0  # of the bullet of the item that we are in
    loose = False
    fence = before = ""
    for line in text.splitlines(keepends=True):
        fence = _fence_after(line, fence)
        bullet = None if fence else _BULLET.match(line)
        if bullet:
            yield "\n" if before.strip() and (loose or not width) else ""
            width, loose = len(bullet[0]), False
        elif line.strip() and not line.startswith(" " * width):
            width = 0
        loose = loose or not line.strip()
        yield " " * (4 - width) + line if width and line.strip() and not bullet else line
        before = line


def _fence_after(line: str, fence: str) -> str:
    """What the fenced block began with that we are in, after this line; "" outside of all."""
    if fence:
        return "" if line.startswith(fence) and not line.strip().strip(fence[0]) else fence
    begun = _FENCE.match(line)
    return begun[0] if begun else ""


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _is_shown(path: Path) -> bool:
    """Whether a page is made for it: it is no document, and no picture, which a document shows itself."""
    return path.is_relative_to(ROOT) and path.exists() and path.suffix not in {".md", *_PICTURES}


def _target(folder: Path, link: str) -> Path:
    return (folder / unquote(link)).resolve()


def _pages(taken: set[str]) -> dict[str, Path]:
    """What is shown by its page. A folder with a document README.md has that for its page, as on GitHub."""
    pages: dict[str, Path] = {}
    for path in sorted({shown for document in documents() for shown in _shown_by(document)}):
        page = _page_of(path)
        if page in taken and path.is_dir():
            continue
        if page in taken or page in pages:
            raise PluginError(f"{_name(path)}: a document links to it, and {page} would be the page of something else")
        pages[page] = path
    return pages


def _pictures() -> list[Path]:
    """The pictures that documents show."""
    links = ((document.parent, link) for document in documents() for link in _LINK.findall(document.read_text("utf-8")))
    found = {_target(folder, link) for folder, link in links if Path(link).suffix in _PICTURES}
    return sorted(path for path in found if path.is_relative_to(ROOT) and path.is_file())


def _shown_by(document: Path) -> Iterator[Path]:
    """The files and folders that a document links to, and the files of these folders."""
    for part, is_code in _parts(document.read_text(encoding="utf-8")):
        for link in [] if is_code else _LINK.findall(part):
            path = _target(document.parent, link)
            if _is_shown(path):
                yield path
                if path.is_dir() and path / "README.md" not in documents():
                    yield from _files_of(path)


def _files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and _is_shown(path))


def _page_of(path: Path) -> str:
    return _name(path / "README.md" if path.is_dir() else path.with_name(f"{path.name}.md"))


def _shown(path: Path) -> str:
    head = f"---\nsearch: {{exclude: true}}\n---\n\n# {_name(path)}\n\n"
    if path.is_dir():
        return head + "\n".join(f"- [{file.name}]({quote(file.name)})" for file in _files_of(path))
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise PluginError(f"{_name(path)}: a document links to it, and it is no text that a page can show") from None
    fence = "~" * max(5, 1 + max(map(len, re.findall("~+", text)), default=0))
    return f"{head}{fence} {_LANGUAGES.get(path.suffix, 'text')}\n{text}\n{fence}\n"
