"""Lexer and parser of expressions: precedence climbing, with the precedences of expr-lang.

`not` and `!` bind closer than comparisons, as in expr-lang: write `not (name() matches 'x')` or
`name() not matches 'x'`.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
    """An invalid or unsupported expression; the message says what was found and what expected."""


class ViewToken(NamedTuple):
    """A token. `kind` is the name of a group in _TOKEN, or "end" after the last token; "stray" is always an error.

    The text of strings is unquoted.
    """

    kind: str
    text: str
    at: int  # offset in characters

    def __str__(self) -> str:
        """The token's name in error messages."""
        if self.kind == "end":
            return "the end"
        return f"{self.text!r} at character {self.at + 1}"


def tokenize(text: str) -> Iterator[ViewToken]:
    """The tokens of an expression, followed by an "end" token. Raises BadExpression."""
    if len(text) > MAX_TEXT:
        raise BadExpression(f"found {len(text)} characters, expected at most {MAX_TEXT}")
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "space":
            yield _token(match)
    yield ViewToken("end", "", len(text))


def _token(match: re.Match[str]) -> ViewToken:
    kind, text, at = str(match.lastgroup), match[0], match.start()
    if kind == "raw":
        return ViewToken("string", text[1:-1], at)
    if kind == "string":
        return ViewToken("string", _ESCAPE.sub(_unescape, text[1:-1]), at)
    if kind == "stray" and text in "'\"`":
        raise BadExpression(f"found {text!r} at character {at + 1}, a quote that is never closed")
    return ViewToken(kind, text, at)


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


Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Literal:
    value: Value
    at: int


@dataclass(frozen=True, slots=True)
class Array:
    items: tuple["Node", ...]
    at: int


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: tuple["Node", ...]
    at: int


@dataclass(frozen=True, slots=True)
class Unary:
    """`operator` is "not", "-" or "+"."""

    operator: str
    operand: "Node"
    at: int


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: "Node"
    right: "Node"
    at: int


@dataclass(frozen=True, slots=True)
class Logic:
    """`and` or `or` of two or more terms: flat, since chains of alternatives can be long."""

    operator: str
    terms: tuple["Node", ...]
    at: int


@dataclass(frozen=True, slots=True)
class Conditional:
    """`test ? yes : no`."""

    test: "Node"
    yes: "Node"
    no: "Node"
    at: int


Node = Literal | Array | Call | Unary | Binary | Logic | Conditional

MAX_NESTING: Final = 64
MAX_INTEGER: Final = 2**63 - 1

_SPELLINGS: Final[Mapping[str, str]] = {"||": "or", "&&": "and", "!": "not"}
_BINARY: Final[Mapping[str, int]] = {
    **{"or": 10, "and": 15},
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in", "matches", "contains", "startsWith", "endsWith"), 20),
    **{"+": 30, "-": 30, "*": 60, "/": 60, "%": 60},
}
_UNARY: Final[Mapping[str, int]] = {"not": 50, "-": 90, "+": 90}
_NEGATED: Final = frozenset({"in", "matches", "contains", "startsWith", "endsWith"})  # operators that `not` may precede
_CONSTANTS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "nil": None}
_BASES: Final[Mapping[str, int]] = {"0x": 16, "0o": 8, "0b": 2}


