"""Manifest text, YAML or JSON, to plain objects with the line where each one begins.

Knows the envelopes that kubectl prints (many documents, `List`, typed lists such as `ServiceList`) and nothing else of
Kubernetes. Only `yaml_reader` imports PyYAML.
"""

import codecs
import re
from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

from topodns.files.text import without_mark
from topodns.kube.manifests.json_reader import read_json
from topodns.kube.manifests.value import BadManifest, Value
from topodns.kube.manifests.yaml_reader import Note, read_yaml

MAX_LISTS: Final = 10  # nested lists; kubectl prints one level
MAX_BYTES: Final = 64 * 1024 * 1024  # per file; a dump of 5,000 nodes without Pods is about half of that

# Between documents: white space, comments, separators and directives.
_BETWEEN: Final = re.compile(
    r"(?:[ \t\r\n]|\#[^\n]*|^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)|^%(?:YAML|TAG)[^\n]*)*+", re.MULTILINE
)
_UTF16_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF32_MARK: Final = codecs.BOM_UTF32_LE
_MARK: Final = "\ufeff"
_MARK_OF_DOCUMENT: Final = re.compile(rf"^(---[^\n]*\n){_MARK}", re.MULTILINE)  # YAML 1.2 section 5.2
_JSON_FOLLOWS: Final = re.compile(r"---(?=[ \t\r\n])(?:[ \t\r\n]|\#[^\n]*)*+\{")


class Document(NamedTuple):
    """One undecoded object of a file, and the line (from 1) where it begins."""

    object: dict[str, object]
    line: int


def parse_documents(data: bytes, file: str, note: Note = lambda line, remark: None) -> Iterator[Document | None]:
    """The objects of a YAML or JSON file in order, lists flattened. `file` is for messages, `note` as of `read_yaml`.

    Read as kubectl does (cli-runtime's FileVisitor, apimachinery's YAMLOrJSONDecoder), and any mixture of what it
    reads: YAML documents between `---`, in block or flow style (`yaml_reader`, timestamps stay text), and JSON objects,
    several in a row included; in UTF-8, with U+FFFD for octets that are none, or in UTF-16 with its byte order mark.
    None, at least once per millisecond of work, marks a point where a caller in an event loop may let other tasks run.
    Raises BadManifest, possibly after some documents; nothing else.
    """
    if len(data) > MAX_BYTES:
        raise BadManifest(file, 1, f"longer than {MAX_BYTES} bytes")
    try:
        text = _decoded(data)
    except ValueError as problem:
        raise BadManifest(file, 1, str(problem)) from None
    for value in _values(text, file, note):
        if value is None:
            yield None
        elif value.content is not None:  # None: an empty document between two `---`
            yield from _flattened(value, file, MAX_LISTS)


def _decoded(data: bytes) -> str:
    """The text of a file, without byte order marks. Raises ValueError for UTF-32, or UTF-16 without a mark."""
    if data.startswith(_UTF16_MARKS) and not data.startswith(_UTF32_MARK):
        return data.decode("utf-16", "replace")
    text = without_mark(data).decode("utf-8", "replace")
    return _MARK_OF_DOCUMENT.sub(r"\1", text) if _MARK in text else text


def _values(text: str, file: str, note: Note) -> Iterator[Value | None]:
    """The documents of a text. One that begins with `{` is read as JSON, which is fast, and if it is none, as YAML.

    YAML goes on to the next document that begins with `{`, since a reader of its own for each document costs 60 us.
    """
    at, line = 0, 1
    while (begin := _end_of_space(text, at)) < len(text):
        start = max(at, text.rfind("\n", at, begin) + 1)  # with its indentation, which counts in YAML
        line += text.count("\n", at, start)
        no_json: BadManifest | None = None
        if text[begin] == "{":
            try:
                found = yield from read_json(text, file, begin, line)
            except BadManifest as error:
                if error.at_end:
                    raise
                no_json = error
            else:
                yield found.value
                line += text.count("\n", start, found.end)
                at = found.end
                continue
        at = yield from _next_json(text, begin + 1)
        try:
            yield from read_yaml(text[start:at], file, note, line)
        except BadManifest as error:
            if no_json is not None and no_json.place >= error.place:
                raise no_json from None
            raise
        line += text.count("\n", start, at)


def _next_json(text: str, at: int) -> Generator[None, None, int]:
    """The offset of the next `---`, or of a directive before it, with a `{` behind it, else that of the end."""
    first = at
    while (at := text.find("\n---", at)) >= 0:
        if _JSON_FOLLOWS.match(text, at + 1):
            line_before = text.rfind("\n", 0, at) + 1
            return line_before if line_before >= first and text.startswith("%", line_before) else at + 1
        at += 1
        yield
    return len(text)


def _end_of_space(text: str, at: int) -> int:
    """The offset of the next document."""
    match = _BETWEEN.match(text, at)
    return match.end() if match is not None else at


def _flattened(value: Value, file: str, lists: int) -> Iterator[Document]:
    """The value itself or, of a list, its items; lists may be nested `lists` deep."""
    content = value.content
    if not isinstance(content, dict):
        raise BadManifest(file, value.line, f"expected an object, found {_described(content)}")
    kind, items = content.get("kind"), content.get("items")
    if isinstance(kind, str) and kind.endswith("List") and "items" in content:
        if not lists:
            raise BadManifest(file, value.line, f"more than {MAX_LISTS} lists within each other")
        yield from _listed(value, kind, file, lists - 1)
    elif kind is None and isinstance(items, list):
        # kubectl prints `kind: List` after the items, so this list is probably still being written.
        raise BadManifest(file, value.line, "a list of items without kind: is it cut off?")
    else:
        yield Document(content, value.line)


def _listed(value: Value, kind: str, file: str, lists: int) -> Iterator[Document]:
    """The items of a list, flattened; those of a typed list get a missing kind and apiVersion from the list.

    An item that is not an object gives an empty one, so that decoding reports it.
    """
    assert isinstance(value.content, dict)
    items = value.content["items"] or []
    if not isinstance(items, list):
        raise BadManifest(file, value.line, f"items of {kind}: expected a list, found {_described(items)}")
    implied = {"kind": kind.removesuffix("List"), "apiVersion": value.content.get("apiVersion")}
    for index, item in enumerate(items):
        line = value.item_lines[index] if index < len(value.item_lines) else value.line
        if not isinstance(item, dict):
            yield Document({}, line)  # decoding reports this item as bad and keeps the others
            continue
        if kind != "List":
            item = {**implied, **item}
        yield from _flattened(Value(item, line, []), file, lists)


def _described(value: object) -> str:
    """A value for an error message; never text, since the file may hold a secret, such as a token."""
    return "a list" if isinstance(value, list) else "text" if isinstance(value, str) else repr(value)[:40]
