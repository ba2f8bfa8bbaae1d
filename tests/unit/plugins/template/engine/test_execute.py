"""Templates and what they come to; results as Go's text/template gives them."""

import pytest

from topodns.plugins.template.engine.execute import MAX_OUTPUT, render
from topodns.plugins.template.engine.parser import compile_template
from topodns.plugins.template.engine.values import RenderFailed, Struct

KNOWN = {"Name": frozenset[str](), "Match": frozenset[str](), "Group": frozenset[str](), "Q": frozenset({"Type", "In"})}
DATA = Struct(
    {
        "Name": "web.example.",
        "Match": ("web.example.", "web", ""),
        "Group": {"a": "10", "b": "0a"},
        "Q": Struct({"Type": 1, "In": True}),
    }
)


def rendered(text: str) -> str:
    return render(compile_template(text, KNOWN), DATA)


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
    ("text", "result"),
    [
        ("{{ parseInt .Group.b 16 8 }}", "10"),
        ("{{ parseInt `0x1f` 0 64 }} {{ parseInt `017` 0 64 }} {{ parseInt `1_0` 0 0 }}", "31 15 10"),
        ("{{ index .Match 1 }} {{ index .Group `a` }} {{ index `abc` 1 }}", "web 10 98"),
        ("{{ slice .Name 0 3 }} {{ slice .Name 4 }}", "web example."),
        ("{{ len .Name }} {{ len .Match }} {{ len .Group }}", "12 3 2"),
        ("{{ and 1 `` 2 }}|{{ or `` 0 `x` 3 }}|{{ not `` }}", "|x|true"),
        ("{{ and .Group.a (eq .Q.Type 1) }}", "true"),
        ("{{ or .Name (index .Match 99) }}", "web.example."),
        (
            "{{ eq 1 2 3 1 }} {{ ne `a` `b` }} {{ lt 1 2 }} {{ le 2 2 }} {{ gt `a` `b` }} {{ ge 1 2 }}",
            "true " * 4 + "false false",
        ),
        ("{{ print `a` 1 2 `b` true 3 }}{{ println 1 `a` }}", "a1 2btrue 31 a\n"),
        ('{{ printf `%s %v %q` `a` `b` `c"` }}', r'a b "c\""'),
        (
            "{{ printf `%d %05d %-4d| %+d %x %X %#x %o %b %c` 7 42 3 1 255 255 10 8 5 65 }}",
            "7 00042 3   | +1 ff FF 0xa 10 101 A",
        ),
        ("{{ printf `%03d %5s|%-5s|%.2s %x %t%%` 7 `a` `b` `cde` `hi` true }}", "007     a|b    |cd 6869 true%"),
    ],
)
def test_functions(text: str, result: str) -> None:
    assert rendered(text) == result


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{ index .Match 3 }}", "index out of range: 3"),
        ("{{ index .Match -1 }}", "index out of range: -1"),
        ("{{ index .Match `a` }}", "index: found a string for a list, expected an integer"),
        ("{{ index .Group 1 }}", "index: found an integer for a map, expected a string"),
        ("{{ index .Q 1 }}", "index: found a structure"),
        ("{{ .Name.Length }}", r"found a string before \.Length"),
        ("{{ with .Q }}{{ .Nothing }}{{ end }}", r"there is no field \.Nothing"),
        ("{{ len 1 }}", "len: found an integer"),
        ("{{ len .Group.none }}", "len: found no value"),
        ("{{ slice .Name 5 2 }}", "slice: bounds 5, 2 of 12 elements"),
        ("{{ parseInt `300` 10 8 }}", "parseInt: '300' has more than 8 bits"),
        ("{{ parseInt `-1` 10 8 }}", "parseInt: '-1' is no number of base 10"),
        ("{{ parseInt `1` 37 8 }}", "parseInt: base 37"),
        ("{{ parseInt 1 10 8 }}", "parseInt: expected a string"),
        ("{{ eq 1 `1` }}", "an integer cannot be compared with a string"),
        ("{{ lt true false }}", "found a boolean, expected something that has an order"),
        ("{{ printf `%d` `a` }}", "printf: %d cannot print a string"),
        ("{{ printf `%s` }}", "printf: nothing is left for '%s'"),
        ("{{ printf `a` 1 }}", "printf: 1 more arguments than verbs"),
        ("{{ printf `%999999999d` 1 }}", "is wider than 255"),
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
