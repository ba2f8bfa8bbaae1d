"""A parsed expression. `at` is where it stands: how many characters come before its operator or its first token."""

from dataclasses import dataclass

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
    """`and` or `or` of two terms and more: flat, since lists of alternatives grow long."""

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
