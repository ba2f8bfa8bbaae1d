"""The document of the page: self-contained, and allowed nothing else by its policy."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

from topodns.inspect.page.html import HEADERS, html_page

PAGE = html_page()
TEXT = PAGE.body.decode()


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))


def elements() -> list[tuple[str, dict[str, str | None]]]:
    parser = Elements()
    parser.feed(TEXT)
    return parser.found


def test_the_policy_allows_the_style_and_the_script_of_the_page_and_nothing_else() -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", TEXT, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", TEXT, re.DOTALL)
    directives = dict(part.split(" ", 1) for part in PAGE.policy.split("; "))
    for text, directive in ((style, "style-src"), (script, "script-src")):
        assert directives.pop(directive) == f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
    assert directives.pop("connect-src") == "'self'"
    assert directives.pop("img-src") == "data:"
    assert directives == {name: "'none'" for name in ("default-src", "base-uri", "form-action", "frame-ancestors")}


def test_nothing_is_loaded_from_anywhere() -> None:
    references = [(tag, value) for tag, some in elements() for name, value in some.items() if name in ("src", "href")]
    assert references == [("link", "data:,")]
    assert "http:" not in TEXT
    assert "https:" not in TEXT
    assert not re.search(r"@import|url\(", TEXT)


def test_no_handler_or_style_is_in_an_attribute_where_the_policy_forbids_it() -> None:
    assert [name for _, some in elements() for name in some if name.startswith("on") or name == "style"] == []


def test_names_of_the_cluster_are_never_written_as_markup() -> None:
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser", TEXT
    )


def test_every_control_has_a_label_and_every_id_of_the_script_exists() -> None:
    ids = [some["id"] for _, some in elements() if "id" in some]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"\bat\(\"([\w-]+)\"\)", TEXT)) <= set(ids)
    assert not [some for tag, some in elements() if tag == "img"]
    assert dict(elements())["html"] == {"lang": "en"}


def test_replies_may_not_be_cached_framed_or_guessed_at() -> None:
    assert dict(HEADERS) == {
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "X-Frame-Options": "DENY",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
    }
