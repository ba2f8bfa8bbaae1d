"""YAML text to documents, built from libyaml's events.

Nine times faster than `yaml.safe_load`, which also gives no line numbers of list items. Bounded: an alias bomb or
too deep nesting is an error, and nothing here is recursive.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple, NoReturn

import yaml
from yaml import events

from topodns.kube.manifests.value import BadManifest, Value

MAX_DEPTH: Final = 100  # levels of nesting; API objects stay below 20
MAX_ALIASED: Final = 100_000  # values that the aliases of one file may repeat: "billion laughs" would be 10^9

_PAUSE_EVERY: Final = 256  # YAML events between two pauses: about 0.3 ms

_YAML_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML may be built without libyaml
_MERGE: Final = "<<"
_CONSTANTS: Final[dict[str, object]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*|0x[0-9a-fA-F]+|0o[0-7]+)")
_FLOAT: Final = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
_YAML_TAG: Final = "tag:yaml.org,2002:"
_SCALAR_TAGS: Final = frozenset(_YAML_TAG + name for name in ("null", "bool", "int", "float"))
_PLAIN_TAGS: Final = frozenset({None, "!", *(_YAML_TAG + name for name in ("map", "seq", "str")), *_SCALAR_TAGS})


def read_yaml(text: str, file: str) -> Iterator[Value | None]:
    """The YAML documents of a text; None marks a point where the caller may pause. Raises BadManifest."""
    builder = _YamlBuilder(file)
    try:
        for count, event in enumerate(yaml.parse(text, Loader=_YAML_LOADER), start=1):
            builder.take(event)
            if isinstance(event, events.DocumentEndEvent):
                yield builder.finished()
            elif count % _PAUSE_EVERY == 0:
                yield None
    except yaml.MarkedYAMLError as error:
        mark, last_line = error.problem_mark or error.context_mark, text.rstrip().count("\n") + 1
        raise BadManifest(file, min(mark.line + 1, last_line) if mark else 1, error.problem or "not YAML") from None
    except yaml.reader.ReaderError as error:
        line = text.encode().count(b"\n", 0, error.position) + 1
        raise BadManifest(file, line, f"not YAML: {error.reason}") from None


class _Open(NamedTuple):
    """A mapping or sequence that has not ended yet."""

    container: dict[str, object] | list[object]
    anchor: str | None
    counted: int  # values in the file before it


class _Anchored(NamedTuple):
    value: object
    size: int  # values in it, itself included


class _YamlBuilder:
    """Builds values from the YAML events of one file, document by document, without recursion."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._count = 0  # values so far, for the size of anchored values
        self._aliased = 0
        self._start_document()

    def _start_document(self) -> None:
        self._content: object = None
        self._line = 0
        self._items: object = None  # the value of the outermost mapping's `items`
        self._item_lines: list[int] = []
        self._open: list[_Open] = []
        # Parallel to `_open`: a mapping's key that awaits its value, None where a key is due; "" for a sequence.
        self._keys: list[str | None] = []
        self._anchors: dict[str, _Anchored] = {}

    def finished(self) -> Value:
        """The value of the document that has just ended, and its line numbers; the next event begins a new document."""
        value = Value(self._content, self._line, self._item_lines)
        self._start_document()
        return value

    def take(self, event: yaml.Event) -> None:
        """Process one YAML event. Raises BadManifest."""
        match event:
            case events.ScalarEvent():
                self._scalar(event)
            case events.MappingStartEvent():
                self._begin({}, event)
            case events.SequenceStartEvent():
                self._begin([], event)
            case events.MappingEndEvent() | events.SequenceEndEvent():
                self._end(event)
            case events.AliasEvent():
                self._alias(event)

    def _scalar(self, event: events.ScalarEvent) -> None:
        if event.tag is not None and event.tag not in _PLAIN_TAGS:
            self._fail(event, f"tag {event.tag} has no meaning in a manifest")
        if self._awaits_key():
            self._keys[-1] = self._new_key(event)
            return
        plain = event.tag in _SCALAR_TAGS or (event.tag is None and event.implicit[0])
        value = _plain_value(event.value) if plain else event.value
        self._count += 1
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, 1)
        self._place(value, event)

    def _awaits_key(self) -> bool:
        return bool(self._keys) and self._keys[-1] is None

    def _new_key(self, event: events.ScalarEvent) -> str:
        container = self._open[-1].container
        if event.value in container:
            self._fail(event, f"key {event.value!r} is there twice")
        return str(event.value)

    def _begin(self, container: dict[str, object] | list[object], event: events.CollectionStartEvent) -> None:
        if event.tag not in _PLAIN_TAGS:
            self._fail(event, f"tag {event.tag} has no meaning in a manifest")
        if self._awaits_key():
            self._fail(event, "a key must be text")
        if len(self._open) == MAX_DEPTH:
            self._fail(event, f"nested more than {MAX_DEPTH} levels deep")
        self._place(container, event)
        self._open.append(_Open(container, event.anchor, self._count))
        self._count += 1
        self._keys.append(None if isinstance(container, dict) else "")

    def _end(self, event: yaml.Event) -> None:
        container, anchor, counted = self._open.pop()
        self._keys.pop()
        if isinstance(container, dict) and _MERGE in container:
            self._merge(container, event)
        if anchor is not None:
            self._anchors[anchor] = _Anchored(container, self._count - counted)

    def _alias(self, event: events.AliasEvent) -> None:
        anchored = self._anchors.get(event.anchor or "")
        if anchored is None or self._awaits_key():
            self._fail(event, f"alias *{event.anchor} stands for no value that ended before it")
        self._aliased += anchored.size
        if self._aliased > MAX_ALIASED:
            self._fail(event, f"aliases repeat more than {MAX_ALIASED} values")
        self._count += anchored.size
        self._place(anchored.value, event)

    def _merge(self, container: dict[str, object], event: yaml.Event) -> None:
        """Apply the merge key of YAML 1.1: the mapping's own keys win, then those of earlier sources."""
        sources = container.pop(_MERGE)
        for source in sources if isinstance(sources, list) else [sources]:
            if not isinstance(source, dict):
                self._fail(event, "the value of << must be a mapping, or a list of them")
            container.update({name: value for name, value in source.items() if name not in container})

    def _place(self, value: object, event: yaml.Event) -> None:
        """Store a value as the document, as the next element of a list, or under the pending key of a mapping."""
        if not self._open:
            self._content, self._line = value, _line_of(event)
            return
        container, key = self._open[-1].container, self._keys[-1]
        if isinstance(container, list):
            container.append(value)
            if container is self._items:
                self._item_lines.append(_line_of(event))
            return
        assert key is not None, "whatever comes before a value of a mapping is its key"
        container[key] = value
        self._keys[-1] = None
        if key == "items" and len(self._open) == 1:
            self._items = value

    def _fail(self, event: yaml.Event, problem: str) -> NoReturn:
        raise BadManifest(self._file, _line_of(event), problem)


def _line_of(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _plain_value(text: str) -> object:
    """The value of an unquoted scalar: null and booleans as in YAML 1.1 (`yes`, `off`), integers, decimal floats.

    All else is text: timestamps (as in Kubernetes), base 60, `017`, `.inf`.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _INTEGER.fullmatch(text):
        return _integer(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _integer(text: str) -> object:
    try:
        return int(text, 0)
    except ValueError:  # thousands of digits: beyond Python's limit for int()
        return text
