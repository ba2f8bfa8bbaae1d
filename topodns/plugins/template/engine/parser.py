"""Parser of templates: makes a `Compiled` template of literal text and actions, and resolves all names."""

from collections.abc import Iterator, Mapping
from typing import Final

from topodns.plugins.template.engine.expressions import TokenReader, VariableScope
from topodns.plugins.template.engine.lexer import Action, BadTemplate, cut
from topodns.plugins.template.engine.nodes import (
    Assignment,
    Break,
    Compiled,
    Continue,
    If,
    Node,
    Output,
    Range,
    Text,
    With,
)

MAX_TEXT: Final = 65_536  # characters; enough for the text of the longest record

_MAX_DEPTH: Final = 32  # nesting of blocks
_UNSUPPORTED: Final = frozenset({"define", "template", "block"})

Nodes = tuple[Node, ...]
Fieldset = Mapping[str, frozenset[str]]


def compile_template(text: str, known: Fieldset) -> Compiled:
    """Compile a template. Raises BadTemplate.

    `known`: the fields of the data, each with its subfields if it is a structure, else empty.
    """
    if len(text) > MAX_TEXT:
        raise BadTemplate(f"found {len(text)} characters, expected at most {MAX_TEXT}")
    scope = VariableScope(known)
    parser = _Parser(cut(text), scope)
    nodes = parser.whole()
    return Compiled(text, nodes, scope.slots, frozenset(scope.fields))


class _Parser:
    def __init__(self, pieces: Iterator[str | Action], scope: VariableScope) -> None:
        self._pieces = pieces
        self._scope = scope
        self._loops = 0
        self._depth = 0

    def whole(self) -> Nodes:
        nodes, stopped = self._nodes()
        if stopped is not None:
            raise stopped.error("found where no if, range or with is open")
        return nodes

    def _nodes(self) -> tuple[Nodes, TokenReader | None]:
        """The nodes up to an `end` or `else`, and a reader before that word; (nodes, None) at the end of the text."""
        nodes: list[Node] = []
        for piece in self._pieces:
            if isinstance(piece, str):
                nodes.append(Text(piece))
                continue
            words = TokenReader(piece, self._scope)
            if words.next_is("end") or words.next_is("else"):
                return tuple(nodes), words
            nodes.append(self._statement(words))
        return tuple(nodes), None

    def _statement(self, words: TokenReader) -> Node:
        keyword = words.keyword()
        if keyword in _UNSUPPORTED:
            raise words.error(f"found {keyword!r}, which topodns does not have")
        if keyword in ("if", "with", "range"):
            return self._block(keyword, words)
        if keyword in ("break", "continue"):
            words.expect_end()
            if not self._loops:
                raise words.error("found outside of a range")
            return Break() if keyword == "break" else Continue()
        return self._simple(words)

    def _simple(self, words: TokenReader) -> Node:
        assigned = words.assignment()
        expression = words.pipeline()
        words.expect_end()
        if assigned is None:
            return Output(expression)
        name, declares = assigned
        return Assignment(self._scope.declare(name) if declares else self._scope.slot(words.action, name), expression)

    def _block(self, keyword: str, words: TokenReader) -> Node:
        """The block from `if`, `with` or `range` to its `end`, which also ends the scope of its variables."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise words.error(f"found blocks inside blocks, more than {_MAX_DEPTH} deep")
        mark = self._scope.mark()
        node = self._range(words) if keyword == "range" else self._condition(keyword, words)
        self._scope.forget(mark)
        self._depth -= 1
        return node

    def _condition(self, keyword: str, words: TokenReader) -> Node:
        assigned = words.assignment()
        expression = words.pipeline()
        words.expect_end()
        slot = None
        if assigned is not None:
            name, declares = assigned
            slot = self._scope.declare(name) if declares else self._scope.slot(words.action, name)
        body, stopped = self._body(words, moves_dot=keyword == "with")
        otherwise = self._otherwise(keyword, words, stopped)
        if keyword == "if":
            return If(expression, slot, body, otherwise)
        return With(expression, slot, body, otherwise)

    def _range(self, words: TokenReader) -> Node:
        names = words.range_variables()
        expression = words.pipeline()
        words.expect_end()
        slots = [self._scope.declare(name) for name in names]
        self._loops += 1
        body, stopped = self._body(words, moves_dot=True)
        self._loops -= 1
        otherwise = self._otherwise("range", words, stopped)
        key = slots[0] if len(slots) == 2 else None
        return Range(expression, key, slots[-1] if slots else None, body, otherwise)

    def _body(self, owner: TokenReader, moves_dot: bool) -> tuple[Nodes, TokenReader]:
        mark = self._scope.mark()
        self._scope.moved_dots += moves_dot
        nodes, stopped = self._nodes()
        self._scope.moved_dots -= moves_dot
        self._scope.forget(mark)
        if stopped is None:
            raise owner.error("found no end, expected {{ end }}")
        return nodes, stopped

    def _otherwise(self, keyword: str, owner: TokenReader, stopped: TokenReader) -> Nodes:
        """The nodes of the `else` branch, up to the `end` of the block, which is taken; () if `stopped` is at `end`.

        `else if` in an `if` and `else with` in a `with` need no `end` of their own.
        """
        if stopped.keyword() == "end":
            stopped.expect_end()
            return ()
        if keyword != "range" and stopped.next_is(keyword):
            stopped.keyword()
            return (self._block(keyword, stopped),)
        stopped.expect_end()
        nodes, last = self._body(owner, moves_dot=False)
        if last.keyword() != "end":
            raise last.error("found a second else, expected {{ end }}")
        last.expect_end()
        return nodes
