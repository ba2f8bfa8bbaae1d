"""Functions of templates, with Go's results."""

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
