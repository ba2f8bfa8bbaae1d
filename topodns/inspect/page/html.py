"""The page as one self-contained HTML document, and the headers of its replies.

Style and script are inside, and the Content-Security-Policy names both by hash: nothing else is run or loaded, and the
page connects to its own server alone.
"""

from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Final

_PACKAGE: Final = "topodns.inspect.page"

HEADERS: Final = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
)
"""Headers of every reply of the page's routes, refusals too."""


@dataclass(frozen=True, slots=True)
class HtmlPage:
    body: bytes
    policy: str  # of the header Content-Security-Policy


def html_page() -> HtmlPage:
    """The page, read from the files beside this module."""
    style = _text("page.css")
    script = "".join(map(_text, ("page.js", "page.picture.js", "page.details.js")))
    body = _text("page.html").replace("/*STYLE*/", style).replace("/*SCRIPT*/", script)
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_hash(style)}'",
            f"script-src '{_hash(script)}'",
            "connect-src 'self'",
            "img-src data:",  # the empty icon, without which browsers ask for /favicon.ico
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
    return HtmlPage(body.encode(), policy)


def _text(name: str) -> str:
    return (files(_PACKAGE) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
