"""Functions of expressions, with the names and results of CoreDNS's, and the operators of expr-lang."""

import operator
from collections.abc import Callable, Mapping
from enum import Enum
from ipaddress import ip_address
from typing import Any, Final, NamedTuple

from topodns.dns.message import Query
from topodns.dns.name import name_text
from topodns.dns.rrtype import class_text, type_text
from topodns.dns.wire_format import MAX_MESSAGE, MIN_UDP_PAYLOAD
from topodns.plugins.view.parser import Value
from topodns.query.plugin import Client


class ValueType(Enum):
    """The types of values. The value of a member is its name in error messages."""

    STRING = "a string"
    INTEGER = "an integer"
    FLOAT = "a number"
    BOOLEAN = "a boolean"
    NIL = "nil"


class ViewQuery(NamedTuple):
    """One query, its client, and the server address that `ViewFilter` describes."""

    query: Query
    client: Client
    server_ip: str


class ViewFunction(NamedTuple):
    """A function without arguments. `of_client`: whether its result is of the client or of the message's id, so that it
    may differ between messages that are otherwise equal.
    """

    result: ValueType
    call: Callable[[ViewQuery], Value]
    of_client: bool = False


def client_ip(question: ViewQuery) -> str:
    """The client's IPv4 or IPv6 address as text, without brackets."""
    return str(ip_address(question.client.address))


def _dnssec_ok(question: ViewQuery) -> bool:
    edns = question.query.edns
    return edns is not None and edns.dnssec_ok


def _bufsize(question: ViewQuery) -> int:
    if question.client.transport == "tcp":
        return MAX_MESSAGE
    edns = question.query.edns
    return max(MIN_UDP_PAYLOAD, edns.udp_payload_size if edns is not None else 0)


FUNCTIONS: Final[Mapping[str, ViewFunction]] = {
    "type": ViewFunction(ValueType.STRING, lambda question: type_text(question.query.qtype)),
    "name": ViewFunction(ValueType.STRING, lambda question: name_text(question.query.qname)),
    "class": ViewFunction(ValueType.STRING, lambda question: class_text(question.query.qclass)),
    "proto": ViewFunction(ValueType.STRING, lambda question: question.client.transport),
    "size": ViewFunction(ValueType.INTEGER, lambda question: question.query.size),
    "client_ip": ViewFunction(ValueType.STRING, client_ip, of_client=True),
    "port": ViewFunction(ValueType.STRING, lambda question: str(question.client.port), of_client=True),
    "id": ViewFunction(ValueType.INTEGER, lambda question: question.query.id, of_client=True),
    "opcode": ViewFunction(ValueType.INTEGER, lambda question: question.query.flags >> 11 & 15),
    "do": ViewFunction(ValueType.BOOLEAN, _dnssec_ok),
    "bufsize": ViewFunction(ValueType.INTEGER, _bufsize),
    "server_ip": ViewFunction(ValueType.STRING, lambda question: question.server_ip),
    "server_port": ViewFunction(ValueType.STRING, lambda question: str(question.client.local_port)),
}

Apply = Callable[[Any, Any], Any]
"""Computes the result from two values of kinds that `Operator.result` accepts."""

_NUMBERS: Final = frozenset({ValueType.INTEGER, ValueType.FLOAT})


class Operator(NamedTuple):
    """A binary operator. `expected`: the description of its operands in error messages."""

    result: Callable[[ValueType, ValueType], ValueType | None]  # None: these kinds are not accepted
    apply: Apply
    expected: str


def comparable(left: ValueType, right: ValueType) -> bool:
    """Whether expr-lang compares values of these kinds with `==`."""
    return left is right or {left, right} <= _NUMBERS or ValueType.NIL in (left, right)


def _equality(left: ValueType, right: ValueType) -> ValueType | None:
    return ValueType.BOOLEAN if comparable(left, right) else None


def _order(left: ValueType, right: ValueType) -> ValueType | None:
    ordered = left is right is ValueType.STRING or {left, right} <= _NUMBERS
    return ValueType.BOOLEAN if ordered else None


def _search(left: ValueType, right: ValueType) -> ValueType | None:
    return ValueType.BOOLEAN if left is right is ValueType.STRING else None


def _number(left: ValueType, right: ValueType) -> ValueType | None:
    if not {left, right} <= _NUMBERS:
        return None
    return ValueType.FLOAT if ValueType.FLOAT in (left, right) else ValueType.INTEGER


def _sum(left: ValueType, right: ValueType) -> ValueType | None:
    return ValueType.STRING if left is right is ValueType.STRING else _number(left, right)


def _quotient(left: ValueType, right: ValueType) -> ValueType | None:
    return ValueType.FLOAT if {left, right} <= _NUMBERS else None


def _remainder(left: ValueType, right: ValueType) -> ValueType | None:
    return ValueType.INTEGER if left is right is ValueType.INTEGER else None


def _truncated_remainder(left: int, right: int) -> int:
    """Go's `%`: the remainder has the sign of the left operand."""
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
