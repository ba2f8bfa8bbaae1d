"""values.yaml, its schema and the README say the same."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.chart.helm import CHART
from tests.support.chart.readme import comments, leaves, readme

TEXT = (CHART / "values.yaml").read_text(encoding="utf-8")
VALUES = yaml.safe_load(TEXT)
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))


def objects(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The schema of each object that has keys of its own, by its dotted path."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    if "properties" in schema:
        yield path, schema
        for key, below in schema["properties"].items():
            yield from objects(below, f"{path}.{key}".strip("."))


def at(path: str) -> Any:
    found: Any = VALUES
    for key in path.split(".") if path else ():
        found = found.get(key) if isinstance(found, dict) else None
    return found


def test_every_value_is_in_the_schema_and_every_key_of_the_schema_a_value() -> None:
    for path, schema in objects(SCHEMA):
        if at(path):  # an empty one is for the user to fill
            assert at(path).keys() == schema["properties"].keys() - {"global"}, path


def test_every_object_of_the_schema_refuses_unknown_keys() -> None:
    assert [path for path, schema in objects(SCHEMA) if schema.get("additionalProperties") is not False] == []


def test_the_readme_equals_the_output_of_make_manifests() -> None:
    assert (CHART / "README.md").read_text(encoding="utf-8") == readme()


def test_a_comment_belongs_to_a_value_that_has_a_row() -> None:
    assert comments(TEXT).keys() <= {path for path, _ in leaves(VALUES)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# -- One.\na: 1\n", {"a": "One."}),
        ("# -- One,\n# and more.\na: 1\nb: 2\n", {"a": "One, and more."}),
        ("a:\n  # -- Two.\n  b: 1\nc:\n  b: 2\n", {"a.b": "Two."}),
        ("# No text.\na: 1\n", {}),
        ("# -- Lost.\n\na: 1\n", {}),
    ],
)
def test_the_comment_above_a_key_is_its_description(text: str, found: dict[str, str]) -> None:
    assert comments(text) == found
