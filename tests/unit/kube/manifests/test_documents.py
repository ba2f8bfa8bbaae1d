"""Manifest text becomes objects with their lines, or one error that says where."""

import json
from contextlib import suppress
from textwrap import dedent

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from topodns.kube.manifests.documents import MAX_BYTES, parse_documents
from topodns.kube.manifests.value import BadManifest


def parsed(text: str | bytes) -> list[tuple[dict[str, object], int]]:
    data = dedent(text).encode() if isinstance(text, str) else text
    return [(found.object, found.line) for found in parse_documents(data, "m.yaml") if found]


def problem(text: str | bytes) -> str:
    with pytest.raises(BadManifest) as caught:
        parsed(text)
    return str(caught.value)


def test_each_yaml_document_is_an_object_with_the_line_where_it_begins() -> None:
    text = """\
        # a comment, then the first
        kind: Node
        ---
        ---
        # another
        kind: Pod
        ...
        """
    assert parsed(text) == [({"kind": "Node"}, 2), ({"kind": "Pod"}, 6)]


def test_a_list_is_its_items_with_the_line_of_each_as_kubectl_prints_it() -> None:
    text = """\
        apiVersion: v1
        items:
        - apiVersion: v1
          kind: Node
        - apiVersion: v1
          kind: Service
          items: [not, listed]
        kind: List
        metadata: {resourceVersion: ""}
        """
    assert parsed(text) == [
        ({"apiVersion": "v1", "kind": "Node"}, 3),
        ({"apiVersion": "v1", "kind": "Service", "items": ["not", "listed"]}, 5),
    ]


