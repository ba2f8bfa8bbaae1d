"""Manifest text, YAML or JSON, to plain objects with the line where each one begins.

Knows the envelopes that kubectl prints (many documents, `List`, typed lists such as `ServiceList`) and nothing else of
Kubernetes. Only `yaml_reader` imports PyYAML.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from topodns.kube.manifests.json_reader import read_json
from topodns.kube.manifests.value import BadManifest, Value
from topodns.kube.manifests.yaml_reader import read_yaml

MAX_LISTS: Final = 10  # nested lists; kubectl prints one level
MAX_BYTES: Final = 64 * 1024 * 1024  # per file; a dump of 5,000 nodes without Pods is about half of that


class Document(NamedTuple):
    """One undecoded object of a file, and the line (from 1) where it begins."""

    object: dict[str, object]
    line: int


def parse_documents(data: bytes, file: str) -> Iterator[Document | None]:
    """The objects of a YAML or JSON file in order, lists flattened. `file` is only for messages.

    Text that begins with `{`, after any white space, is JSON, several values in a row included; anything else is YAML
    (`yaml_reader`), with timestamps left as text. None, at least once per millisecond of work, marks a point where a
    caller in an event loop may let other tasks run. Raises BadManifest, possibly after some documents; nothing else.
    """
    text = _decoded(data, file)
    values = read_json(text, file) if text.lstrip()[:1] == "{" else read_yaml(text, file)
    for value in values:
        if value is None:
            yield None
        elif value.content is not None:  # None: an empty document between two `---`
            yield from _flattened(value, file, MAX_LISTS)


def _decoded(data: bytes, file: str) -> str:
    if len(data) > MAX_BYTES:
        raise BadManifest(file, 1, f"longer than {MAX_BYTES} bytes")
    if (position := data.find(b"\0")) >= 0:
        raise BadManifest(file, data.count(b"\n", 0, position) + 1, "a NUL byte; expected UTF-8 text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadManifest(file, data.count(b"\n", 0, error.start) + 1, "not UTF-8") from None


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
