"""Values of templates: their kind, truth and text, by Go's rules."""

import pytest

from topodns.plugins.template.engine.values import (
    NO_VALUE,
    RenderFailed,
    Struct,
    Value,
    field_of,
    is_true,
    kind,
    printed,
)


@pytest.mark.parametrize(
    ("value", "name", "truth", "text"),
    [
        ("a", "a string", True, "a"),
        ("", "a string", False, ""),
        (True, "a boolean", True, "true"),
        (False, "a boolean", False, "false"),
        (7, "an integer", True, "7"),
        (0, "an integer", False, "0"),
        (("a", 1), "a list", True, "[a 1]"),
        ((), "a list", False, "[]"),
        ({"b": 2, "a": 1}, "a map", True, "map[a:1 b:2]"),
        (None, "nil", False, "<nil>"),
        (NO_VALUE, "no value", False, "<no value>"),
    ],
)
def test_a_value_has_a_kind_a_truth_and_a_text(value: Value, name: str, truth: bool, text: str) -> None:
    assert (kind(value), is_true(value), printed(value)) == (name, truth, text)


def test_a_structure_is_true_and_has_no_text() -> None:
    assert (kind(Struct({})), is_true(Struct({}))) == ("a structure", True)
    with pytest.raises(RenderFailed, match="only its fields"):
        printed(Struct({}))


def test_a_map_has_no_value_at_a_missing_key_and_a_structure_fails() -> None:
    assert (field_of({"a": 1}, "a"), field_of({}, "a"), field_of(Struct({"a": 1}), "a")) == (1, NO_VALUE, 1)
    with pytest.raises(RenderFailed, match=r"there is no field \.b"):
        field_of(Struct({"a": 1}), "b")
    with pytest.raises(RenderFailed, match=r"found a string before \.b"):
        field_of("a", "b")
