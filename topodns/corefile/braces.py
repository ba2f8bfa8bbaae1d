"""Missing braces of a Corefile, found by its indentation: one error each, at the line where the brace belongs.

A text whose braces balance is left as it is, however it is indented.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from topodns.corefile.errors import Note
from topodns.corefile.lexer import Token

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
