"""JSON text to documents. Parses the outermost object itself, so that each element of `items` has a line number."""

import json
import re
from collections.abc import Iterator
from typing import Final, NoReturn

from topodns.kube.manifests.value import BadManifest, Value

_WHITE_SPACE: Final = re.compile(r"[ \t\n\r]+")  # RFC 8259 section 2


def read_json(text: str, file: str) -> Iterator[Value | None]:
    """The JSON objects of a text in order; None marks a point where the caller may pause. Raises BadManifest."""
    reader = _JsonReader(text, file)
    while reader.peek():
        line = reader.line()
        content: dict[str, object] = {}
        item_lines: list[int] = []
        for _ in reader.members(content, item_lines):
            yield None
        yield Value(content, line, item_lines)


class _JsonReader:
    """Parses the outermost object and its `items` to know the line of each item; `json` parses all other values."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._position = 0
        self._counted = (0, 1)  # a position in the text, and its line
        self._decoder = json.JSONDecoder(parse_constant=self._refuse_constant)

    def peek(self) -> str:
        """Skip white space. Returns the next character, which stays unread; "" at the end."""
        if space := _WHITE_SPACE.match(self._text, self._position):
            self._position = space.end()
        return self._text[self._position : self._position + 1]

    def line(self) -> int:
        """The line (from 1) of the position; only the text since the last call is counted."""
        start, line = self._counted
        line += self._text.count("\n", start, self._position)
        self._counted = (self._position, line)
        return line

    def members(self, into: dict[str, object], item_lines: list[int]) -> Iterator[None]:
        """Read an object into `into`, and the line of each element of its `items` into `item_lines`.

        Yields after each element of `items`, so that the caller may pause.
        """
        for _ in self._separated("{", "}"):
            if self.peek() != '"':
                self._fail("expected a name in double quotes")
            name = str(self._value())
            self._take(":")
            if name != "items" or self.peek() != "[":
                into[name] = self._value()
                continue
            items: list[object] = []
            into[name] = items
            item_lines.clear()
            for _ in self._separated("[", "]"):
                item_lines.append(self.line())
                items.append(self._value())
                yield

    def _separated(self, opening: str, closing: str) -> Iterator[None]:
        """Yield before each element of a list or object; the caller then reads the element."""
        self._take(opening)
        if self.peek() == closing:
            self._take(closing)
            return
        while True:
            self.peek()
            yield
            if self.peek() == closing:
                self._take(closing)
                return
            self._take(",")

    def _take(self, expected: str) -> None:
        if self.peek() != expected:
            self._fail(f"expected {expected!r}")
        self._position += 1

    def _value(self) -> object:
        self.peek()
        try:
            value, self._position = self._decoder.raw_decode(self._text, self._position)
        except json.JSONDecodeError as error:
            self._position = error.pos
            self._fail(error.msg)
        except ValueError as error:  # an integer of thousands of digits
            self._fail(str(error))
        except RecursionError:
            self._fail("nested too deeply")
        return value

    def _refuse_constant(self, name: str) -> NoReturn:
        self._fail(f"{name} is no JSON")

    def _fail(self, problem: str) -> NoReturn:
        line = self._text.count("\n", 0, self._position) + 1
        found = repr(self._text[self._position : self._position + 20]) if self.peek() else "the end of the file"
        raise BadManifest(self._file, line, f"{problem}, found {found}")
