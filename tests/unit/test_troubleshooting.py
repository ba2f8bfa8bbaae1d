"""The messages that docs/operate/troubleshooting.md quotes are in the code."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.demo import ROOT

# A table whose first column is headed `... says` has a message in each row: wholly in code, or it is no message.
TABLE = re.compile(r"^\| [/\w ]* says \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
MESSAGE = re.compile(r"^\| (`+)(.+?)\1 \|", re.MULTILINE)
# Placeholders in a message for text that differs each time.
PLACEHOLDER = re.compile(
    r"\b(?:COUNT|KEYS?|KINDS?|MEANT|NAME|NAMESPACE|NODES?|PROBLEM|RESOURCE|SECONDS|SOURCE|UPSTREAMS?|VALUE|VERB|WHAT"
    r"|WIDER|ZONE)\b"
)
FORMATTED = re.compile(r"%[-.\w]*?[dgrsf]|\{[^}]*\}")


def messages() -> list[str]:
    text = (ROOT / "docs/operate/troubleshooting.md").read_text(encoding="utf-8")
    return [message for rows in TABLE.findall(text) for _, message in MESSAGE.findall(rows)]


def texts(path: Path) -> Iterator[str]:
    """The strings of a module but for its docstrings, in pieces where something is put into them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            value = node.value
            text = value.decode("latin-1") if isinstance(value, bytes) else value if isinstance(value, str) else ""
            yield from FORMATTED.split(text)


@pytest.fixture(scope="module")
def said() -> str:
    """All that topodns can say, a piece a line."""
    return "\n".join(piece for path in sorted((ROOT / "topodns").rglob("*.py")) for piece in texts(path))


def test_there_are_messages_of_each_kind() -> None:
    found = messages()
    assert len(found) > 30
    assert {"client location unknown", "Shutting down", "CAP_NET_ADMIN is missing"} <= set(found)


@pytest.mark.parametrize("message", messages())
def test_a_message_that_is_quoted_is_one_that_topodns_gives(said: str, message: str) -> None:
    pieces = [piece for piece in PLACEHOLDER.split(message) if re.search("[a-zA-Z]", piece)]
    assert pieces
    assert [piece for piece in pieces if piece not in said] == []
