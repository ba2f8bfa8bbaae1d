"""Compiler of expressions: type-checks the nodes of the syntax tree and makes closures of them."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, assert_never

from topodns.dns.addresses import BadAddress, NetworkList, parse_address, parse_cidr
from topodns.plugins.view.functions import FUNCTIONS, OPERATORS, ValueType, ViewQuery, comparable
from topodns.plugins.view.parser import (
    MAX_NESTING,
    Array,
    BadExpression,
    Binary,
    Call,
    Conditional,
    Literal,
    Logic,
    Node,
    Unary,
    Value,
    parse_expression,
)
from topodns.query.metadata import ReaderOf, is_label, without_metadata
from topodns.query.regex import BadPattern, compile_pattern

Run = Callable[[ViewQuery], Any]
"""Computes a value of the `ValueType` determined when it was compiled. Raises BadAddress and ArithmeticError."""

_INCIDR: Final = "incidr"
_METADATA: Final = "metadata"


class Expression(NamedTuple):
    """A compiled condition, evaluated by `holds`.

    `of_client`: whether it calls client_ip(), port() or id(), so that it may differ between otherwise equal messages.
    `labels`: those of metadata that it reads.
    """

    run: Run
    of_client: bool
    labels: frozenset[str] = frozenset()

    def holds(self, question: ViewQuery) -> bool:
        """Whether the condition is true for the query; false if it cannot be computed, as in CoreDNS."""
        try:
            return bool(self.run(question))
        except (BadAddress, ArithmeticError):
            return False


def compile_expression(text: str, reader_of: ReaderOf = without_metadata) -> Expression:
    """Compile a condition. Raises BadExpression, also for an expression that is not boolean."""
    compiler = _Compiler(reader_of)
    kind, run = compiler.compile(parse_expression(text))
    if kind is not ValueType.BOOLEAN:
        raise BadExpression(f"found {kind.value}, expected a condition: something that is true or false")
    return Expression(run, any(FUNCTIONS[name].of_client for name in compiler.asked), frozenset(compiler.labels))


class _Compiled(NamedTuple):
    kind: ValueType
    run: Run


class _Compiler:
    def __init__(self, reader_of: ReaderOf) -> None:
        self.asked: set[str] = set()  # names of the functions called, without `incidr` and `metadata`
        self.labels: set[str] = set()
        self._reader_of = reader_of
        self._depth = 0

    def compile(self, node: Node) -> _Compiled:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise BadExpression(f"found more than {MAX_NESTING} operations inside each other")
        compiled = self._compile(node)
        self._depth -= 1
        return compiled

    def _compile(self, node: Node) -> _Compiled:
        match node:
            case Literal():
                return _literal(node.value)
            case Call():
                return self._call(node)
            case Unary():
                return self._unary(node)
            case Binary():
                return self._binary(node)
            case Logic():
                return self._logic(node)
            case Conditional():
                return self._conditional(node)
            case Array():
                raise BadExpression(f"found an array{_at(node)}, expected it after 'in'")
            case _:
                assert_never(node)

    def _call(self, node: Call) -> _Compiled:
        if node.name == _INCIDR:
            return self._incidr(node)
        if node.name == _METADATA:
            return self._metadata(node)
        function = FUNCTIONS.get(node.name)
        if function is None:
            known = ", ".join(sorted({*FUNCTIONS, _INCIDR, _METADATA}))
            raise BadExpression(f"unknown function {node.name!r}{_at(node)}, expected one of {known}")
        _check_count(node, 0)
        self.asked.add(node.name)
        return _Compiled(function.result, function.call)

    def _metadata(self, node: Call) -> _Compiled:
        """The value of a label, "" without one. It is named here, as only labels that are read are kept of Pods."""
        _check_count(node, 1)
        (argument,) = node.arguments
        label = argument.value if isinstance(argument, Literal) else None
        if not isinstance(label, str) or not is_label(label):
            expected = "a label in quotes such as 'kubernetes/client-namespace'"
            raise BadExpression(f"'metadata'{_at(node)} has no label, expected {expected}")
        self.labels.add(label)
        read = self._reader_of(label)
        return _Compiled(ValueType.STRING, lambda question: read(question.query, question.client) or "")

    def _incidr(self, node: Call) -> _Compiled:
        _check_count(node, 2)
        texts = [self.compile(argument) for argument in node.arguments]
        for kind, _ in texts:
            if kind is not ValueType.STRING:
                raise BadExpression(f"'incidr'{_at(node)} has {kind.value}, expected an address and a network: strings")
        address, cidr = node.arguments
        of_client = isinstance(address, Call) and address.name == "client_ip"
        addressed = _packed_client if of_client else _packed(texts[0].run)
        network = _fixed_network(cidr) if isinstance(cidr, Literal) else _network(texts[1].run)
        return _Compiled(ValueType.BOOLEAN, lambda question: addressed(question) in network(question))

    def _unary(self, node: Unary) -> _Compiled:
        kind, run = self.compile(node.operand)
        if node.operator == "not":
            _check_condition(node, kind, "'not'")
            return _Compiled(kind, lambda question: not run(question))
        if kind not in (ValueType.INTEGER, ValueType.FLOAT):
            raise BadExpression(f"{node.operator!r}{_at(node)} has {kind.value}, expected a number")
        return _Compiled(kind, (lambda question: -run(question)) if node.operator == "-" else run)

    def _logic(self, node: Logic) -> _Compiled:
        runs: list[Run] = []
        for term in node.terms:
            kind, run = self.compile(term)
            _check_condition(node, kind, f"{node.operator!r}")
            runs.append(run)
        every = all if node.operator == "and" else any
        return _Compiled(ValueType.BOOLEAN, lambda question: every(run(question) for run in runs))

    def _conditional(self, node: Conditional) -> _Compiled:
        kind, test = self.compile(node.test)
        _check_condition(node, kind, "'?'")
        (yes_kind, yes), (no_kind, no) = self.compile(node.yes), self.compile(node.no)
        if yes_kind is not no_kind:
            raise BadExpression(f"'?'{_at(node)} has {yes_kind.value} and {no_kind.value}, expected two of one kind")
        return _Compiled(yes_kind, lambda question: yes(question) if test(question) else no(question))

    def _binary(self, node: Binary) -> _Compiled:
        if node.operator == "in":
            return self._membership(node)
        if node.operator == "matches":
            return self._matching(node)
        (left_kind, left), (right_kind, right) = self.compile(node.left), self.compile(node.right)
        operator = OPERATORS[node.operator]
        result = operator.result(left_kind, right_kind)
        if result is None:
            found = f"{left_kind.value} and {right_kind.value}"
            raise BadExpression(f"{node.operator!r}{_at(node)} has {found}, expected {operator.expected}")
        apply = operator.apply
        return _Compiled(result, lambda question: apply(left(question), right(question)))

    def _matching(self, node: Binary) -> _Compiled:
        kind, run = self.compile(node.left)
        if kind is not ValueType.STRING:
            raise BadExpression(f"'matches'{_at(node)} has {kind.value}, expected a string before it")
        if not isinstance(node.right, Literal) or not isinstance(node.right.value, str):
            raise BadExpression(f"'matches'{_at(node)} has something computed, expected a pattern in quotes after it")
        try:
            pattern = compile_pattern(node.right.value)
        except BadPattern as problem:
            raise BadExpression(f"{node.right.value!r} is no regular expression: {problem}") from None
        return _Compiled(ValueType.BOOLEAN, lambda question: pattern.search(run(question)) is not None)

    def _membership(self, node: Binary) -> _Compiled:
        kind, run = self.compile(node.left)
        if not isinstance(node.right, Array):
            raise BadExpression(f"'in'{_at(node)} has no array, expected one after it, such as ['A', 'AAAA']")
        items = [self.compile(item) for item in node.right.items]
        for item in items:
            if not comparable(kind, item.kind):
                raise BadExpression(f"'in'{_at(node)} looks for {kind.value}, but its array has {item.kind.value}")
        if all(isinstance(item, Literal) for item in node.right.items):
            values = frozenset(item.value for item in node.right.items if isinstance(item, Literal))
            return _Compiled(ValueType.BOOLEAN, lambda question: run(question) in values)
        return _Compiled(ValueType.BOOLEAN, lambda question: run(question) in [item.run(question) for item in items])


def _literal(value: Value) -> _Compiled:
    return _Compiled(_kind(value), lambda _: value)


def _kind(value: Value) -> ValueType:
    if value is None:
        return ValueType.NIL
    return {str: ValueType.STRING, bool: ValueType.BOOLEAN, int: ValueType.INTEGER, float: ValueType.FLOAT}[type(value)]


def _packed_client(question: ViewQuery) -> bytes:
    """The packed address of client_ip(), which avoids formatting and parsing it for each query."""
    return question.client.address


def _packed(run: Run) -> Callable[[ViewQuery], bytes]:
    return lambda question: parse_address(run(question))


def _network(run: Run) -> Callable[[ViewQuery], NetworkList]:
    return lambda question: parse_cidr(run(question))


def _fixed_network(cidr: Literal) -> Callable[[ViewQuery], NetworkList]:
    try:
        network = parse_cidr(str(cidr.value))
    except BadAddress:
        raise BadExpression(f"'incidr' has {cidr.value!r}, expected a network such as '10.0.0.0/8'") from None
    return lambda _: network


def _check_count(node: Call, count: int) -> None:
    if len(node.arguments) != count:
        raise BadExpression(f"{node.name!r}{_at(node)} has {len(node.arguments)} arguments, expected {count or 'none'}")


def _check_condition(node: Node, kind: ValueType, owner: str) -> None:
    if kind is not ValueType.BOOLEAN:
        raise BadExpression(f"{owner}{_at(node)} has {kind.value}, expected conditions: true or false")


def _at(node: Node) -> str:
    return f" at character {node.at + 1}"
