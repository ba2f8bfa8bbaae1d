"""A parsed template: what is written out, and the expressions in it. Variables are numbered, `$` is number 0."""

from dataclasses import dataclass

from topodns.resolve.template.values import Value


@dataclass(frozen=True, slots=True)
class Literal:
    value: Value


@dataclass(frozen=True, slots=True)
class Dot:
    """`.`, whatever `with` and `range` have made of it."""


@dataclass(frozen=True, slots=True)
class Variable:
    slot: int


@dataclass(frozen=True, slots=True)
class Fields:
    """`owner.first.second`."""

    owner: "Expression"
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple["Expression", ...]


Expression = Literal | Dot | Variable | Fields | Call


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
    """`slot`: the variable that holds the condition's value, None without one."""

    condition: Expression
    slot: int | None
    body: tuple["Node", ...]
    otherwise: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class With:
    """As `If`, and the value becomes the dot of the body."""

    value: Expression
    slot: int | None
    body: tuple["Node", ...]
    otherwise: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Range:
    """`key` and `element` are the variables that hold them."""

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
    """A whole template. `fields`: the first names of what it reads of its data."""

    text: str
    nodes: tuple[Node, ...]
    slots: int
    fields: frozenset[str]

    @property
    def constant(self) -> str | None:
        """What it renders to whatever the data; None where it looks."""
        texts = [node.text for node in self.nodes if isinstance(node, Text)]
        return "".join(texts) if len(texts) == len(self.nodes) else None
