"""Text that is no expression of `view`."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.in_memory_server import CLIENT, PORT, dig
from topodns.dns.wire_reader import read_query
from topodns.plugins.view.expression import compile_expression
from topodns.plugins.view.functions import ViewQuery
from topodns.plugins.view.parser import BadExpression
from topodns.query.plugin import Client


def problem(expression: str) -> str:
    with pytest.raises(BadExpression) as raised:
        compile_expression(expression)
    return str(raised.value)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("", "found the end, expected a value"),
        ("type() ==", "found the end, expected a value"),
        ("type() == == 'A'", "found '==' at character 11, expected a value"),
        ("type() = 'A'", "found '=' at character 8, expected an operator or the end"),
        ("type() == 'A", 'found "\'" at character 11, a quote that is never closed'),
        ("type() == A", "found 'A' at character 11, expected a function such as name(), or a text in single quotes"),
        ("name() == example.com.", "found 'example' at character 11, expected a function such as name(), or a text"),
        ("invalid expression", "found 'invalid' at character 1, expected a function"),
        ("do() do()", "found 'do' at character 6, expected an operator or the end"),
        ("do() not do()", "found 'not' at character 6, expected an operator or the end"),
        ("type() not 'in' ['A']", "found 'not' at character 8, expected an operator or the end"),
        ("(do()", "found the end, expected ')' for a '('"),
        ("do())", "found ')' at character 5, expected an operator or the end"),
        ("do(", "found the end, expected a value"),
        ("do(1", "found the end, expected ',' or ')'"),
        ("type() in ['A' 'B']", "found 'B' at character 16, expected ',' or ']'"),
        ("type() in [,]", "found ',' at character 12, expected a value"),
        ("do() ? true", "found the end, expected ':' between the two values of '?'"),
        ("'a.b' matches 'a\\.b'", "found the escape \\., which no text has; write \\\\. for a pattern"),
        (r"'\ud800' == ''", "found the escape \\ud800, which is no character"),
        (r"'\U00110000' == ''", "found the escape \\U00110000, which is no character"),
        ("1e999 > 1", "found '1e999' at character 1, which is more than a number can be"),
        ("9223372036854775808 > 1", "found '9223372036854775808' at character 1, expected an integer of at most"),
        ("9" * 5000 + " > 1", "expected an integer of at most 9223372036854775807"),
        ("0x_ > 1", "found '0x_' at character 1, expected digits after it"),
        ("all([1], {# > 0})", "found '{' at character 10, expected a value"),
        ("name() | lower()", "found '|' at character 8, expected an operator or the end"),
    ],
)
def test_text_that_is_no_expression(expression: str, expected: str) -> None:
    assert expected in problem(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 5000 + "true" + ")" * 4000,
        "!" * 9000 + "true",
        "-" * 9000 + "1 > 0",
        "1 in [" * 1000,
        "true ? true : " * 700 + "true",
        "true ? " * 1000,
        "do(" * 3000,
        "1" + "+1" * 4000 + " > 1",
    ],
)
def test_nesting_has_a_bound(expression: str) -> None:
    assert "found more than 64" in problem(expression)


def test_length_has_a_bound() -> None:
    assert problem("do() or " * 1250 + "true") == "found 10004 characters, expected at most 10000"


def test_long_lists_of_alternatives_are_no_nesting() -> None:
    names = [f"'{number}.example.'" for number in range(600)]
    compile_expression(f"name() in [{', '.join(names)}]")
    compile_expression(" or ".join(f"name() == {name}" for name in names[:300]))


_PIECES = [
    *("name()", "client_ip()", "incidr(", "do()", "'a'", "1", "0.5", "nil", "true", "[", "]", "(", ")", ",", "?", ":"),
    *("==", "<", "+", "%", "/", "&&", "or", "not", "!", "in", "matches", "contains", "'", '"', "\\", "\u00e9", " "),
]


@settings(max_examples=100)
@given(st.lists(st.sampled_from(_PIECES), max_size=12).map(" ".join))
def test_any_text_is_an_expression_or_is_refused(text: str) -> None:
    query = ViewQuery(read_query(dig("www.example.com. A")), Client(CLIENT, PORT, "udp"), "::")
    try:
        expression = compile_expression(text)
    except BadExpression:
        return
    assert expression.holds(query) in (True, False)
