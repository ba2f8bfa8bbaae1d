"""`printf`, as Go's fmt writes."""

import pytest

from tests.unit.plugins.template.engine.scene import rendered
from topodns.plugins.template.engine.values import RenderFailed


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
