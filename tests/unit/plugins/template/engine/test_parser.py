"""Templates and expressions that are refused: they are none, or beyond the part of Go's language understood here."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topodns.plugins.template.engine.execute import MAX_OUTPUT, render
from topodns.plugins.template.engine.lexer import BadTemplate
from topodns.plugins.template.engine.parser import MAX_TEXT, compile_template
from topodns.plugins.template.engine.values import RenderFailed, Struct

KNOWN = {"Name": frozenset[str](), "Match": frozenset[str](), "Q": frozenset({"Type"})}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{ template `x` }}", "{{ template `x` }}: found 'template', which topodns does not have"),
        ("{{ define `x` }}{{ end }}", "{{ define `x` }}: found 'define', which topodns does not have"),
        ("{{ block `x` . }}{{ end }}", "{{ block `x` . }}: found 'block', which topodns does not have"),
        ("{{ len .Name) }}", "{{ len .Name) }}: found ')', expected the end of the action"),
        ("{{ if .Name }}a", "{{ if .Name }}: found no end, expected {{ end }}"),
        ("{{ if }}a{{ end }}", "{{ if }}: found nothing, expected a value"),
        ("{{ end }}", "{{ end }}: found where no if, range or with is open"),
        ("{{ else }}", "{{ else }}: found where no if, range or with is open"),
        ("{{ if 1 }}{{ else }}{{ else }}{{ end }}", "{{ else }}: found a second else, expected {{ end }}"),
        ("{{ range .Match }}{{ else if 1 }}{{ end }}", "{{ else if 1 }}: found 'if', expected the end of the action"),
        ("{{ break }}", "{{ break }}: found outside of a range"),
        ("{{ end if }}", "{{ end if }}: found where no if, range or with is open"),
        ("{{ if 1 }}" * 40 + "{{ end }}" * 40, "found blocks inside blocks, more than 32 deep"),
        ("{{ if 1 }}" + "{{ else if 1 }}" * 40 + "{{ end }}", "found blocks inside blocks, more than 32 deep"),
        ("{{ $x := 1 }}" * 64, "found more than 63 variables"),
        ("x" * (MAX_TEXT + 1), "found 65537 characters, expected at most 65536"),
    ],
)
def test_a_bad_template_is_refused_with_the_construct(text: str, problem: str) -> None:
    with pytest.raises(BadTemplate) as refused:
        compile_template(text, KNOWN)
    assert problem in str(refused.value)


WORDS = st.sampled_from(
    [
        *("{{", "}}", "{{- ", " -}}", "/*", "*/", " ", ".", "$", ":=", "=", "|", "(", ")", "'", "é"),
        *(".Name", ".Match", ".Q", "$x", "1", "0x", '"a"', '"\\uD800"', "`b`"),
        *("if ", "else ", "end", "range ", "with ", "index ", "print ", "len ", "parseInt "),
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(WORDS, max_size=25).map("".join) | st.text(max_size=40))
def test_any_text_is_a_template_or_refused_and_renders_or_fails(text: str) -> None:
    data = Struct({"Name": "a.", "Match": ("a.",), "Q": Struct({"Type": 1})})
    try:
        result = render(compile_template(text, KNOWN), data)
    except (BadTemplate, RenderFailed):
        return
    assert len(result) <= MAX_OUTPUT


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{ }}", "{{  }}: found nothing, expected a value"),
        ("{{ = }}", "{{ = }}: found '=', expected a value"),
        ("{{ | len }}", "{{ | len }}: found '|', expected a value"),
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
