"""The Corefile parser: tokens to server blocks with keys, and directives with arguments and bodies, of any name.

The only server block of a file may omit its braces. `{` at the end of a directive's line opens its body.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from topodns.corefile.errors import ConfigError, is_slip, may_show_key, shown_name, shown_word, unshown
from topodns.corefile.lexer import Token

_OPTIONS_TOO: Final = frozenset({"autopath", "federation", "push", "reload", "tls", "transfer"})  # of other directives
MAX_NESTING: Final = 10  # of bodies; CoreDNS's own directives need three


@dataclass(frozen=True, slots=True)
class Directive:
    """A directive or option: one line of a block or body, with its name, its arguments, and its own body."""

    name: str
    args: tuple[str, ...]
    body: tuple["Directive", ...]
    file: str
    line: int
    known: bool = False  # the name is one of a directive
    imported: bool = False  # of an imported file

    @property
    def place(self) -> str:
        """FILE:LINE."""
        return f"{self.file}:{self.line}"

    def error(self, problem: str) -> ConfigError:
        return ConfigError(self.file, self.line, problem)

    def shown_name(self, options: Collection[str] = ()) -> str:
        """The name, which is none of `options`, quoted for a message: see `errors.shown_name`."""
        return shown_name(self.name, self.imported and not self.known, options)

    @property
    def missing_brace(self) -> str:
        """The end of a message about a line that is no option: a question if it is a directive, else ""."""
        return "; is a '}' missing above?" if _is_stray(self) else ""

    def hides_name(self, options: Collection[str] = ()) -> bool:
        """Whether `shown_name` shows only the length because of the import."""
        return self.imported and not self.known and not is_slip(self.name, options)


@dataclass(frozen=True, slots=True)
class CorefileBlock:
    """A server block. Keys are tokens, so that errors have their file and line."""

    keys: tuple[Token, ...]
    directives: tuple[Directive, ...]

    @property
    def file(self) -> str:
        return self.keys[0].file

    @property
    def line(self) -> int:
        return self.keys[0].line


def parse_blocks(tokens: Iterable[Token], is_known: Callable[[str], bool] = lambda name: False) -> list[CorefileBlock]:
    """The server blocks of a Corefile, in order. `is_known`: whether a word names a directive. Raises ConfigError."""
    parser = _Parser(tokens, is_known)
    blocks = []
    while parser.more():
        blocks.append(parser.block())
    return blocks


class _Parser:
    def __init__(self, tokens: Iterable[Token], is_known: Callable[[str], bool]) -> None:
        self._tokens = list(tokens)
        self._is_known = is_known
        self._at = 0

    def more(self) -> bool:
        return self._at < len(self._tokens)

    def block(self) -> CorefileBlock:
        keys = self._keys()
        if not self._opens():
            return CorefileBlock(keys, self._lines_to_the_end())
        self._at += 1
        return CorefileBlock(keys, self._body(keys[0], 0))

    def _keys(self) -> tuple[Token, ...]:
        """Take the keys, separated by blanks or commas, up to a brace or the end of a line without a final comma.

        Raises ConfigError without any key, or if a comma is the end.
        """
        keys: list[Token] = []
        start, comma = self._tokens[self._at], False
        while self.more() and not self._tokens[self._at].brace:
            token = self._tokens[self._at]
            if token.first and token is not start and not comma:
                break
            keys.extend(_split_keys(token))
            comma = token.text.endswith(",")
            self._at += 1
        if comma:
            raise self._previous().error("found a comma, expected another zone after it")
        if not keys:
            expected = f"the zones of a server block, such as '.:53'{self._unspaced_brace()}"
            raise start.error(f"found {self._shown(start)}, expected {expected}")
        return tuple(keys)

    def _shown(self, token: Token) -> str:
        """A key or a directive's name for a message: of an imported file only if it is known, or like a zone."""
        text = token.text
        if token.imported and not (token.brace or self._is_known(text) or may_show_key(text)):
            return unshown(text)
        return shown_word(text)

    def _previous(self) -> Token:
        return self._tokens[self._at - 1]

    def _opens(self) -> bool:
        return self.more() and self._tokens[self._at].opens

    def _lines_to_the_end(self) -> tuple[Directive, ...]:
        lines: list[Directive] = []
        while self.more():
            if self._tokens[self._at].closes:
                raise self._tokens[self._at].error(f"found '}}', but no '{{' is open{self._unspaced_brace()}")
            lines.append(self._line(0))
        return tuple(lines)

    def _unspaced_brace(self) -> str:
        """The end of a message about an unexpected brace: the last word before it that ends in `{` opens no body."""
        words = (token for token in reversed(self._tokens[: self._at]) if token.text.endswith("{") and not token.brace)
        word = next(words, None)
        return f"; {self._shown(word)} at {word.file}:{word.line} needs a space before its '{{'" if word else ""

    def _body(self, owner: Token, depth: int) -> tuple[Directive, ...]:
        """Take the lines after a `{`, and the `}` that belongs to it. Raises ConfigError.

        `owner`: the token that an error names. `depth`: how many bodies of directives this one is in, itself included.
        """
        if depth > MAX_NESTING:
            raise owner.error(f"found bodies inside bodies, more than {MAX_NESTING} deep")
        lines: list[Directive] = []
        while self.more():
            if self._tokens[self._at].closes:
                self._at += 1
                return tuple(lines)
            lines.append(self._line(depth))
        raise self._unclosed(owner, lines, depth)

    def _unclosed(self, owner: Token, lines: list[Directive], depth: int) -> ConfigError:
        """The error for a body without its `}`.

        If a directive is in a directive's body, then at that one, whose `}` is the missing one.
        """
        for inner, stray in _strays(lines):
            return inner.error(f"expected '}}' to end {inner.shown_name()}, found {_directive_at(stray)}")
        strays = filter(_is_stray, lines if depth else ())
        found = next(map(_directive_at, strays), "the end of the file")
        return owner.error(f"expected '}}' to end {self._shown(owner)}, found {found}")

    def _line(self, depth: int) -> Directive:
        name = self._tokens[self._at]
        if name.brace:
            raise name.error("found '{' at the start of a line, expected it at the end of the line that it belongs to")
        self._at += 1
        args = []
        while self.more() and not (token := self._tokens[self._at]).first and not token.brace:
            args.append(token.text)
            self._at += 1
        known = self._is_known(name.text)
        return Directive(name.text, tuple(args), self._body_of(name, depth), name.file, name.line, known, name.imported)

    def _body_of(self, name: Token, depth: int) -> tuple[Directive, ...]:
        if not self._opens() or self._tokens[self._at].first:
            return ()
        self._at += 1
        return self._body(name, depth + 1)


def _strays(lines: Iterable[Directive]) -> Iterator[tuple[Directive, Directive]]:
    """(directive, line of its body that is a directive), in order, those in bodies first."""
    for line in lines:
        yield from _strays(line.body)
        yield from ((line, inner) for inner in line.body if _is_stray(inner))


def _is_stray(line: Directive) -> bool:
    return line.known and line.name not in _OPTIONS_TOO


def _directive_at(line: Directive) -> str:
    return f"the directive '{line.name}' at {line.place}{line.missing_brace}"


def _split_keys(token: Token) -> list[Token]:
    words = (word for word in token.text.split(",") if word)
    return [replace(token, text=word, first=False) for word in words]
