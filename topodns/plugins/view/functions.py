"""The operators between two values: which kinds they take, what kind they give, and what they do.

Integers are those of Python: they do not wrap around at 64 bits as expr-lang's do.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from topodns.resolve.view.functions import Kind

Apply = Callable[[Any, Any], Any]
"""Takes two values of the kinds that the operator was looked up for."""

_NUMBERS: Final = frozenset({Kind.INTEGER, Kind.FLOAT})


class Operator(NamedTuple):
    """`expected` is how a message says what it takes."""

    result: Callable[[Kind, Kind], Kind | None]  # None: not for these
    apply: Apply
    expected: str


def comparable(left: Kind, right: Kind) -> bool:
    """Whether expr-lang compares values of these kinds with `==`."""
    return left is right or {left, right} <= _NUMBERS or Kind.NIL in (left, right)


def _equality(left: Kind, right: Kind) -> Kind | None:
    return Kind.BOOLEAN if comparable(left, right) else None


def _order(left: Kind, right: Kind) -> Kind | None:
    ordered = left is right is Kind.STRING or {left, right} <= _NUMBERS
    return Kind.BOOLEAN if ordered else None


def _search(left: Kind, right: Kind) -> Kind | None:
    return Kind.BOOLEAN if left is right is Kind.STRING else None


def _number(left: Kind, right: Kind) -> Kind | None:
    if not {left, right} <= _NUMBERS:
        return None
    return Kind.FLOAT if Kind.FLOAT in (left, right) else Kind.INTEGER


def _sum(left: Kind, right: Kind) -> Kind | None:
    return Kind.STRING if left is right is Kind.STRING else _number(left, right)


def _quotient(left: Kind, right: Kind) -> Kind | None:
    return Kind.FLOAT if {left, right} <= _NUMBERS else None


def _remainder(left: Kind, right: Kind) -> Kind | None:
    return Kind.INTEGER if left is right is Kind.INTEGER else None


def _truncated_remainder(left: int, right: int) -> int:
    """Go's `%`: with the sign of the left one."""
    remainder = abs(left) % abs(right)
    return remainder if left >= 0 else -remainder


OPERATORS: Final[Mapping[str, Operator]] = {
    "==": Operator(_equality, operator.eq, "two of one kind"),
    "!=": Operator(_equality, operator.ne, "two of one kind"),
    "<": Operator(_order, operator.lt, "two numbers or two strings"),
    "<=": Operator(_order, operator.le, "two numbers or two strings"),
    ">": Operator(_order, operator.gt, "two numbers or two strings"),
    ">=": Operator(_order, operator.ge, "two numbers or two strings"),
    "contains": Operator(_search, operator.contains, "two strings"),
    "startsWith": Operator(_search, str.startswith, "two strings"),
    "endsWith": Operator(_search, str.endswith, "two strings"),
    "+": Operator(_sum, operator.add, "two numbers or two strings"),
    "-": Operator(_number, operator.sub, "two numbers"),
    "*": Operator(_number, operator.mul, "two numbers"),
    "/": Operator(_quotient, operator.truediv, "two numbers"),
    "%": Operator(_remainder, _truncated_remainder, "two integers"),
}
