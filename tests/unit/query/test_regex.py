"""Regular expressions of Corefiles: Go's syntax, in linear time."""

import pytest

from topodns.query.regex import MAX_PATTERN, BadPattern, compile_pattern


def test_a_pattern_is_searched_for_anywhere_unless_it_is_anchored() -> None:
    assert compile_pattern("b").search("abc") is not None
    assert compile_pattern("^b").search("abc") is None
    assert compile_pattern("a.c").fullmatch("abcd") is None


def test_groups_have_numbers_and_names() -> None:
    found = compile_pattern(r"(?P<host>\w+)-([0-9]+)(x)?").search("see web-12")
    assert found is not None
    assert (found.group(), found.groups(), found.groupdict()) == ("web-12", ("web", "12", None), {"host": "web"})
    assert (found.start(), found.end()) == (4, 10)


@pytest.mark.parametrize("text", ["(", "(?!a)", r"(a)\1", "a" * (MAX_PATTERN + 1)])
def test_patterns_that_go_refuses_are_refused(text: str) -> None:
    with pytest.raises(BadPattern):
        compile_pattern(text)


def test_no_pattern_takes_exponential_time() -> None:
    assert compile_pattern("^(a+)+$").search("a" * 10_000 + "b") is None
