"""Built pages, read: what links where, what is loaded, and what a reader sees."""

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data", "link": "href"}
_SHAPES = {
    "h1",
    "h2",
    "h3",
    "h4",
    "ul",
    "ol",
    "li",
    "table",
    "tr",
    "th",
    "td",
    "pre",
    "code",
    "strong",
    "em",
    "a",
    "hr",
}


class Reading(HTMLParser):
    """The content of one page. Text and shapes are those of its article, or of all where it has none."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.diagrams = 0
        self.shapes: Counter[str] = Counter()
        self._text: list[str] = []
        self._shown = "<article" not in html
        self._passed_over = False
        self.feed(html)
        self.close()

    @property
    def words(self) -> list[str]:
        return "".join(self._text).split()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "article":
            self._shown = True
        if tag in _LOADED and _LOADED[tag] in found:
            self.loaded.append(found[_LOADED[tag]])
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if found.get("class") == "mermaid":
            self.diagrams += 1
        self._passed_over = found.get("class") == "headerlink"
        if self._shown and not self._passed_over:
            self.shapes[tag] += tag in _SHAPES

    def handle_endtag(self, tag: str) -> None:
        self._passed_over = False
        if tag == "article":
            self._shown = False

    def handle_data(self, data: str) -> None:
        if self._shown and not self._passed_over:
            self._text.append(data)


class Site:
    """All that a build has written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def pages(self) -> dict[str, Reading]:
        """By their path in the site, but for the page that a web server shows for missing ones."""
        paths = (path for path in sorted(self.folder.rglob("*.html")) if path.name != "404.html")
        return {str(path.relative_to(self.folder)): Reading(path.read_text(encoding="utf-8")) for path in paths}

    def page_of(self, document: str) -> Reading:
        """The page that a document has become."""
        path = Path(document)
        return self.pages[str(path.with_name("index.html") if path.name == "README.md" else path.with_suffix(".html"))]

    def leads_nowhere(self) -> Iterator[str]:
        """Each link within the site that has no page, no file or no anchor."""
        for name, page in self.pages.items():
            for link in [*page.links, *page.loaded]:
                if not urlsplit(link).scheme and not self._is_there(name, link):
                    yield f"{name}: {link}"

    def _is_there(self, name: str, link: str) -> bool:
        path, anchor = urldefrag(link)
        target = (self.folder / name).parent / unquote(path) if path else self.folder / name
        target = (target / "index.html" if target.is_dir() else target).resolve()
        if not target.is_file() or not target.is_relative_to(self.folder.resolve()):
            return False
        return not anchor or unquote(anchor) in self.pages[str(target.relative_to(self.folder.resolve()))].anchors
