"""Missing and surplus braces: one error each, at the line where the indentation breaks."""

import pytest

from tests.support.corefile_settings import problem

CASES = [
    (
        "of a directive, with one after it",
        ". {\n    health {\n        lameduck 5s\n    ready\n    log {\n        class all\n    }\n}\n",
        ["4: found 'ready', expected '}' before it to end 'health' of line 2"],
    ),
    (
        "of the last directive",
        ". {\n    errors\n    health {\n        lameduck 5s\n}\n",
        ["5: found '}', expected another '}' before this one to end 'health' of line 3"],
    ),
    (
        "of a body without lines",
        ". {\n    health {\n    errors\n}\n",
        ["3: found 'errors', expected '}' before it to end 'health' of line 2"],
    ),
    (
        "of a block, with one after it",
        ". {\n    errors\n\na.org {\n    whoami\n}\n",
        ["4: found 'a.org', expected '}' before it to end '.' of line 1"],
    ),
    (
        "of two directives",
        ". {\n\thealth {\n\t\tlameduck 5s\n\tready\n\tcache {\n\t\tprefetch 1\n\terrors\n}\n",
        [
            "4: found 'ready', expected '}' before it to end 'health' of line 2",
            "7: found 'errors', expected '}' before it to end 'cache' of line 5",
        ],
    ),
    (
        "beside a line that is indented too little, but whose body has its end",
        ". {\n    health {\n  lameduck 5s\n    }\n    cache {\n        prefetch 1\n    errors\n}\n",
        ["7: found 'errors', expected '}' before it to end 'cache' of line 5"],
    ),
    ("of the last block", ". {\n    whoami\n", ["1: expected '}' to end '.', found the end of the file"]),
    ("a word without a space", ".{\n whoami\n}", ["1: found '.{', expected a space before its '{'"]),
    (
        "a word without a space in a block",
        ". {\n health{\n  lameduck 5s\n }\n whoami\n}",
        ["2: found 'health{', expected a space before its '{'"],
    ),
    (
        "a word without a space, and a missing end",
        ". {\n health{\n  lameduck 5s\n }\n errors\n}\na.org {\n cache {\n  prefetch 1\n errors\n}",
        [
            "2: found 'health{', expected a space before its '{'",
            "10: found 'errors', expected '}' before it to end 'cache' of line 8",
        ],
    ),
    (
        "one too many",
        ". {\n    health {\n    }\n    }\n    errors\n}\na.org {\n    whoami\n}\n",
        ["4: found '}', but no '{' of its column is open"],
    ),
    ("one too many at the end", ".\nwhoami\n}", ["3: found '}', but no '{' is open"]),
]


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_brace_that_is_missing_or_too_many_is_one_error_at_its_place(text: str, expected: list[str]) -> None:
    assert problem(text).splitlines() == [f"Corefile:{line}" for line in expected]


def test_a_brace_of_an_imported_snippet_is_judged_by_its_own_columns() -> None:
    text = "(snippet) {\nhealth {\n    lameduck 5s\n}\n}\n. {\n    import snippet\n    ready {\n    errors\n}\n"
    assert problem(text) == "Corefile:9: found 'errors', expected '}' before it to end 'ready' of line 8"


def test_more_missing_braces_than_a_person_forgets_are_not_looked_for() -> None:
    assert problem(". {\n" + " health {\n" * 11) == ("Corefile:12: found bodies inside bodies, more than 10 deep")
