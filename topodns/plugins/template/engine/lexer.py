"""A template's text cut into literal text and actions, and the actions into tokens.

As Go's text/template/parse does: `{{- ` and ` -}}` eat the white space beside them, and a comment is an action of its
own that leaves nothing behind.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_SPACE: Final = " \t\r\n"
_LEFT: Final = re.compile(r"\{\{(?P<trim>-(?=[ \t\r\n]))?")
_RIGHT: Final = re.compile(r"(?:(?P<trim>[ \t\r\n]+-)|[ \t\r\n]*)\}\}")
_COMMENT: Final = re.compile(r"[ \t\r\n]*/\*.*?\*/", re.DOTALL)
_TOKEN: Final = re.compile(
    r"""
      (?P<string> "(?: \\. | [^"\\\n] )*" )
    | (?P<raw> `[^`]*` )
    | (?P<char> '(?: \\. | [^'\\\n] )*' )
    | (?P<float> [+-]?[0-9][0-9_]*(?: \.[0-9] | [eE][+-]?[0-9] ) )
    | (?P<number> [+-]?[0-9][0-9a-zA-Z_]* )
    | (?P<variable> \$\w* )
    | (?P<field> \.[^\W\d]\w* )
    | (?P<dot> \. )
    | (?P<word> [^\W\d]\w* )
    | (?P<mark> :=|[=|(),] )
    """,
    re.VERBOSE,
)
_LONGEST_SHOWN: Final = 40  # characters of an action that a message repeats


class BadTemplate(ValueError):
    """Text that is no template, or one beyond what is understood here; says what was found."""


class Token(NamedTuple):
    """`kind` is a group's name of the expression above. `glued`: no white space stands before it."""

    kind: str
    text: str
    glued: bool


class Action(NamedTuple):
    """What stands between `{{` and `}}`."""

    source: str
    tokens: tuple[Token, ...]

    def error(self, problem: str, closed: bool = True) -> BadTemplate:
        """`closed`: its text has the braces that end it."""
        source = self.source if len(self.source) <= _LONGEST_SHOWN else self.source[: _LONGEST_SHOWN - 1] + "…"
        text = f"{{{{ {source} }}}}" if closed else f"{{{{ {source}".rstrip()
        return BadTemplate(f"{text}: {problem}")


def cut(text: str) -> Iterator[str | Action]:
    """Literal texts, none of them empty, and actions, in order. Raises BadTemplate."""
    at, trimmed = 0, False
    while (left := _LEFT.search(text, at)) is not None:
        literal = text[at : left.start()]
        literal = literal.lstrip(_SPACE) if trimmed else literal
        literal = literal.rstrip(_SPACE) if left["trim"] else literal
        if literal:
            yield literal
        action, right = _action(text, left.end())
        if action is not None:
            yield action
        at, trimmed = right.end(), right["trim"] is not None
    literal = text[at:].lstrip(_SPACE) if trimmed else text[at:]
    if literal:
        yield literal


def _action(text: str, start: int) -> tuple[Action | None, re.Match[str]]:
    """The action whose inside begins at `start`, None for a comment, and the delimiter that ends it."""
    comment = _COMMENT.match(text, start)
    if comment is not None:
        right = _RIGHT.match(text, comment.end())
        if right is None:
            raise Action(comment[0].strip(_SPACE), ()).error("found more than the comment, expected }} after it")
        return None, right
    tokens: list[Token] = []
    at = start
    while (right := _RIGHT.match(text, at)) is None:
        token = _token(text, start, at)
        tokens.append(Token(token.lastgroup or "", token[0].lstrip(_SPACE), token.start() == at))
        at = token.end()
    return Action(text[start : right.start()].strip(_SPACE), tuple(tokens)), right


def _token(text: str, start: int, at: int) -> re.Match[str]:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    token = _TOKEN.match(text, at)
    if token is not None:
        return token
    action = Action(text[start:at].strip(_SPACE), ())
    if at == len(text):
        raise action.error("found the end of the text, expected }}", closed=False)
    raise action.error(f"found {text[at]!r}, which no template has there, or a quote that is never closed")
