"""YAML text to documents, built from libyaml's events.

Nine times faster than `yaml.safe_load`, which also gives no line numbers of list items. Bounded: an alias bomb or
too deep nesting is an error, and nothing here is recursive. Of a key that is there twice the last value counts, as
with kubectl.
"""

import binascii
import math
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, NoReturn

import yaml
from yaml import events

from topodns.kube.manifests.value import BadManifest, Value

MAX_DEPTH: Final = 100  # levels of nesting; API objects stay below 20
MAX_ALIASED: Final = 100_000  # values that the aliases of one file may repeat: "billion laughs" would be 10^9

_PAUSE_EVERY: Final = 256  # YAML events between two pauses: about 0.3 ms

_YAML_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML may be built without libyaml
_MERGE: Final = "<<"
_OF_DOCUMENTS: Final = frozenset(("apiVersion", "kind", "metadata", "spec"))  # keys with which a document begins
_CONSTANTS: Final[dict[str, object]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "y", "Y", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "n", "N", "off", "Off", "OFF"), False),
}
_INTEGER: Final = re.compile(
    r"(?P<sign>[-+]?)(?:(?P<decimal>0|[1-9][0-9]*)|0[xX](?P<hex>[0-9a-fA-F]+)|0[oO]?(?P<octal>[0-7]+)|0[bB](?P<binary>[01]+))"
)
_BASES: Final = {"decimal": 10, "hex": 16, "octal": 8, "binary": 2}
_MOST_DIGITS: Final = 64  # of an integer of 64 bits, in any base
_INTEGERS: Final = range(-(2**63), 2**64)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_QUOTES: Final = "; put a text that begins with !, * or & in quotes"
_UNQUOTED: Final = ("alphabetic or numeric character", "whitespace or line break")  # libyaml: of an alias, of a tag
_YAML_TAG: Final = "tag:yaml.org,2002:"
_PLAIN_TAGS: Final = frozenset(_YAML_TAG + name for name in ("null", "bool", "int", "float"))
_BINARY: Final = _YAML_TAG + "binary"

# Characters of which no YAML may consist; libyaml refuses them in comments, too, where they do not matter.
_NO_YAML: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CONTROL_HERE: Final = "\U0010ffff"  # replaces a control character; Unicode will never assign it
_PIECE: Final = 1 << 16  # characters that are looked at between two pauses


Note = Callable[[int, str], object]
"""Takes a remark about a line (from 1) of a file, which changes nothing."""


