"""JSON text of manifests: items with their lines, and what is no JSON."""

import pytest

from tests.support.manifest_text import parsed, problem


def test_json_items_have_lines_too_and_values_may_follow_each_other() -> None:
    text = """\
        {
            "apiVersion": "v1",
            "items": [
                {"kind": "Node"},
                {
                    "kind": "Pod"}
            ],
            "kind": "List"
        }
        {"kind": "Service"}
        """
    assert parsed(text) == [({"kind": "Node"}, 4), ({"kind": "Pod"}, 5), ({"kind": "Service"}, 10)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"kind": "Pod"', "m.yaml:1: expected ',', found the end of the file"),
        ('{"kind": "Pod"}\n{"kind":\n"Po', "m.yaml:3: "),
        ('{"kind":\n "Pod"; }', "m.yaml:2: expected ',', found '; }'"),
        ('{"kind": "Pod"}\nrest', "m.yaml:2: expected an object, found text"),
        ('{"a": ' + "[" * 100_000 + "}", "m.yaml:1: nested more than 100 levels deep"),
        ('{"a": "\x07"}', "m.yaml:1: Invalid control character at"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_text_that_is_no_json_is_refused_with_file_and_line(text: str | bytes, expected: str) -> None:
    assert problem(text).startswith(expected)


@pytest.mark.parametrize(
    "text",
    ['{"kind": "Pod",}', "{kind: Pod}", '{"kind": Pod # why\n}', "{'kind': 'Pod'}", '{"kind": &a "Pod", "b": *a}'],
)
def test_text_that_is_no_json_may_be_yaml(text: str) -> None:
    assert [found["kind"] for found, _ in parsed(text)] == ["Pod"]


def test_what_yaml_cannot_read_of_json_is_read() -> None:
    text = '{"kind": "Pod", "a": "\\ud83d\\ude00"}'
    assert parsed(f"{text}\n---\n{text}{text}") == [({"kind": "Pod", "a": "\U0001f600"}, line) for line in (1, 3, 3)]
