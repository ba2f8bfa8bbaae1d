"""Template functions: of Go's template language, and CoreDNS's; `printf` writes as Go's fmt."""

import pytest

from tests.unit.plugins.template.engine.scene import rendered
from topodns.plugins.template.engine.values import RenderFailed


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
    ],
)
def test_functions(text: str, result: str) -> None:
    assert rendered(text) == result


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{ index .Match `a` }}", "index: found a string for a list, expected an integer"),
        ("{{ index .Group 1 }}", "index: found an integer for a map, expected a string"),
        ("{{ index .Q 1 }}", "index: found a structure"),
        ("{{ len 1 }}", "len: found an integer"),
        ("{{ len .Group.none }}", "len: found no value"),
        ("{{ slice .Name 5 2 }}", "slice: bounds 5, 2 of 12 elements"),
        ("{{ parseInt `300` 10 8 }}", "parseInt: '300' has more than 8 bits"),
        ("{{ parseInt `-1` 10 8 }}", "parseInt: '-1' is no number of base 10"),
        ("{{ parseInt `1` 37 8 }}", "parseInt: base 37"),
        ("{{ parseInt 1 10 8 }}", "parseInt: expected a string"),
        ("{{ eq 1 `1` }}", "an integer cannot be compared with a string"),
        ("{{ lt true false }}", "found a boolean, expected something that has an order"),
    ],
)
def test_a_wrong_argument_says_why(text: str, problem: str) -> None:
    with pytest.raises(RenderFailed, match=problem):
        rendered(text)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ('{{ printf `%s %v %q` `a` `b` `c"` }}', r'a b "c\""'),
        (
            "{{ printf `%d %05d %-4d| %+d %x %X %#x %o %b %c` 7 42 3 1 255 255 10 8 5 65 }}",
            "7 00042 3   | +1 ff FF 0xa 10 101 A",
        ),
        ("{{ printf `%03d %5s|%-5s|%.2s %x %t%%` 7 `a` `b` `cde` `hi` true }}", "007     a|b    |cd 6869 true%"),
    ],
)
def test_verbs(text: str, result: str) -> None:
    assert rendered(text) == result


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{ printf `%d` `a` }}", "printf: %d cannot print a string"),
        ("{{ printf `%s` }}", "printf: nothing is left for '%s'"),
        ("{{ printf `a` 1 }}", "printf: 1 more arguments than verbs"),
        ("{{ printf `%999999999d` 1 }}", "is wider than 255"),
        ("{{ printf `100%` }}", "printf: '%' at the end has no verb"),
        ("{{ printf `%s 100%` `a` }}", "printf: '%' at the end has no verb"),
        ("{{ printf `%%%-5.2` 1 }}", "printf: '%-5.2' at the end has no verb"),
        ("{{ printf `%!` }}", "printf: nothing is left for '%!'"),
        ("{{ printf `%*d` 5 1 }}", "cannot print an integer"),
        ("{{ printf `%[1]d` 1 }}", "cannot print an integer"),
        ("{{ printf `%d` true }}", "printf: %d cannot print a boolean"),
        ("{{ printf `%t` 1 }}", "printf: %t cannot print an integer"),
    ],
)
def test_what_cannot_be_printed_says_why(text: str, problem: str) -> None:
    with pytest.raises(RenderFailed, match=problem):
        rendered(text)
