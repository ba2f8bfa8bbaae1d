"""JSON text to documents. Parses the outermost object itself, so that each element of `items` has a line number."""

import json
import re
from collections.abc import Generator, Iterator
from typing import Final, NamedTuple, NoReturn

from topodns.kube.manifests.value import BadManifest, Value

_WHITE_SPACE: Final = re.compile(r"[ \t\n\r]+")  # RFC 8259 section 2


class Found(NamedTuple):
    """An object of a text, and the offset of its end."""

    value: Value
    end: int


def read_json(text: str, file: str, start: int, line: int) -> Generator[None, None, Found]:
    """Read the JSON object that begins at the offset `start`, in this line; yields where the caller may pause.

    Raises BadManifest for what is no JSON.
    """
    reader = _JsonReader(text, file, start, line)
    content: dict[str, object] = {}
    item_lines: list[int] = []
    for _ in reader.members(content, item_lines):
        yield None
    return Found(Value(content, line, item_lines), reader.position)


class _JsonReader:
    """Parses the outermost object and its `items` to know the line of each item; `json` parses all other values."""

    def __init__(self, text: str, file: str, start: int, line: int) -> None:
        self._text = text
        self._file = file
        self.position = start
        self._counted = (start, line)  # a position in the text, and its line
        self._decoder = json.JSONDecoder(parse_constant=self._refuse_constant)

    def peek(self) -> str:
        """Skip white space. Returns the next character, which stays unread; "" at the end."""
        if space := _WHITE_SPACE.match(self._text, self.position):
            self.position = space.end()
        return self._text[self.position : self.position + 1]

    def line(self) -> int:
        """The line (from 1) of the position; only the text since the last call is counted."""
        start, line = self._counted
        line += self._text.count("\n", start, self.position)
        self._counted = (self.position, line)
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
        self.position += 1

    def _value(self) -> object:
        self.peek()
        try:
            value, self.position = self._decoder.raw_decode(self._text, self.position)
        except json.JSONDecodeError as error:
            self.position = error.pos
            self._fail(error.msg)
        except ValueError as error:  # an integer of thousands of digits
            self._fail(str(error))
        except RecursionError:
            self._fail("nested too deeply")
        return value

    def _refuse_constant(self, name: str) -> NoReturn:
        self._fail(f"{name} is no JSON")

    def _fail(self, problem: str) -> NoReturn:
        line, column = self.line(), self.position - self._text.rfind("\n", 0, self.position) - 1
        found = repr(self._text[self.position : self.position + 20]) if self.peek() else "the end of the file"
        raise BadManifest(self._file, line, f"{problem}, found {found}", column, at_end=not self.peek())