def test_items_of_a_typed_list_have_the_kind_and_version_of_the_list() -> None:
    text = """\
        kind: EndpointSliceList
        apiVersion: discovery.k8s.io/v1
        items:
        - metadata: {name: a}
        - {metadata: {name: b}, apiVersion: discovery.k8s.io/v1beta1}
        """
    assert parsed(text) == [
        ({"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "metadata": {"name": "a"}}, 4),
        ({"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1beta1", "metadata": {"name": "b"}}, 5),
    ]


def test_lists_in_lists_are_flattened() -> None:
    text = "{kind: List, items: [{kind: PodList, apiVersion: v1, items: [{metadata: {name: a}}]}]}"
    assert parsed(f"---\n{text}") == [({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}, 2)]


@pytest.mark.parametrize("items", ["items: []", "items: null", "items:"])
def test_an_empty_list_is_no_object(items: str) -> None:
    assert parsed(f"kind: List\n{items}\n") == []


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


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert parsed(b"\xef\xbb\xbfkind: Pod\n") == [({"kind": "Pod"}, 1)]
    assert parsed(b'\xef\xbb\xbf{"kind": "Pod"}') == [({"kind": "Pod"}, 1)]


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("text", "text"),
        ("10.96.0.1", "10.96.0.1"),
        ("fd00::1", "fd00::1"),
        ("2024-05-01T10:00:00Z", "2024-05-01T10:00:00Z"),
        ("2024-05-01", "2024-05-01"),
        ("12:30", "12:30"),
        ("53", 53),
        ("-7", -7),
        ("0x1F", 31),
        ("0o17", 15),
        ("0", 0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("'53'", "53"),
        ('"true"', "true"),
        ("!!str 53", "53"),
        ("true", True),
        ("no", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("'~'", "~"),
        ("1.2.3", "1.2.3"),
        ("7f", "7f"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_plain_scalars_have_the_types_of_kubernetes(scalar: str, value: object) -> None:
    [(found, _)] = parsed(f"kind: X\nvalue: {scalar}\n")
    assert (found["value"], type(found["value"])) == (value, type(value))


def test_keys_are_always_text() -> None:
    assert parsed("kind: X\n8080: a\ntrue: b\n") == [({"kind": "X", "8080": "a", "true": "b"}, 1)]


def test_anchors_aliases_and_merge_keys_are_followed() -> None:
    text = """\
        kind: X
        base: &base {a: 1, b: 2}
        again: *base
        merged: {<<: *base, b: 3}
        several: {<<: [{b: 4}, *base]}
        """
    [(found, _)] = parsed(text)
    assert found["again"] == {"a": 1, "b": 2}
    assert found["merged"] == {"a": 1, "b": 3}
    assert found["several"] == {"a": 1, "b": 4}


def laughs(levels: int) -> str:
    """A billion laughs: each level holds the one before it ten times."""
    lines = ["a0: &a0 lol"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, levels + 1)]
    return "kind: X\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: X\n  bad: indent\n", "m.yaml:2: mapping values are not allowed in this context"),
        ("kind: 'open\n", "m.yaml:1: found unexpected end of stream"),
        ("kind: X\nkind: Y\n", "m.yaml:2: key 'kind' is there twice"),
        ("kind: X\n[a]: b\n", "m.yaml:2: a key must be text"),
        ("kind: X\n? {a: b}\n: c\n", "m.yaml:2: a key must be text"),
        ("kind: !!python/name:os.system x\n", "m.yaml:1: tag tag:yaml.org,2002:python/name:os.system has no meaning"),
        ("kind: X\nset: !!set {a, b}\n", "m.yaml:2: tag tag:yaml.org,2002:set has no meaning in a manifest"),
        ("kind: X\na: *nowhere\n", "m.yaml:2: alias *nowhere stands for no value that ended before it"),
        ("kind: X\na: &a [*a]\n", "m.yaml:2: alias *a stands for no value that ended before it"),
        ("a: &a x\n---\nb: *a\n", "m.yaml:3: alias *a stands for no value"),
        ("kind: X\na: {<<: text}\n", "m.yaml:2: the value of << must be a mapping"),
        (laughs(9), "m.yaml:7: aliases repeat more than 100000 values"),
        ("kind: X\na: " + "[" * 200 + "]" * 200, "m.yaml:2: nested more than 100 levels deep"),
        ("apiV", "m.yaml:1: expected an object, found text"),
        ("- kind: Pod\n", "m.yaml:1: expected an object, found a list"),
        ("kind: List\nitems: 7\n", "m.yaml:1: items of List: expected a list, found 7"),
        ('{"kind": "List", "items": [' * 100 + "]}" * 100, "m.yaml:1: more than 10 lists within each other"),
        ("apiVersion: v1\nitems:\n- kind: Pod\n", "m.yaml:1: a list of items without kind: is it cut off?"),
        ('{"kind": "Pod"', "m.yaml:1: expected ',', found the end of the file"),
        ('{"kind":\n "Pod",}', "m.yaml:2: expected a name in double quotes, found '}'"),
        ('{"items": [\n{"kind": }]}', "m.yaml:2: Expecting value, found '}]}'"),
        ('{"kind": "Pod"}\nrest', "m.yaml:2: expected '{', found 'rest'"),
        ('{"a": NaN}', "m.yaml:1: NaN is no JSON, found 'NaN}'"),
        ('{"a": ' + "9" * 5000 + "}", "m.yaml:1: Exceeds the limit"),
        ('{"a": ' + "[" * 100_000 + "}", "m.yaml:1: nested too deeply"),
        (b"kind: X\na: \0\n", "m.yaml:2: a NUL byte; expected UTF-8 text"),
        (b"kind: X\n\na: \xff\n", "m.yaml:3: not UTF-8"),
        ("kind: X\n".encode("utf-16"), "m.yaml:1: "),
        (b"kind: X\na: \x07\n", "m.yaml:2: not YAML: control characters are not allowed"),
        (b"#" * (MAX_BYTES + 1), "m.yaml:1: longer than 67108864 bytes"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_an_unreadable_document_is_one_error_with_file_and_line(text: str | bytes, expected: str) -> None:
    assert problem(text).startswith(expected)


def test_documents_before_a_broken_one_are_out_before_the_error() -> None:
    documents = parse_documents(b"kind: Pod\n---\nkind: [\n", "m.yaml")
    assert next(documents) == ({"kind": "Pod"}, 1)
    with pytest.raises(BadManifest, match=r"^m\.yaml:3: "):
        list(documents)


@pytest.mark.parametrize("write", [yaml.safe_dump, json.dumps], ids=["YAML", "JSON"])
def test_a_long_list_lets_others_run_in_between(write: object) -> None:
    assert callable(write)
    text = write({"kind": "List", "items": [{"kind": "Pod", "n": n} for n in range(1000)]})
    assert sum(found is None for found in parse_documents(text.encode(), "m")) > 10


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8", exclude_characters="\0")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc~1.:", min_size=1), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, max_size=3))
def test_text_written_as_yaml_or_json_is_read_back(values: list[object]) -> None:
    wanted = [{"kind": "X", "value": value} for value in values]
    as_list = {"kind": "List", "items": wanted}
    for text in (
        yaml.safe_dump_all(wanted),
        yaml.safe_dump(as_list),
        json.dumps(as_list),
        json.dumps(as_list, indent=1),
    ):
        assert [found for found, _ in parsed(text.encode())] == wanted


@settings(max_examples=150, deadline=None)
@given(st.text("{}[]:,-#&*!?|>'\"%@`<~ \n\tab1.") | st.binary(max_size=60))
def test_no_text_raises_anything_else(found: str | bytes) -> None:
    data = found.encode() if isinstance(found, str) else found
    for text in (data, b"{" + data):
        with suppress(BadManifest):
            list(parse_documents(text, "m.yaml"))
