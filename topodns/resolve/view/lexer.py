"""The text of an expression, cut into tokens as expr-lang cuts it."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

MAX_TEXT: Final = 10_000  # characters

_TOKEN: Final = re.compile(
    r"""
      (?P<space> \s+ | //[^\n]* | /\*.*?\*/ )
    | (?P<string> ' (?: \\. | [^'\\] )* ' | " (?: \\. | [^"\\] )* " )
    | (?P<raw> `[^`]*` )
    | (?P<float> (?: [0-9][0-9_]* )? \.[0-9][0-9_]* (?: [eE][+-]?[0-9]+ )? | [0-9][0-9_]* [eE][+-]?[0-9]+ )
    | (?P<integer> 0[xX][0-9a-fA-F_]+ | 0[oO][0-7_]+ | 0[bB][01_]+ | [0-9][0-9_]* )
    | (?P<word> [^\W\d]\w* )
    | (?P<mark> == | != | <= | >= | && | \|\| | [-+*/%<>!?:,()\[\]] )
    | (?P<stray> . )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))", re.DOTALL)
_SIMPLE: Final[Mapping[str, str]] = {
    **{"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"},
    **{each: each for each in "\\'\""},
}
_LAST_CHARACTER: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


class BadExpression(ValueError):
    """Text that is no expression, or one beyond what is understood here; says what was found and expected."""


class Token(NamedTuple):
    """`kind` is a group's name of the expression above, "end" after the last; no expression has a "stray" one.

    Strings are unquoted.
    """

    kind: str
    text: str
    at: int  # characters before it

    def __str__(self) -> str:
        """How a message names it."""
        if self.kind == "end":
            return "the end"
        return f"{self.text!r} at character {self.at + 1}"


def tokenize(text: str) -> Iterator[Token]:
    """The tokens of an expression and the end. Raises BadExpression."""
    if len(text) > MAX_TEXT:
        raise BadExpression(f"found {len(text)} characters, expected at most {MAX_TEXT}")
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "space":
            yield _token(match)
    yield Token("end", "", len(text))


def _token(match: re.Match[str]) -> Token:
    kind, text, at = str(match.lastgroup), match[0], match.start()
    if kind == "raw":
        return Token("string", text[1:-1], at)
    if kind == "string":
        return Token("string", _ESCAPE.sub(_unescape, text[1:-1]), at)
    if kind == "stray" and text in "'\"`":
        raise BadExpression(f"found {text!r} at character {at + 1}, a quote that is never closed")
    return Token(kind, text, at)


def _unescape(match: re.Match[str]) -> str:
    *codes, octal, simple = match.groups()
    if simple is not None:
        if simple not in _SIMPLE:
            raise BadExpression(f"found the escape \\{simple}, which no text has; write \\\\{simple} for a pattern")
        return _SIMPLE[simple]
    code = int(octal, 8) if octal else int(next(filter(None, codes)), 16)
    if code > _LAST_CHARACTER or code in _SURROGATES:
        raise BadExpression(f"found the escape {match[0]}, which is no character")
    return chr(code)
