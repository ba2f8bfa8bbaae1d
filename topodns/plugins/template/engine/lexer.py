"""Lexer of templates: splits the text into literal text and actions, and actions into tokens.

As in Go's text/template/parse, `{{- ` and ` -}}` trim the white space beside them, and a comment has delimiters of its
own; it is left out.
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
_LONGEST_SHOWN: Final = 40  # characters of an action in an error message


class BadTemplate(ValueError):
    """An invalid or unsupported template; the message says what was found."""


class TemplateToken(NamedTuple):
    """A token. `kind` is the name of a group in _TOKEN; `glued`: no white space precedes it."""

    kind: str
    text: str
    glued: bool


class Action(NamedTuple):
    """The text between `{{` and `}}`, and its tokens."""

    source: str
    tokens: tuple[TemplateToken, ...]

    def error(self, problem: str, closed: bool = True) -> BadTemplate:
        """An error with the action's text. `closed`: the text ends with `}}`."""
        source = self.source if len(self.source) <= _LONGEST_SHOWN else self.source[: _LONGEST_SHOWN - 1] + "…"
        text = f"{{{{ {source} }}}}" if closed else f"{{{{ {source}".rstrip()
        return BadTemplate(f"{text}: {problem}")


def cut(text: str) -> Iterator[str | Action]:
    """The trimmed, non-empty literal texts and the actions, in order, without comments. Raises BadTemplate."""
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
    """The action whose content begins at `start`, None for a comment, and the match of its closing delimiter."""
    comment = _COMMENT.match(text, start)
    if comment is not None:
        right = _RIGHT.match(text, comment.end())
        if right is None:
            raise Action(comment[0].strip(_SPACE), ()).error("found more than the comment, expected }} after it")
        return None, right
    tokens: list[TemplateToken] = []
    at = start
    while (right := _RIGHT.match(text, at)) is None:
        token = _token(text, start, at)
        tokens.append(TemplateToken(token.lastgroup or "", token[0].lstrip(_SPACE), token.start() == at))
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
