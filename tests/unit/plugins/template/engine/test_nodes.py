"""Attributes of a compiled template: its constant text, and the fields that it reads."""

import pytest

from topodns.plugins.template.engine.parser import compile_template

KNOWN = {"Name": frozenset[str](), "Match": frozenset[str](), "Q": frozenset({"Type"})}


def test_the_fields_that_a_template_reads_are_known() -> None:
    assert compile_template("{{ .Name }}{{ with .Match }}{{ .X }}{{ end }}", KNOWN).fields == {"Name", "Match"}


@pytest.mark.parametrize(
    ("text", "constant"), [("a{{/* x */}} b", "a b"), ("", ""), ("a{{ 1 }}", None), ("{{ if 1 }}a{{ end }}", None)]
)
def test_text_without_actions_is_a_constant(text: str, constant: str | None) -> None:
    assert compile_template(text, KNOWN).constant == constant