def read_yaml(text: str, file: str, note: Note, first_line: int = 1) -> Iterator[Value | None]:
    """The YAML documents of a text; None marks a point where the caller may pause. Raises BadManifest.

    `first_line` is that of the text in its file. `note` takes remarks, such as one about a document's repeated keys.
    Tags that say nothing of a scalar's type are passed over, as by kubectl (go.yaml.in/yaml/v2, `resolve`).
    """
    pieces = []
    for at in range(0, len(text), _PIECE):
        pieces.append(_NO_YAML.sub(_CONTROL_HERE, text[at : at + _PIECE]))
        yield None
    builder = _YamlBuilder(file, first_line, note)
    try:
        for count, event in enumerate(yaml.parse("".join(pieces), Loader=_YAML_LOADER), start=1):
            builder.take(event)
            if isinstance(event, events.DocumentEndEvent):
                builder.note_repeated()
                yield builder.finished()
            elif count % _PAUSE_EVERY == 0:
                yield None
    except yaml.MarkedYAMLError as error:
        mark, last_line = error.problem_mark or error.context_mark, text.rstrip().count("\n")
        line, column = (min(mark.line, last_line), mark.column) if mark else (0, 0)
        raise BadManifest(file, first_line + line, _with_advice(error.problem or "not YAML"), column) from None


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

    def __init__(self, file: str, first_line: int, note: Note) -> None:
        self._file = file
        self._first_line = first_line
        self._note = note
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
        self._repeated = ("", 0)  # the first key that is there again in its mapping, and its line
        self._repeats = 0  # how many such keys there are

    def note_repeated(self) -> None:
        """Give a remark if the document that has just ended has repeated keys."""
        if not self._repeats:
            return
        key, line = self._repeated
        asked = ": is `---` missing before it?" if key in _OF_DOCUMENTS else ""
        more = f"; and {self._repeats - 1} more" if self._repeats > 1 else ""
        self._note(line, f"the key {key!r} is there again in one mapping, and its last value counts{asked}{more}")

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
        if not event.value.isascii() and _CONTROL_HERE in event.value:
            self._fail(event, "found a control character, expected text")
        if event.tag in _PLAIN_TAGS or (event.tag is None and event.implicit[0]):
            value = _plain_value(event.value)
        else:
            value = self._text(event)
        if self._awaits_key():
            self._take_key(_key(value, event.value), event)
            return
        self._count += 1
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, 1)
        self._place(value, event)

    def _awaits_key(self) -> bool:
        return bool(self._keys) and self._keys[-1] is None

    def _take_key(self, key: str, event: yaml.Event) -> None:
        self._keys[-1] = key
        if key in self._open[-1].container:
            self._repeated = self._repeated if self._repeats else (key, self._line_of(event))
            self._repeats += 1

    def _text(self, event: events.ScalarEvent) -> str:
        """The text of a scalar that is quoted or has a tag."""
        text: str = event.value
        if event.tag == _BINARY:
            try:
                return binascii.a2b_base64(text).decode(errors="replace")
            except binascii.Error as problem:
                self._fail(event, f"no base64 behind !!binary: {problem}")
        if not text and event.tag is not None and event.tag.startswith("!"):
            self._note(self._line_of(event), f"{event.tag} is a tag, with no value behind it{_QUOTES}")
        return text

    def _begin(self, container: dict[str, object] | list[object], event: events.CollectionStartEvent) -> None:
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
        if anchored is None:
            self._fail(event, f"alias *{event.anchor} stands for no value that ended before it")
        if self._awaits_key():
            if isinstance(anchored.value, dict | list):
                self._fail(event, "a key must be text")
            self._take_key(_key(anchored.value, str(anchored.value)), event)
            return
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
            self._content, self._line = value, self._line_of(event)
            return
        container, key = self._open[-1].container, self._keys[-1]
        if isinstance(container, list):
            container.append(value)
            if container is self._items:
                self._item_lines.append(self._line_of(event))
            return
        assert key is not None, "whatever comes before a value of a mapping is its key"
        container[key] = value
        self._keys[-1] = None
        if key == "items" and len(self._open) == 1:
            self._items, self._item_lines = value, []

    def _fail(self, event: yaml.Event, problem: str) -> NoReturn:
        column = event.start_mark.column if event.start_mark else 0
        raise BadManifest(self._file, self._line_of(event), problem, column)

    def _line_of(self, event: yaml.Event) -> int:
        return self._first_line + (event.start_mark.line if event.start_mark else 0)


def _key(value: object, text: str) -> str:
    """The name of a key: a plain boolean or integer in the spelling of JSON (sigs.k8s.io/yaml), else as written."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else text


def _plain_value(text: str) -> object:
    """The value of an unquoted scalar as Kubernetes reads it (go.yaml.in/yaml/v2, `resolve`).

    That is YAML 1.1: booleans such as `yes`, `off` and `n`, octal integers such as 017, numbers with `_`. Timestamps,
    base 60 and `.inf` are text.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "+-.0123456789":
        return text
    plain = text if text[0] == "." else text.replace("_", "")
    if (match := _INTEGER.fullmatch(plain)) and (found := _integer(match)) is not None:
        return found
    number = float(plain) if _FLOAT.fullmatch(plain) else math.inf
    return number if math.isfinite(number) else text


def _integer(match: re.Match[str]) -> int | None:
    """The integer; None if it has more than 64 bits."""
    assert match.lastgroup is not None
    digits = match[match.lastgroup].lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS:
        return None
    found = int(match["sign"] + digits, _BASES[match.lastgroup])
    return found if found in _INTEGERS else None


def _with_advice(problem: str) -> str:
    """The problem that libyaml found, with what to do where a text has to be quoted."""
    return f"{problem}{_QUOTES}" if any(each in problem for each in _UNQUOTED) else problem
