"""JSON text of manifests: items with their lines, and what is no JSON."""

from textwrap import dedent

import pytest

from topodns.kube.manifests.documents import parse_documents
from topodns.kube.manifests.value import BadManifest


def parsed(text: str | bytes) -> list[tuple[dict[str, object], int]]:
    data = dedent(text).encode() if isinstance(text, str) else text
    return [(found.object, found.line) for found in parse_documents(data, "m.yaml") if found]


def problem(text: str | bytes) -> str:
    with pytest.raises(BadManifest) as caught:
        parsed(text)
    return str(caught.value)


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


def laughs(levels: int) -> str:
    """A billion laughs: each level holds the one before it ten times."""
    lines = ["a0: &a0 lol"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, levels + 1)]
    return "kind: X\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"kind": "Pod"', "m.yaml:1: expected ',', found the end of the file"),
        ('{"kind":\n "Pod",}', "m.yaml:2: expected a name in double quotes, found '}'"),
        ('{"items": [\n{"kind": }]}', "m.yaml:2: Expecting value, found '}]}'"),
        ('{"kind": "Pod"}\nrest', "m.yaml:2: expected '{', found 'rest'"),
        ('{"a": NaN}', "m.yaml:1: NaN is no JSON, found 'NaN}'"),
        ('{"a": ' + "9" * 5000 + "}", "m.yaml:1: Exceeds the limit"),
        ('{"a": ' + "[" * 100_000 + "}", "m.yaml:1: nested too deeply"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_text_that_is_no_json_is_refused_with_file_and_line(text: str | bytes, expected: str) -> None:
    assert problem(text).startswith(expected)
