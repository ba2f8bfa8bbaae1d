"""Renders a template with data, in bounded time and space."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from topodns.plugins.template.engine.functions import AND, OR, apply
from topodns.plugins.template.engine.nodes import (
    Assignment,
    Break,
    Compiled,
    Continue,
    Dot,
    Expression,
    Fields,
    If,
    Node,
    Output,
    Range,
    TemplateCall,
    TemplateLiteral,
    Text,
    Variable,
    With,
)
from topodns.plugins.template.engine.values import RenderFailed, Struct, Value, field_of, is_true, kind, printed

MAX_OUTPUT: Final = 65_536  # characters
MAX_STEPS: Final = 10_000  # nodes and expressions evaluated, and rounds of loops

_STOPS: Final[Mapping[str, Callable[[Value], bool]]] = {AND: lambda value: not is_true(value), OR: is_true}


def render(template: Compiled, data: Struct) -> str:
    """The text for this data. Raises RenderFailed, also above MAX_OUTPUT and MAX_STEPS."""
    run = _Run(template.slots, data)
    run.write(template.nodes, data)
    return "".join(run.parts)


class _Run:
    def __init__(self, slots: int, data: Struct) -> None:
        self.parts: list[str] = []
        self._slots: list[Value] = [data] + [None] * (slots - 1)
        self._size = 0
        self._steps = 0

    def write(self, nodes: Iterable[Node], dot: Value) -> Break | Continue | None:
        """Render the nodes to `parts`. Returns the `break` or `continue` that ended this early, None if none did."""
        for node in nodes:
            self._count()
            match node:
                case Text(text):
                    self._put(text)
                case Output(expression):
                    self._put(printed(self._value(expression, dot)))
                case Assignment(slot, expression):
                    self._slots[slot] = self._value(expression, dot)
                case Break() | Continue():
                    return node
                case _:
                    stopped = self._block(node, dot)
                    if stopped is not None:
                        return stopped
        return None

    def _block(self, node: If | With | Range, dot: Value) -> Break | Continue | None:
        if isinstance(node, Range):
            return self._range(node, dot)
        value = self._value(node.condition if isinstance(node, If) else node.value, dot)
        if node.slot is not None:
            self._slots[node.slot] = value
        if not is_true(value):
            return self.write(node.otherwise, dot)
        return self.write(node.body, dot if isinstance(node, If) else value)

    def _range(self, node: Range, dot: Value) -> Break | Continue | None:
        value = self._value(node.value, dot)
        empty = True
        for key, element in _elements(value):
            empty = False
            if node.key is not None:
                self._slots[node.key] = key
            if node.element is not None:
                self._slots[node.element] = element
            self._count()
            if isinstance(self.write(node.body, element), Break):
                break
        return self.write(node.otherwise, dot) if empty else None

    def _value(self, expression: Expression, dot: Value) -> Value:
        self._count()
        match expression:
            case TemplateLiteral(value):
                return value
            case Dot():
                return dot
            case Variable(slot):
                return self._slots[slot]
            case Fields(owner, names):
                value = self._value(owner, dot)
                for name in names:
                    value = field_of(value, name)
                return value
            case TemplateCall(function, arguments):
                return apply(function, self._arguments(function, arguments, dot))

    def _arguments(self, function: str, expressions: tuple[Expression, ...], dot: Value) -> list[Value]:
        """Values of the arguments; for `and` and `or` up to and including the one that decides, the call's result."""
        stops = _STOPS.get(function)
        values: list[Value] = []
        for expression in expressions:
            values.append(self._value(expression, dot))
            if stops is not None and stops(values[-1]):
                break
        return values

    def _put(self, text: str) -> None:
        self._size += len(text)
        if self._size > MAX_OUTPUT:
            raise RenderFailed(f"more than {MAX_OUTPUT} characters")
        self.parts.append(text)

    def _count(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise RenderFailed(f"more than {MAX_STEPS} steps")


def _elements(value: Value) -> Iterator[tuple[Value, Value]]:
    """The (key, element) pairs for `range` of a list, of a map in key order, or of the integers from 0 below a number.

    Raises RenderFailed for other values.
    """
    if isinstance(value, Struct | str | bool) or not isinstance(value, tuple | Mapping | int):
        raise RenderFailed(f"range: found {kind(value)}, expected a list, a map or an integer")
    if isinstance(value, Mapping):
        return ((key, value[key]) for key in sorted(value))
    if isinstance(value, int):
        return ((number, number) for number in range(value))
    return iter(enumerate(value))
