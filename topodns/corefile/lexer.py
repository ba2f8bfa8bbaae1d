"""The Corefile lexer: text to tokens, as CoreDNS's Caddyfile lexer splits it.

Whitespace separates words; `#` starts a comment, also in the middle of a word; a word that starts with a double quote
ends with the next one, may span lines, and has the escape `\\"` only. Other quotes have no meaning.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from topodns.corefile.errors import ConfigError, Note, raise_it
from topodns.files.text import foreign_octet

_TOKEN: Final = re.compile(
    r"""
      (?P<comment> \# [^\n]* )
    | " (?P<quoted> (?: \\. | [^"\\] )* ) "
    | (?P<unclosed> " [^\n]* )
    | (?P<word> [^\s#]+ )
    """,
    re.VERBOSE | re.DOTALL,
)
MAX_WORD: Final = 1 << 16  # characters, as many as a TXT record may have; what reads a word may be quadratic
_QUOTED_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ENVIRONMENT: Final = re.compile(r"\{%(?P<percent>[^{}%]+)%\}|\{\$(?P<dollar>[^{}]+)\}")


@dataclass(frozen=True, slots=True)
class Token:
    """A word or a brace, with the line that it starts on. `first`: first of its line, or directly after a brace.

    `indent`: the column of the first one of a line, from 0, where tabs go to multiples of 8; None for all others.
    """

    text: str
    file: str
    line: int
    first: bool = False
    brace: bool = False  # an unquoted "{" or "}" on its own
    imported: bool = False  # of an imported file
    indent: int | None = None

    @property
    def opens(self) -> bool:
        return self.brace and self.text == "{"

    @property
    def closes(self) -> bool:
        return self.brace and self.text == "}"

    def error(self, problem: str) -> ConfigError:
        return ConfigError(self.file, self.line, problem)


def tokenize(text: str, file: str, imported: bool = False, note: Note = raise_it) -> Iterator[Token]:
    """The tokens of `text`, of an imported file or not.

    `note` takes the errors of quotes that are not closed, which end with their line then, and of octets that are no
    UTF-8 outside comments. Raises ConfigError for a word of more than MAX_WORD characters.
    """
    line, at, first = 1, 0, True
    for match in _TOKEN.finditer(text):
        breaks = text.count("\n", at, match.start())
        line, at, first = line + breaks, match.end(), first or breaks > 0
        if match["comment"] is not None:
            continue
        if match["unclosed"] is not None:
            note(ConfigError(file, line, "found a double quote that is never closed, expected another one"))
        if len(match[0]) > MAX_WORD:
            found = f"found a word of {len(match[0])} characters"
            raise ConfigError(file, line, f"{found}, expected at most {MAX_WORD}")
        token = _token(match, file, line, first, imported)
        if octet := foreign_octet(token.text):
            note(token.error(octet.problem))
        yield token
        line, first = line + match[0].count("\n"), token.brace


def _token(match: re.Match[str], file: str, line: int, first: bool, imported: bool) -> Token:
    quoted: str | None = match["quoted"]
    indent = _indent(match) if first else None
    if quoted is not None:
        return Token(_QUOTED_ESCAPE.sub(_unescape, quoted), file, line, first, imported=imported, indent=indent)
    word = match["word"] or match["unclosed"]
    return Token(word, file, line, first, word in ("{", "}"), imported, indent)


def _indent(match: re.Match[str]) -> int | None:
    before = match.string[match.string.rfind("\n", 0, match.start()) + 1 : match.start()]
    return None if before.strip() else len(before.expandtabs())


def _unescape(match: re.Match[str]) -> str:
    return '"' if match[1] == '"' else match[0]


def expand_environment(text: str, environment: Mapping[str, str]) -> str:
    """`text` with `{$NAME}` and `{%NAME%}` replaced by their values, or by "" if unset; not recursive."""
    if "{" not in text:
        return text
    return _ENVIRONMENT.sub(lambda match: environment.get(_variable(match), ""), text)


def unset_variables(text: str, environment: Mapping[str, str]) -> list[str]:
    """The names of the variables in `text` for which `expand_environment` has no value, in order."""
    if "{" not in text:
        return []
    names = (_variable(match) for match in _ENVIRONMENT.finditer(text))
    return [name for name in names if name not in environment]


def _variable(match: re.Match[str]) -> str:
    name: str = match["percent"] or match["dollar"]
    return name
