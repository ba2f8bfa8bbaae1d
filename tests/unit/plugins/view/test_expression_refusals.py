"""Text that is no expression, or uses unsupported parts: an error when the Corefile is read."""

import pytest

from topodns.plugins.view.expression import compile_expression
from topodns.plugins.view.parser import BadExpression


def problem(expression: str) -> str:
    with pytest.raises(BadExpression) as raised:
        compile_expression(expression)
    return str(raised.value)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("client() == ''", "unknown function 'client' at character 1, expected one of bufsize, class, client_ip, do,"),
        ("len(name()) > 3", "unknown function 'len' at character 1, expected one of"),
        ("metadata('kubernetes/client-namespace') == 'default'", "found 'metadata' at character 1, but topodns pub"),
        ("do(1)", "'do' at character 1 has 1 arguments, expected none"),
        ("incidr(client_ip())", "'incidr' at character 1 has 1 arguments, expected 2"),
        ("incidr(id(), '10.0.0.0/8')", "'incidr' at character 1 has an integer, expected an address and a network"),
        ("incidr(client_ip(), '10.0.0.0')", "'incidr' has '10.0.0.0', expected a network such as '10.0.0.0/8'"),
        ("incidr(client_ip(), '10.0.0.0/33')", "'incidr' has '10.0.0.0/33', expected a network"),
        ("incidr(client_ip(), '10.0.0.0/255.0.0.0')", "'incidr' has '10.0.0.0/255.0.0.0', expected a network"),
        ("name() matches '('", "'(' is no regular expression: "),
        ("name() matches '(?!a)'", "'(?!a)' is no regular expression: "),
        ("name() matches type()", "'matches' at character 8 has something computed, expected a pattern in quotes"),
        ("id() matches 'a'", "'matches' at character 6 has an integer, expected a string before it"),
        ("id() == '1'", "'==' at character 6 has an integer and a string, expected two of one kind"),
        ("port() > 1024", "'>' at character 8 has a string and an integer, expected two numbers or two strings"),
        ("1 < 2 < 3", "'<' at character 7 has a boolean and an integer, expected two numbers or two strings"),
        ("nil < 1", "'<' at character 5 has nil and an integer, expected two numbers or two strings"),
        ("name() contains 1", "'contains' at character 8 has a string and an integer, expected two strings"),
        ("name() + 1 == ''", "'+' at character 8 has a string and an integer, expected two numbers or two strings"),
        ("1.5 % 2 == 0", "'%' at character 5 has a number and an integer, expected two integers"),
        ("true - 1 == 0", "'-' at character 6 has a boolean and an integer, expected two numbers"),
        ("-name() == ''", "'-' at character 1 has a string, expected a number"),
        ("not name() matches 'a'", "'not' at character 1 has a string, expected conditions: true or false"),
        ("do() && id()", "'and' at character 6 has an integer, expected conditions: true or false"),
        ("name() ? true : false", "'?' at character 8 has a string, expected conditions: true or false"),
        ("(do() ? 1 : 'a') == 1", "'?' at character 7 has an integer and a string, expected two of one kind"),
        ("type() in 'AAAA'", "'in' at character 8 has no array, expected one after it, such as ['A', 'AAAA']"),
        ("type() in ['A', 1]", "'in' at character 8 looks for a string, but its array has an integer"),
        ("1 in [true]", "'in' at character 3 looks for an integer, but its array has a boolean"),
        ("['A'] == ['A']", "found an array at character 1, expected it after 'in'"),
        ("name()", "found a string, expected a condition: something that is true or false"),
        ("1", "found an integer, expected a condition"),
        ("nil", "found nil, expected a condition"),
    ],
)
def test_expressions_that_could_never_be_computed(expression: str, expected: str) -> None:
    assert expected in problem(expression)
