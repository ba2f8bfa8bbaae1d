"""Tokens to nodes, by precedence climbing, with the precedences of expr-lang.

`not` and `!` bind closer than comparisons, as there: it is `not (name() matches 'x')` or `name() not matches 'x'`.
"""

import math
from collections.abc import Mapping
from typing import Final

from topodns.resolve.view.lexer import BadExpression, Token, tokenize
from topodns.resolve.view.nodes import Array, Binary, Call, Conditional, Literal, Logic, Node, Unary

MAX_NESTING: Final = 64
MAX_INTEGER: Final = 2**63 - 1

_SPELLINGS: Final[Mapping[str, str]] = {"||": "or", "&&": "and", "!": "not"}
_BINARY: Final[Mapping[str, int]] = {
    **{"or": 10, "and": 15},
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in", "matches", "contains", "startsWith", "endsWith"), 20),
    **{"+": 30, "-": 30, "*": 60, "/": 60, "%": 60},
}
_UNARY: Final[Mapping[str, int]] = {"not": 50, "-": 90, "+": 90}
_NEGATED: Final = frozenset({"in", "matches", "contains", "startsWith", "endsWith"})  # those that follow `not`
_CONSTANTS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "nil": None}
_BASES: Final[Mapping[str, int]] = {"0x": 16, "0o": 8, "0b": 2}


def parse_expression(text: str) -> Node:
    """The expression that `text` is. Raises BadExpression."""
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
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
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
        """All of it up to a comma, a closing bracket, a colon or the end."""
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
        """Operands and the operators between them that bind at least so closely."""
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
        """What stands next, under its one name; "" for what is no operator. `not` of `not in` is looked through."""
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

    def _bracket(self, opening: Token) -> Node:
        if opening.text == "[":
            return Array(self._list("]"), opening.at)
        node = self._expression()
        self._expect(")", "for a '('")
        return node

    def _named(self, word: Token) -> Node:
        if word.text in _CONSTANTS:
            return Literal(_CONSTANTS[word.text], word.at)
        if not self._at("("):
            advice = "a function such as name(), or a text in single quotes: double ones are the Corefile's own"
            raise BadExpression(f"found {word}, expected {advice}")
        self._next += 1
        return Call(word.text, self._list(")"), word.at)

    def _list(self, closing: str) -> tuple[Node, ...]:
        """Expressions with commas between them, and perhaps one after them, up to the bracket that closes them."""
        items: list[Node] = []
        while not self._at(closing):
            items.append(self._expression())
            if not self._at(closing):
                self._expect(",", f"or {closing!r}")
        self._next += 1
        return tuple(items)


def _number(token: Token) -> int | float:
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


def _within(token: Token, number: int) -> int:
    """The integer, which has to be one of 64 bits. (66 digits: so many has the largest in base 2, with its prefix.)"""
    if number > MAX_INTEGER:
        raise BadExpression(f"found {token}, expected an integer of at most {MAX_INTEGER}")
    return number
