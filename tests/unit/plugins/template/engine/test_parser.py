"""What is no template, or one beyond the part of Go's language that is understood here."""

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


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, max_size=25).map("".join) | st.text(max_size=40))
def test_any_text_is_a_template_or_refused_and_renders_or_fails(text: str) -> None:
    data = Struct({"Name": "a.", "Match": ("a.",), "Q": Struct({"Type": 1})})
    try:
        result = render(compile_template(text, KNOWN), data)
    except (BadTemplate, RenderFailed):
        return
    assert len(result) <= MAX_OUTPUT
