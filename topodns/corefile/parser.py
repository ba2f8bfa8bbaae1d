"""The Corefile parser: tokens to server blocks with keys, and directives with arguments and bodies, of any name.

The only server block of a file may omit its braces. `{` at the end of a directive's line opens its body. Missing braces
are found by the indentation: one error each, at the line where the brace belongs. A text whose braces balance is left
as it is, however it is indented.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from topodns.corefile.errors import (
    ConfigError,
    Note,
    is_slip,
    may_show_key,
    raise_it,
    shown,
    shown_name,
    shown_word,
    unshown,
    without_secrets,
)
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
        """The error of this line; of an imported file, with its arguments only as `errors.without_secrets` has them."""
        if self.imported:
            arguments = (*self.args, *(word for line in self.body for word in line.args))
            problem = without_secrets(problem, arguments, self.name)
        return ConfigError(self.file, self.line, problem)

    def shown_name(self, options: Collection[str] = ()) -> str:
        """The name, which is none of `options`, quoted for a message: see `errors.shown_name`."""
        return shown_name(self.name, self.imported and not self.known, options)

    def shown_argument(self, text: str) -> str:
        """An argument quoted for a log line; of an imported file only its length if it may be a secret."""
        return without_secrets(shown(text), (text,)) if self.imported else shown(text)

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


def _names_nothing(name: str) -> bool:
    return False


def parse_blocks(
    tokens: Iterable[Token], is_known: Callable[[str], bool] = _names_nothing, note: Note = raise_it
) -> list[CorefileBlock]:
    """The server blocks of a Corefile, in order. `is_known`: whether a word names a directive.

    `note` takes each error, after which the next directive or block follows; a block without its end is left out.
    """

    def shown_token(token: Token) -> str:
        """A word for a message: of an imported file only if it is known, or like a zone."""
        text = token.text
        if token.imported and not (token.brace or is_known(text) or may_show_key(text)):
            return unshown(text)
        return shown_word(text)

    parser = _Parser(balanced(list(tokens), shown_token, note), is_known, shown_token, note)
    blocks = []
    while parser.more():
        try:
            blocks.append(parser.block())
        except ConfigError as problem:
            note(problem)
    return blocks


class _Parser:
    def __init__(
        self, tokens: Sequence[Token], is_known: Callable[[str], bool], shown: Callable[[Token], str], note: Note
    ) -> None:
        self._tokens = tokens
        self._is_known = is_known
        self._shown = shown
        self._note = note
        self._at = 0

    def more(self) -> bool:
        return self._at < len(self._tokens)

    def block(self) -> CorefileBlock:
        """Take a block. Raises ConfigError behind what is none."""
        start = self._tokens[self._at]
        keys = self._keys()
        if self._opens():
            self._at += 1
            lines = self._body(keys[0] if keys else start, 0)
        elif keys or not start.closes:
            lines = self._lines_to_the_end()
        else:
            self._at += 1
        if not keys:
            expected = "the zones of a server block, such as '.:53'"
            raise start.error(f"found {self._shown(start)}, expected {expected}")
        return CorefileBlock(keys, lines)

    def _keys(self) -> tuple[Token, ...]:
        """Take the keys, separated by blanks or commas, up to a brace or the end of a line without a final comma."""
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
            self._note(self._tokens[self._at - 1].error("found a comma, expected another zone after it"))
        return tuple(keys)

    def _opens(self) -> bool:
        return self.more() and self._tokens[self._at].opens

    def _lines_to_the_end(self) -> tuple[Directive, ...]:
        lines: list[Directive] = []
        while self.more():
            if self._tokens[self._at].closes:
                self._at += 1
                raise self._tokens[self._at - 1].error("found '}', but no '{' is open")
            self._add_line(lines, 0)
        return tuple(lines)

    def _body(self, owner: Token, depth: int) -> tuple[Directive, ...]:
        """Take the lines after a `{`, and the `}` that belongs to it. Raises ConfigError.

        `owner`: the token that an error names. `depth`: how many bodies of directives this one is in, itself included.
        """
        if depth > MAX_NESTING:
            self._at = len(self._tokens)
            raise owner.error(f"found bodies inside bodies, more than {MAX_NESTING} deep")
        lines: list[Directive] = []
        while self.more():
            if self._tokens[self._at].closes:
                self._at += 1
                return tuple(lines)
            self._add_line(lines, depth)
        raise self._unclosed(owner, lines, depth)

    def _unclosed(self, owner: Token, lines: list[Directive], depth: int) -> ConfigError:
        """The error for a body without its `}`, which no indentation shows.

        If a directive is in a directive's body, then at that one, whose `}` is the missing one.
        """
        for inner, stray in _strays(lines):
            return inner.error(f"expected '}}' to end {inner.shown_name()}, found {_directive_at(stray)}")
        strays = filter(_is_stray, lines if depth else ())
        found = next(map(_directive_at, strays), "the end of the file")
        return owner.error(f"expected '}}' to end {self._shown(owner)}, found {found}")

    def _add_line(self, lines: list[Directive], depth: int) -> None:
        """Take a line, and add it to those before it in its body."""
        if not self._tokens[self._at].brace:
            lines.append(self._line(depth))
            return
        brace = self._tokens[self._at]
        self._note(
            brace.error("found '{' at the start of a line, expected it at the end of the line that it belongs to")
        )
        self._at += 1
        body = self._body(brace, depth + 1)
        if lines:
            lines[-1] = replace(lines[-1], body=body)

    def _line(self, depth: int) -> Directive:
        name = self._tokens[self._at]
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


_MOST: Final = 10  # missing braces of one Corefile that are looked for; each costs a look at all of its tokens
_DEEPEST: Final = 11  # bodies inside bodies; a Corefile may have fewer


def balanced(tokens: Sequence[Token], shown: Callable[[Token], str], note: Note) -> Sequence[Token]:
    """The tokens with the braces that their indentation shows; `note` takes an error for each that differs.

    A `}` too many is one of a word such as `health{`, or is left out if it is not in the column of the line that it
    would end. A `}` is missing before a line that is indented no deeper than the one that opened its body.
    `shown`: a token for a message.
    """
    for _ in range(_MOST):
        surplus = _surplus(tokens)
        if surplus is None:
            break
        before = tokens
        tokens = _with_space(tokens, surplus, shown, note) or _without_brace(tokens, surplus, note) or tokens
        if tokens is before:
            break
    missing = sum(token.opens - token.closes for token in tokens)
    for _ in range(missing if missing <= _MOST else 0):
        place = min(_breaks(tokens), default=None)
        if place is None:
            break
        tokens = _with_brace(tokens, *place, shown, note)
    return tokens


def _surplus(tokens: Sequence[Token]) -> int | None:
    """The position of the first `}` that ends no body."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += token.opens - token.closes
        if depth < 0:
            return at
    return None


