"""Expressions beyond the part of Go's language that is understood here."""

import pytest

from topodns.plugins.template.engine.lexer import BadTemplate
from topodns.plugins.template.engine.parser import compile_template

KNOWN = {"Name": frozenset[str](), "Match": frozenset[str](), "Q": frozenset({"Type"})}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{ }}", "{{  }}: found nothing, expected a value"),
        ("{{ .Nmae }}", "{{ .Nmae }}: unknown field '.Nmae', expected one of .Match, .Name, .Q"),
        ("{{ .Q.Name }}", "{{ .Q.Name }}: unknown field '.Q.Name', expected one of .Q.Type"),
        ("{{ . }}", "{{ . }}: found the whole of the data, expected one of its fields, such as .Name"),
        ("{{ $ }}", "{{ $ }}: found the whole of the data, expected one of its fields, such as .Name"),
        ("{{ $x }}", "{{ $x }}: unknown variable '$x'"),
        ("{{ if true }}{{ $x := 1 }}{{ end }}{{ $x }}", "{{ $x }}: unknown variable '$x'"),
        ("{{ $x = 1 }}", "{{ $x = 1 }}: unknown variable '$x'"),
        ("{{ html .Name }}", "{{ html .Name }}: Go's templates have the function 'html', topodns does not"),
        ("{{ 1.5 }}", "{{ 1.5 }}: found '1.5', but topodns has no floating point"),
        ("{{ 09 }}", "{{ 09 }}: found '09', expected an integer"),
        ("{{ 9223372036854775808 }}", "{{ 9223372036854775808 }}: found '9223372036854775808', which is more than"),
        (r'{{ "\z" }}', r'{{ "\z" }}: found the escape \z, which no string has'),
        ("{{ 'ab' }}", "{{ 'ab' }}: found \"'ab'\", expected one character between the quotes"),
        ("{{ .Name .Name }}", "{{ .Name .Name }}: '.Name' is no function, so it can have no arguments"),
        ("{{ .Name | .Name }}", "{{ .Name | .Name }}: '.Name' is no function, so it can have no arguments"),
        ("{{ parseInt }}", "{{ parseInt }}: 'parseInt' has 0 arguments, expected 3"),
        ("{{ parseInt .Name }}", "{{ parseInt .Name }}: 'parseInt' has 1 arguments, expected 3"),
        ("{{ slice .Name 1 2 3 }}", "{{ slice .Name 1 2 3 }}: 'slice' has 4 arguments, expected 1 to 3"),
        ("{{ .Meta }}", "{{ .Meta }}: '.Meta' has 0 arguments, expected 1"),
        ("{{ print len .Name }}", "{{ print len .Name }}: found 'len' as an argument, expected it in parentheses"),
        ("{{ (len .Name }}", "{{ (len .Name }}: found no ')' for a '('"),
        ("{{ " + "(" * 40 + "1" + ")" * 40 + " }}", "found parentheses more than 32 deep"),
    ],
)
def test_a_bad_expression_is_refused_with_the_construct(text: str, problem: str) -> None:
    with pytest.raises(BadTemplate) as refused:
        compile_template(text, KNOWN)
    assert problem in str(refused.value)


def test_an_unknown_function_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadTemplate, match=r"unknown function 'toUpper', expected one of and, eq, ge, gt, index, .*"):
        compile_template("{{ toUpper .Name }}", KNOWN)
