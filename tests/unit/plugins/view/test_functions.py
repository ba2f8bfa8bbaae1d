"""Functions and operators of `view`: the results of CoreDNS and expr-lang."""

from typing import Any

import pytest

from tests.support.query_builders import ask, client
from topodns.dns.message import Edns
from topodns.plugins.view.functions import FUNCTIONS, OPERATORS, ValueType, ViewQuery, comparable
from topodns.query.plugin import Client

STRING, INTEGER, FLOAT, BOOLEAN, NIL = ValueType
QUERY = ask("WWW.example.org", 28, edns=Edns(4096, 0, True))
UDP, TCP = client("2001:db8::1"), client("10.0.0.1", transport="tcp")


@pytest.mark.parametrize(
    ("name", "asker", "value"),
    [
        ("type", UDP, "AAAA"),
        ("name", UDP, "www.example.org."),
        ("class", UDP, "IN"),
        ("proto", TCP, "tcp"),
        ("size", UDP, QUERY.size),
        ("client_ip", UDP, "2001:db8::1"),
        ("port", UDP, "40212"),
        ("id", UDP, 29008),
        ("opcode", UDP, 0),
        ("do", UDP, True),
        ("bufsize", UDP, 4096),
        ("bufsize", TCP, 65535),
        ("server_ip", UDP, "::1"),
        ("server_port", UDP, "53"),
    ],
)
def test_a_function_reads_the_query(name: str, asker: Client, value: object) -> None:
    assert FUNCTIONS[name].call(ViewQuery(QUERY, asker, "::1")) == value


def test_types_and_classes_without_a_name_have_a_number() -> None:
    question = ViewQuery(ask("a", 65534, 77), UDP, "")
    assert (FUNCTIONS["type"].call(question), FUNCTIONS["class"].call(question)) == ("TYPE65534", "CLASS77")
    assert FUNCTIONS["bufsize"].call(question) == 512


def test_functions_that_may_differ_between_equal_messages_are_known() -> None:
    assert {name for name, function in FUNCTIONS.items() if function.of_client} == {"client_ip", "port", "id"}


@pytest.mark.parametrize(
    ("mark", "left", "right", "result"),
    [
        ("==", INTEGER, FLOAT, BOOLEAN),
        ("==", STRING, INTEGER, None),
        ("!=", STRING, NIL, BOOLEAN),
        ("<", STRING, STRING, BOOLEAN),
        ("<", BOOLEAN, BOOLEAN, None),
        ("contains", STRING, STRING, BOOLEAN),
        ("contains", STRING, INTEGER, None),
        ("+", STRING, STRING, STRING),
        ("+", INTEGER, FLOAT, FLOAT),
        ("-", INTEGER, INTEGER, INTEGER),
        ("/", INTEGER, INTEGER, FLOAT),
        ("%", INTEGER, FLOAT, None),
    ],
)
def test_an_operator_has_a_result_for_the_kinds_that_it_accepts(
    mark: str, left: ValueType, right: ValueType, result: ValueType | None
) -> None:
    assert OPERATORS[mark].result(left, right) is result


@pytest.mark.parametrize(("mark", "values", "result"), [("%", (-7, 3), -1), ("%", (7, -3), 1), ("/", (1, 2), 0.5)])
def test_numbers_are_computed_as_in_go(mark: str, values: tuple[Any, Any], result: float) -> None:
    assert OPERATORS[mark].apply(*values) == result


def test_nil_is_compared_with_everything() -> None:
    assert comparable(NIL, STRING)
    assert not comparable(STRING, BOOLEAN)