def _with_space(tokens: Sequence[Token], end: int, shown: Callable[[Token], str], note: Note) -> Sequence[Token] | None:
    """The tokens with the last word before `end` that ends in `{` as a word and a brace; None without such a word."""
    at = next((at for at in reversed(range(end)) if tokens[at].text.endswith("{") and not tokens[at].brace), None)
    if at is None:
        return None
    word = tokens[at]
    note(word.error(f"found {shown(word)}, expected a space before its '{{'"))
    brace = Token("{", word.file, word.line, brace=True)
    return [*tokens[:at], replace(word, text=word.text[:-1]), brace, *tokens[at + 1 :]]


def _without_brace(tokens: Sequence[Token], end: int, note: Note) -> Sequence[Token] | None:
    """The tokens without the first `}` up to `end` that is not in the column of the line that it ends; None without."""
    for opening, closing in sorted(_bodies(tokens[:end]), key=lambda body: body[1] or end):
        owner, brace = tokens[_owner(tokens, opening)], tokens[closing if closing is not None else opening]
        if brace.closes and _after(owner, brace) and brace.indent not in (None, owner.indent):
            note(brace.error("found '}', but no '{' of its column is open"))
            return [token for token in tokens if token is not brace]
    return None


def _with_brace(
    tokens: Sequence[Token], at: int, opening: int, shown: Callable[[Token], str], note: Note
) -> Sequence[Token]:
    """The tokens with a `}` before the position `at`, for the `{` at `opening`."""
    owner, found = tokens[_owner(tokens, opening)], tokens[at]
    before = "another '}' before this one" if found.closes else "'}' before it"
    note(found.error(f"found {shown(found)}, expected {before} to end {shown(owner)} of line {owner.line}"))
    return [*tokens[:at], Token("}", found.file, found.line, brace=True), *tokens[at:]]


def _breaks(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """(position of the token before which a `}` is missing, position of the `{`) for each body without its own `}`."""
    for opening, closing in _bodies(tokens):
        owner = tokens[_owner(tokens, opening)]
        end = tokens[closing] if closing is not None else None
        if owner.indent is None or (end is not None and end.indent in (None, owner.indent)):
            continue
        rest = range(opening + 1, len(tokens) if closing is None else closing + 1)
        lines = [at for at in rest if tokens[at].indent is not None and _after(owner, tokens[at])]
        indented = _is_deeper(tokens[lines[0]], owner) if lines else False
        if not indented and not _is_nested(tokens, opening):
            continue  # a text without indentation
        found = next((at for at in lines if not _is_deeper(tokens[at], owner)), None)
        if found is not None:
            yield found, opening


def _is_nested(tokens: Sequence[Token], opening: int) -> bool:
    """Whether the line of this `{` is indented itself."""
    return bool(tokens[_owner(tokens, opening)].indent)


def _bodies(tokens: Sequence[Token]) -> Iterator[tuple[int, int | None]]:
    """(position of a `{`, that of the `}` that ends it; None without one)."""
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token.opens:
            opened.append(at)
        elif token.closes and opened:
            if len(opened) <= _DEEPEST:
                yield opened[-1], at
            opened.pop()
    for at in opened:
        yield at, None


def _owner(tokens: Sequence[Token], opening: int) -> int:
    """The position of the first word of the line of a `{`; of one on a line of its own, that of the line before."""
    at = opening - 1 if tokens[opening].first and opening else opening
    while at and not tokens[at].first:
        at -= 1
    return at


def _after(owner: Token, token: Token) -> bool:
    """Whether the token is below the owner in the same file: one of a snippet is not."""
    return token.file == owner.file and token.line > owner.line


def _is_deeper(token: Token, owner: Token) -> bool:
    """Whether a line is one of the owner's body by its indentation; a `}` of the owner's column ends that body."""
    assert token.indent is not None
    assert owner.indent is not None
    return token.indent >= owner.indent if token.closes else token.indent > owner.indent
