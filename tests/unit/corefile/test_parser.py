"""The shape of a Corefile: blocks, keys, directives, bodies."""

import pytest

from tests.support.corefile_settings import problem
from topodns.corefile.lexer import tokenize
from topodns.corefile.parser import CorefileBlock, Directive, parse_blocks


def blocks(text: str) -> list[CorefileBlock]:
    return parse_blocks(tokenize(text, "Corefile"))


def keys(text: str) -> list[list[str]]:
    return [[key.text for key in block.keys] for block in blocks(text)]


def outline(directives: tuple[Directive, ...]) -> list[object]:
    """Each directive as its words, followed by its body where it has one."""
    lines: list[object] = []
    for directive in directives:
        lines.append(" ".join((directive.name, *directive.args)))
        if directive.body:
            lines.append(outline(directive.body))
    return lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(". {\n}", [["."]], id="one"),
        pytest.param("a.org b.org {\n}", [["a.org", "b.org"]], id="parted by a space"),
        pytest.param("a.org, b.org {\n}", [["a.org", "b.org"]], id="parted by a comma"),
        pytest.param("a.org,b.org {\n}", [["a.org", "b.org"]], id="parted by a comma alone"),
        pytest.param("a.org,\nb.org {\n}", [["a.org", "b.org"]], id="a comma carries on to the next line"),
        pytest.param("a.org\n{\n}", [["a.org"]], id="the brace on the next line"),
        pytest.param("a.org {\n}\nb.org {\n}", [["a.org"], ["b.org"]], id="two blocks"),
        pytest.param("a.org {\n} b.org {\n}", [["a.org"], ["b.org"]], id="two blocks on one line"),
        pytest.param("a.org b.org\nwhoami\n", [["a.org", "b.org"]], id="without braces, the keys are the first line"),
        pytest.param("a.org", [["a.org"]], id="a key and nothing else"),
    ],
)
def test_keys_of_blocks(text: str, expected: list[list[str]]) -> None:
    assert keys(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(". {\n}", [], id="none"),
        pytest.param(". {\n whoami\n log a b\n}", ["whoami", "log a b"], id="with arguments"),
        pytest.param(".\nwhoami\nlog a b", ["whoami", "log a b"], id="without braces"),
        pytest.param(". { whoami }", ["whoami"], id="on one line"),
        pytest.param(
            ".\nhealth {\n lameduck 5s\n}\nlog", ["health", ["lameduck 5s"], "log"], id="only the body braced"
        ),
        pytest.param(
            ". {\n health :8080 {\n  lameduck 5s\n }\n log\n}",
            ["health :8080", ["lameduck 5s"], "log"],
            id="with a body",
        ),
        pytest.param(". {\n health { lameduck 5s }\n}", ["health", ["lameduck 5s"]], id="a body on one line"),
        pytest.param(". {\n a {\n b {\n c d\n }\n e\n }\n}", ["a", ["b", ["c d"], "e"]], id="nested bodies"),
        pytest.param(". {\n a { }\n}", ["a"], id="an empty body is none"),
        pytest.param('. {\n log . "{" "}"\n}', ["log . { }"], id="quoted braces are words"),
    ],
)
def test_directives_of_a_block(text: str, expected: list[object]) -> None:
    (block,) = blocks(text)
    assert outline(block.directives) == expected


def test_a_directive_knows_its_line() -> None:
    (block,) = blocks(". {\n\n health {\n  lameduck 5s\n }\n}")
    (health,) = block.directives
    assert (health.line, health.body[0].line) == (3, 4)


NO_BLOCK = " found no server block, expected at least one: a line '. {', a line 'whoami' and a line '}'"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", NO_BLOCK),
        ("# nothing", NO_BLOCK),
        ("{\n}", "1: found '{', expected the zones of a server block, such as '.:53'"),
        ("}", "1: found '}', expected the zones of a server block, such as '.:53'"),
        ('""\nwhoami', "1: found an empty word, expected the zones of a server block, such as '.:53'"),
        ("a.org, {\n}", "1: found a comma, expected another zone after it"),
        ("a.org,", "1: found a comma, expected another zone after it"),
        (". {\n whoami\n", "1: expected '}' to end '.', found the end of the file"),
        (". {\n health {\n }\n", "1: expected '}' to end '.', found the end of the file"),
        (". {\n health {\n", "2: expected '}' to end 'health', found the end of the file"),
        (".\nwhoami\n}", "3: found '}', but no '{' is open"),
        (". {\n}\n}", "3: found '}', expected the zones of a server block, such as '.:53'"),
        (
            ". {\n health\n {\n }\n}",
            "3: found '{' at the start of a line, expected it at the end of the line that it belongs to",
        ),
        (". {\n" + "a {\n" * 12, "12: found bodies inside bodies, more than 10 deep"),
    ],
)
def test_a_wrong_shape_is_refused_with_its_line(text: str, expected: str) -> None:
    assert problem(text) == f"Corefile:{expected}"


def test_without_indentation_a_missing_inner_brace_is_found_by_the_directive_after_it() -> None:
    assert problem(".\nforward . 192.0.2.1 {\nmax_fails 2\nerrors\n") == (
        "Corefile:2: expected '}' to end 'forward', found the directive 'errors' at Corefile:4; is a '}' missing above?"
    )


@pytest.mark.parametrize("opening", ["forward . 192.0.2.1 {", "hosts {", "acl {", "header {", "log . {\n class all {"])
def test_a_directive_in_the_place_of_an_option_asks_for_a_brace_above(opening: str) -> None:
    ends = "}\n" * opening.count("{")
    assert problem(f".\n{opening}\nwhoami\n{ends}\n").endswith("; is a '}' missing above?")


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
