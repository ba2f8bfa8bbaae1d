"""Actions that cannot be split into tokens."""

import pytest

from topodns.plugins.template.engine.lexer import BadTemplate
from topodns.plugins.template.engine.parser import compile_template

KNOWN = {"Name": frozenset[str](), "Match": frozenset[str](), "Q": frozenset({"Type"})}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a {{", "{{: found the end of the text, expected }}"),
        ("{{ .Name }", "{{ .Name }}: found '}', which no template has there, or a quote that is never closed"),
        ('{{ "a }}', "{{  }}: found '\"', which no template has there, or a quote that is never closed"),
        ("{{/* a */ b }}", "{{ /* a */ }}: found more than the comment, expected }} after it"),
    ],
)
def test_an_action_that_cannot_be_split_is_refused(text: str, problem: str) -> None:
    with pytest.raises(BadTemplate) as refused:
        compile_template(text, KNOWN)
    assert problem in str(refused.value)
