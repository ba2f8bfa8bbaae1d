"""`view`, and the server blocks of one zone that it sets apart."""

import pytest

from tests.support.corefile_settings import block_problem, only_block, problem, settings
from topodns.plugins.view.settings import View


@pytest.mark.parametrize(
    ("lines", "expressions"),
    [
        ("", ()),
        ("expr type() in ['A', 'AAAA']", ("type() in ['A', 'AAAA']",)),
        ("expr  do()   ||  type()=='A'", ("do() || type()=='A'",)),
        ("expr incidr(client_ip(), '10.0.0.0/8')\nexpr do()", ("incidr(client_ip(), '10.0.0.0/8')", "do()")),
        ("expr \"name() == 'a.' && do()\"", ("name() == 'a.' && do()",)),
        (r"expr name() matches '^abc\\..*\\.example\\.com\\.$'", (r"name() matches '^abc\\..*\\.example\\.com\\.$'",)),
    ],
)
def test_a_view_has_a_name_and_expressions(lines: str, expressions: tuple[str, ...]) -> None:
    assert only_block(f"view inside {{\n{lines}\n}}").settings.get("view") == View("inside", expressions)


def test_a_view_may_have_no_body() -> None:
    assert only_block("view inside").settings.get("view") == View("inside")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("view {\nexpr true\n}", "Corefile:2: 'view' has no argument, expected one name"),
        ("view a b {\nexpr true\n}", "Corefile:2: 'view' has the arguments 'a b', expected one name"),
        ("view a {\nexpr true\n}\nview b {\n}", "Corefile:5: found 'view' again, first at Corefile:2"),
        ("view a {\nexp true\n}", "Corefile:3: unknown option 'exp' of 'view', did you mean 'expr'?"),
        ("view a {\nexpr\n}", "Corefile:3: 'expr' has no argument, expected an expression, such as type() in"),
        ("view a {\nexpr do() {\ntrue\n}\n}", "Corefile:4: found 'true', but 'expr' has no options"),
        ("view a {\nexpr name()\n}", "Corefile:3: 'name()' is no expression: found a string, expected a condition"),
        (
            'view a {\nexpr name() == "example.com."\n}',
            "Corefile:3: 'name() == example.com.' is no expression: found 'example' at character 11, expected a "
            "function such as name(), or a text in single quotes: double ones are the Corefile's own",
        ),
    ],
)
def test_values_without_a_meaning_are_refused(lines: str, expected: str) -> None:
    assert block_problem(lines).startswith(expected)


PLAIN = ". {\n}\n"
VIEWED = ". {\n view a\n}\n"
HERE = ". {\n bind 127.0.0.1\n}\n"
VIEWED_HERE = ". {\n view a\n bind 127.0.0.1\n}\n"
VIEWED_THERE = ". {\n view a\n bind 127.0.0.2 127.0.0.1\n}\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(VIEWED + PLAIN, id="the block without a view last"),
        pytest.param(PLAIN + VIEWED, id="the block without a view first, where it shadows the other as in CoreDNS"),
        pytest.param(VIEWED + VIEWED, id="only views, of one name even"),
        pytest.param(VIEWED_HERE + HERE, id="on one address"),
        pytest.param(HERE + VIEWED_THERE, id="on one address of two"),
        pytest.param(VIEWED_HERE + PLAIN, id="on one address, and then on all of them"),
        pytest.param(VIEWED + HERE, id="on all addresses, and then on one"),
    ],
)
def test_a_view_lets_blocks_share_a_zone_and_a_port(text: str) -> None:
    assert len(settings(text).blocks) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(VIEWED + PLAIN + PLAIN, "Corefile:6: found .:53 again, first at Corefile:4", id="two without"),
        pytest.param(PLAIN + VIEWED_HERE, "Corefile:3: found .:53 again, first at Corefile:1", id="on all, then one"),
        pytest.param(HERE + VIEWED, "Corefile:4: found .:53 again, first at Corefile:1", id="on one, then on all"),
        pytest.param("a. a. {\n view a\n}", "Corefile:1: found a.:53 again, first at Corefile:1", id="in one block"),
    ],
)
def test_two_blocks_without_a_view_and_views_that_share_some_addresses_are_refused(text: str, expected: str) -> None:
    assert problem(text) == expected
