"""Syntax tree of a template: nodes and expressions. Variables are numbered slots, `$` is slot 0."""

from collections.abc import Mapping
from dataclasses import dataclass

from topodns.plugins.template.engine.values import Value


@dataclass(frozen=True, slots=True)
class TemplateLiteral:
    value: Value


@dataclass(frozen=True, slots=True)
class Dot:
    """`.`, the data or the value set by the innermost `with` or `range`."""


@dataclass(frozen=True, slots=True)
class Variable:
    slot: int


@dataclass(frozen=True, slots=True)
class Fields:
    """`owner.first.second`."""

    owner: "Expression"
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TemplateCall:
    function: str
    arguments: tuple["Expression", ...]


Expression = TemplateLiteral | Dot | Variable | Fields | TemplateCall


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Output:
    expression: Expression


@dataclass(frozen=True, slots=True)
class Assignment:
    slot: int
    expression: Expression


@dataclass(frozen=True, slots=True)
class If:
    """`if`. `slot`: the variable assigned the condition's value, None without one."""

    condition: Expression
    slot: int | None
    body: tuple["Node", ...]
    otherwise: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class With:
    """`with`: as `If`, and the value becomes the dot in the body."""

    value: Expression
    slot: int | None
    body: tuple["Node", ...]
    otherwise: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Range:
    """`range`. `key` and `element`: the slots of its variables, None without one."""

    value: Expression
    key: int | None
    element: int | None
    body: tuple["Node", ...]
    otherwise: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Break:
    pass


@dataclass(frozen=True, slots=True)
class Continue:
    pass


Node = Text | Output | Assignment | If | With | Range | Break | Continue


@dataclass(frozen=True, slots=True)
class Compiled:
    """A whole template. `slots`: number of variables with `$`; `fields`: top-level fields of the data that it reads."""

    text: str
    nodes: tuple[Node, ...]
    slots: int
    fields: frozenset[str]

    def filled(self, values: Mapping[str, str]) -> str | None:
        """The rendered text if each action is one of these fields of the data, with their values; else None.

        Without values: the text of a template without actions.
        """
        texts = [_filled(node, values) for node in self.nodes]
        known = [text for text in texts if text is not None]
        return "".join(known) if len(known) == len(texts) else None


def _filled(node: Node, values: Mapping[str, str]) -> str | None:
    match node:
        case Text(text):
            return text
        case Output(Fields(Variable(0), (name,))):
            return values.get(name)
    return None