def parse_expression(text: str) -> Node:
    """Parse an expression. Raises BadExpression."""
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = list(tokenize(text))
        self._next = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._expression()
        if self._token.kind != "end":
            raise BadExpression(f"found {self._token}, expected an operator or the end")
        return node

    @property
    def _token(self) -> ViewToken:
        return self._tokens[self._next]

    def _take(self) -> ViewToken:
        token = self._token
        self._next += 1
        return token

    def _expect(self, mark: str, where: str) -> None:
        if not self._at(mark):
            raise BadExpression(f"found {self._token}, expected {mark!r} {where}")
        self._next += 1

    def _at(self, mark: str) -> bool:
        return self._token.kind == "mark" and self._token.text == mark

    def _expression(self) -> Node:
        """An expression up to a comma, a closing bracket, a colon or the end, which is not taken."""
        test = self._operation(0)
        if not self._at("?"):
            return test
        at = self._take().at
        self._enter()
        yes = self._expression()
        self._expect(":", "between the two values of '?'")
        no = self._expression()
        self._depth -= 1
        return Conditional(test, yes, no, at)

    def _operation(self, least: int) -> Node:
        """Operands and the operators between them with a precedence of at least `least`."""
        self._enter()
        node = self._operand()
        while (operator := self._operator()) in _BINARY and _BINARY[operator] >= least:
            node = self._binary(node, operator)
        self._depth -= 1
        return node

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise BadExpression(f"found more than {MAX_NESTING} levels of nesting")

    def _operator(self) -> str:
        """The canonical spelling of the next mark or word, an operator or not; "" for other tokens. Takes nothing.

        For `not in` and the like it is the second word.
        """
        token = self._token
        if token.kind not in ("mark", "word"):
            return ""
        following = self._tokens[self._next + 1]
        if token.text == "not" and following.kind == "word" and following.text in _NEGATED:
            return following.text
        return _SPELLINGS.get(token.text, token.text)

    def _binary(self, left: Node, operator: str) -> Node:
        first = self._take()
        negated = first.text == "not"
        if negated:
            self._next += 1
        right = self._operation(_BINARY[operator] + 1)
        if operator in ("and", "or"):
            terms = left.terms if isinstance(left, Logic) and left.operator == operator else (left,)
            return Logic(operator, (*terms, right), first.at)
        node = Binary(operator, left, right, first.at)
        return Unary("not", node, first.at) if negated else node

    def _operand(self) -> Node:
        token = self._take()
        operator = _SPELLINGS.get(token.text, token.text)
        if token.kind in ("mark", "word") and operator in _UNARY:
            return Unary(operator, self._operation(_UNARY[operator]), token.at)
        if token.kind == "mark" and token.text in ("(", "["):
            return self._bracket(token)
        if token.kind == "string":
            return Literal(token.text, token.at)
        if token.kind in ("integer", "float"):
            return Literal(_number(token), token.at)
        if token.kind == "word" and token.text not in _BINARY:
            return self._named(token)
        raise BadExpression(f"found {token}, expected a value")

    def _bracket(self, opening: ViewToken) -> Node:
        if opening.text == "[":
            return Array(self._list("]"), opening.at)
        node = self._expression()
        self._expect(")", "for a '('")
        return node

    def _named(self, word: ViewToken) -> Node:
        if word.text in _CONSTANTS:
            return Literal(_CONSTANTS[word.text], word.at)
        if not self._at("("):
            advice = "a function such as name(), or a text in single quotes: double ones are the Corefile's own"
            raise BadExpression(f"found {word}, expected {advice}")
        self._next += 1
        return Call(word.text, self._list(")"), word.at)

    def _list(self, closing: str) -> tuple[Node, ...]:
        """Comma-separated expressions up to the closing bracket, which is taken too; a trailing comma is allowed."""
        items: list[Node] = []
        while not self._at(closing):
            items.append(self._expression())
            if not self._at(closing):
                self._expect(",", f"or {closing!r}")
        self._next += 1
        return tuple(items)


def _number(token: ViewToken) -> int | float:
    digits = token.text.lower().replace("_", "")
    if token.kind == "integer":
        base = _BASES.get(digits[:2], 10)
        if base != 10 and len(digits) == 2:
            raise BadExpression(f"found {token}, expected digits after it")
        return _within(token, int(digits, base) if len(digits) <= 66 else MAX_INTEGER + 1)
    number = float(digits)
    if math.isinf(number):
        raise BadExpression(f"found {token}, which is more than a number can be")
    return number


def _within(token: ViewToken, number: int) -> int:
    """The integer, as it is. Raises BadExpression above MAX_INTEGER.

    (66 digits in `_number`: 64 bits in base 2 with the prefix.)
    """
    if number > MAX_INTEGER:
        raise BadExpression(f"found {token}, expected an integer of at most {MAX_INTEGER}")
    return number
