"""Attributes of a compiled template: its text before a query, and the fields that it reads."""

import pytest

from topodns.plugins.template.engine.parser import compile_template

KNOWN = {"Name": frozenset[str](), "Match": frozenset[str](), "Q": frozenset({"Type"})}


def test_the_fields_that_a_template_reads_are_known() -> None:
    assert compile_template("{{ .Name }}{{ with .Match }}{{ .X }}{{ end }}", KNOWN).fields == {"Name", "Match"}


@pytest.mark.parametrize(
    ("text", "values", "filled"),
    [
        ("a{{/* x */}} b", {}, "a b"),
        ("", {}, ""),
        ("a{{ 1 }}", {}, None),
        ("{{ if 1 }}a{{ end }}", {}, None),
        ("a {{ .Name }}", {}, None),
        ("a {{ .Name }}{{- .Name }} b", {"Name": "x."}, "a x.x. b"),
        ("a {{ .Q.Type }}", {"Q": "x"}, None),
        ("{{ .Name | len }}", {"Name": "x."}, None),
    ],
)
def test_text_is_known_before_a_query_if_its_actions_are(text: str, values: dict[str, str], filled: str | None) -> None:
    assert compile_template(text, KNOWN).filled(values) == filled
