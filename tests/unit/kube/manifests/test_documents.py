"""Manifest text becomes objects with their lines, or one error that says where."""

import json
import re
from contextlib import suppress

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.manifest_text import parsed, problem
from topodns.kube.manifests.documents import MAX_BYTES, parse_documents
from topodns.kube.manifests.value import BadManifest


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


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert parsed(b"\xef\xbb\xbfkind: Pod\n") == [({"kind": "Pod"}, 1)]
    assert parsed(b'\xef\xbb\xbf{"kind": "Pod"}') == [({"kind": "Pod"}, 1)]


@pytest.mark.parametrize("separator", ["---", "--- # next", "---\r"])
@pytest.mark.parametrize("document", ["kind: Pod\n", '{"kind": "Pod"}\n'])
def test_each_document_may_have_a_byte_order_mark(separator: str, document: str) -> None:
    """As of files that were written one behind the other (YAML 1.2 section 5.2)."""
    text = f"\ufeffkind: Node\n{separator}\n\ufeff{document}"
    assert parsed(text) == [({"kind": "Node"}, 1), ({"kind": "Pod"}, 3)]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["kind: Pod\r\nname: zoë\r\n", '{"kind": "Pod", "name": "zoë"}'])
def test_utf_16_with_a_byte_order_mark_is_read(encoding: str, text: str) -> None:
    """PowerShell's `>` writes it; kubectl reads it."""
    assert parsed(f"\ufeff{text}".encode(encoding)) == [({"kind": "Pod", "name": "zoë"}, 1)]


@pytest.mark.parametrize("text", [b"kind: Pod\nname: Gr\xfc\xdfe\n", b'{"kind": "Pod", "name": "Gr\xfc\xdfe"}'])
def test_octets_that_are_no_utf_8_are_replaced_as_by_kubectl(text: bytes) -> None:
    assert parsed(text) == [({"kind": "Pod", "name": "Gr\ufffd\ufffde"}, 1)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("apiV", "m.yaml:1: expected an object, found text"),
        ("- kind: Pod\n", "m.yaml:1: expected an object, found a list"),
        ("kind: List\nitems: 7\n", "m.yaml:1: items of List: expected a list, found 7"),
        ('{"kind": "List", "items": [' * 100 + "]}" * 100, "m.yaml:1: more than 10 lists within each other"),
        ("apiVersion: v1\nitems:\n- kind: Pod\n", "m.yaml:1: a list of items without kind: is it cut off?"),
        (b"kind: X\na: \0\n", "m.yaml:2: found a control character, expected text"),
        ("kind: X\n".encode("utf-32"), "m.yaml:1: found UTF-16 or UTF-32, expected UTF-8"),
        ("kind: X\n".encode("utf-16-be"), "m.yaml:1: found UTF-16 or UTF-32, expected UTF-8"),
        (b"#" * (MAX_BYTES + 1), "m.yaml:1: longer than 67108864 bytes"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_an_unreadable_document_is_one_error_with_file_and_line(text: str | bytes, expected: str) -> None:
    assert problem(text).startswith(expected)


def test_documents_before_a_broken_one_are_out_before_the_error() -> None:
    documents = filter(None, parse_documents(b"kind: Pod\n---\nkind: [\n", "m.yaml"))
    assert next(documents) == ({"kind": "Pod"}, 1)
    with pytest.raises(BadManifest, match=r"^m\.yaml:3: "):
        list(documents)


@pytest.mark.parametrize("write", [yaml.safe_dump, json.dumps], ids=["YAML", "JSON"])
def test_a_long_list_lets_others_run_in_between(write: object) -> None:
    assert callable(write)
    text = write({"kind": "List", "items": [{"kind": "Pod", "n": n} for n in range(1000)]})
    assert sum(found is None for found in parse_documents(text.encode(), "m")) > 10


# PyYAML writes some texts without quotes that are numbers or booleans to Kubernetes, and so to us.
# PyYAML writes the line ends of Unicode within quotes as they are, and reads them as a space.
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\x85\u2028\u2029")).filter(
    lambda text: re.fullmatch(r"[-+]?[0-9.][0-9a-fA-FoOxX_.]*([eE][-+]?[0-9]+)?|[yYnN]", text) is None
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXTS,  # larger integers become floats
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


def block(value: dict[str, object]) -> str:
    return yaml.safe_dump(value, allow_unicode=True)


def flow(value: dict[str, object]) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=20)


STYLES = (json.dumps, lambda value: json.dumps(value, indent="\t", ensure_ascii=False), block, flow)
SEPARATORS = (
    "---\n",
    "--- # next\n",
    "---  \t\n# f\u00fcr {\n\n",
    "...\n---\n",
    "---\n---\n",
    "---\nnull\n---\n",
    "...\n%YAML 1.1\n---\n",
)
TAILS = ("", "---", "---\n", "--- \n# end", "...\n", "\n\n", "---\nnull\n", "# {")
HEADS = ("", "\ufeff", "# {\n", "---\n", "%YAML 1.2\n---\n", "\n \n", "--- # {\n")
INNER = st.dictionaries(st.text("ab-/", min_size=1), TEXTS | st.integers(0, 9) | st.booleans() | st.none(), max_size=3)
DOCUMENTS = st.tuples(INNER, st.sampled_from(STYLES), st.sampled_from(SEPARATORS), st.booleans())


@settings(max_examples=100, deadline=None)
@given(st.lists(DOCUMENTS, max_size=6), st.sampled_from(HEADS), st.sampled_from(TAILS), st.sampled_from(["\n", "\r\n"]))
def test_documents_of_any_styles_in_any_order_are_read(
    documents: list[tuple[dict[str, object], object, str, bool]], head: str, tail: str, line_end: str
) -> None:
    """A text within quotes may have line ends of its own, so these are drawn without carriage returns."""
    text, wanted, last_was_json = head, list[dict[str, object]](), False
    for number, (inner, style, separator, adjacent) in enumerate(documents):
        assert callable(style)
        value: dict[str, object] = {
            "kind": "List",
            "items": [{"kind": "X", "a": inner}, {"kind": "X", "number": number}],
        }
        is_json = style in STYLES[:2]
        if number and not (adjacent and is_json and last_was_json):
            text += separator
        written = style(value)
        text += written if written.endswith("\n") else f"{written}\n"
        wanted += [{"kind": "X", "a": inner}, {"kind": "X", "number": number}]
        last_was_json = is_json
    octets = (text + tail).replace("\n", line_end).encode()
    assert [found for found, _ in parsed(octets)] == wanted


@settings(max_examples=100, deadline=None)
@given(st.text("{}[]:,-#&*!?|>'\"%@`<~ \n\tab1.") | st.binary(max_size=60))
def test_no_text_raises_anything_else(found: str | bytes) -> None:
    data = found.encode() if isinstance(found, str) else found
    for text in (data, b"{" + data, b"{}\n---\n{" + data, b"%" + data + b"\n---\n{}"):
        with suppress(BadManifest):
            list(parse_documents(text, "m.yaml"))
