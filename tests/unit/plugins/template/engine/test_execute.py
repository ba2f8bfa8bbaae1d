"""Templates and their results, as Go's text/template gives them."""

import pytest

from tests.unit.plugins.template.engine.scene import rendered
from topodns.plugins.template.engine.execute import MAX_OUTPUT
from topodns.plugins.template.engine.values import RenderFailed


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("", ""),
        ("no action } {", "no action } {"),
        ("a {{ .Name }} b", "a web.example. b"),
        ("{{.Name}}", "web.example."),
        ("{{ $.Name }}", "web.example."),
        ("a {{- .Name -}} b", "aweb.example.b"),
        ("a {{- /* nothing */ -}} b", "ab"),
        ("a{{/* }} */}}b", "ab"),
        ("{{-3}}", "-3"),
        ("{{ .Group.a }}.{{ .Group.none }}", "10.<no value>"),
        ("{{ .Q.Type }}", "1"),
        ("{{ `raw }}` }}", "raw }}"),
        (r'{{ "\t\"\x41\101é\\" }}', '\t"AAé\\'),
        ("{{ 'a' }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 017 }} {{ 1_000 }} {{ -5 }}", "97 31 5 15 15 1000 -5"),
        ("{{ true }}", "true"),
        ("{{ .Match }}", "[web.example. web ]"),
        ("{{ .Group }}", "map[a:10 b:0a]"),
        ("{{ .Group.a | printf `%s-%s` .Name }}", "web.example.-10"),
        ("{{ (index .Match 1) | len | eq 3 }}", "true"),
    ],
)
def test_text_and_values(text: str, result: str) -> None:
    assert rendered(text) == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{{ if .Name }}a{{ else }}b{{ end }}", "a"),
        ("{{ if .Group.none }}a{{ else }}b{{ end }}", "b"),
        ("{{ if index .Match 2 }}a{{ end }}", ""),
        ("{{ if eq .Group.a `9` }}9{{ else if eq .Group.a `10` }}10{{ else }}none{{ end }}", "10"),
        ("{{ if $x := index .Match 1 }}{{ $x }}{{ end }}", "web"),
        ("{{ with .Q }}{{ .Type }}{{ $.Name }}{{ end }}", "1web.example."),
        ("{{ with index .Match 2 }}a{{ else with .Group.b }}{{ . }}{{ else }}c{{ end }}", "0a"),
        ("{{ range .Match }}<{{ . }}>{{ end }}", "<web.example.><web><>"),
        ("{{ range $i, $m := .Match }}{{ $i }}={{ $m }};{{ end }}", "0=web.example.;1=web;2=;"),
        ("{{ range $k, $v := .Group }}{{ $k }}={{ $v }};{{ end }}", "a=10;b=0a;"),
        ("{{ range $x := .Match }}{{ $x }}{{ break }}{{ end }}", "web.example."),
        ("{{ range .Match }}{{ if eq . `web` }}{{ continue }}{{ end }}<{{ . }}>{{ end }}", "<web.example.><>"),
        ("{{ range 3 }}{{ . }}{{ end }}", "012"),
        ("{{ range slice .Match 3 }}a{{ else }}none{{ end }}", "none"),
        ("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ $x := 3 }}{{ $x }}{{ end }}{{ $x }}", "32"),
    ],
)
def test_decisions_loops_and_variables(text: str, result: str) -> None:
    assert rendered(text) == result


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{ index .Match 3 }}", "index out of range: 3"),
        ("{{ index .Match -1 }}", "index out of range: -1"),
        ("{{ .Name.Length }}", r"found a string before \.Length"),
        ("{{ with .Q }}{{ .Nothing }}{{ end }}", r"there is no field \.Nothing"),
        ("{{ .Q }}", "a structure cannot be printed"),
        ("{{ range .Name }}{{ end }}", "range: found a string"),
    ],
)
def test_a_value_that_cannot_be_written_is_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(RenderFailed, match=problem):
        rendered(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{ range 1000000000 }}{{ end }}", "more than 10000 steps"),
        ("{{ range 1000 }}{{ range 1000 }}{{ end }}{{ end }}", "more than 10000 steps"),
        ("{{ range 900 }}" + "x" * 100 + "{{ end }}", f"more than {MAX_OUTPUT} characters"),
        ("{{ $x := `xx` }}{{ range 60 }}{{ $x = print $x $x }}{{ end }}", "print: more than 65536 characters"),
    ],
)
def test_no_template_takes_more_than_its_share(text: str, problem: str) -> None:
    with pytest.raises(RenderFailed, match=problem):
        rendered(text)
