"""The labels of a server block: where each value comes from, and for which clients an answer by them is the same."""

import pytest

from tests.support.query_builders import ask, client
from topodns.dns.name import ROOT, parse_name
from topodns.query.metadata import Metadata, MetadataSource, ReadLabel, is_label, scope_of, without_metadata
from topodns.query.plugin import Scope


def constant(value: str) -> ReadLabel:
    return lambda query, client: value


FIRST = MetadataSource({"a/x": constant("first")}.get)
SECOND = MetadataSource({"a/x": constant("second"), "b/y": constant("")}.get)


@pytest.mark.parametrize(
    ("label", "value"),
    [("a/x", "first"), ("b/y", ""), ("c/z", None)],
)
def test_the_first_plugin_with_a_label_gives_its_value(label: str, value: str | None) -> None:
    assert Metadata((ROOT,), [FIRST, SECOND]).reader(label)(ask("www.example."), client()) == value


def test_a_name_outside_the_zones_has_no_labels() -> None:
    read = Metadata((parse_name("example."),), [FIRST]).reader("a/x")
    assert [read(ask(name), client()) for name in ("www.example.", "example.", "example.org.")] == [
        "first",
        "first",
        None,
    ]


def test_without_the_directive_no_label_has_a_value() -> None:
    assert without_metadata("a/x")(ask("www.example."), client()) is None


@pytest.mark.parametrize(
    ("text", "is_one"), [("a/b", True), ("a/b/c", True), ("a", False), ("/b", False), ("a/", False), ("", False)]
)
def test_a_label_has_a_slash_inside(text: str, is_one: bool) -> None:
    assert is_label(text) is is_one


@pytest.mark.parametrize(
    ("labels", "scope"),
    [
        ([], Scope.EVERYONE),
        (["kubernetes/namespace", "view/name"], Scope.EVERYONE),
        (["kubernetes/client-namespace", "kubernetes/kind"], Scope.NAMESPACE),
        (["kubernetes/client-pod-name"], Scope.POD),
        (["kubernetes/client-namespace", "kubernetes/client-label/app"], Scope.POD),
    ],
)
def test_what_is_read_of_a_client_s_pod_decides_who_shares_the_answer(labels: list[str], scope: Scope) -> None:
    assert scope_of(labels) is scope
