"""Nodes grouped by the values of the labels that a policy names."""

from tests.support.model_builders import node
from topodns.inspect.model import MAX_GROUPINGS, NodeGroups

H = "kubernetes.io/hostname"
Z = "topology.kubernetes.io/zone"


def names(groups: NodeGroups, *labels: str) -> list[list[str]]:
    found = groups.grouping(frozenset(labels)).groups.values()
    return sorted(sorted(one.name for one in group.nodes) for group in found)


def test_nodes_with_equal_values_are_in_one_group() -> None:
    some = [node("a", {Z: "1", "rack": "x"}), node("b", {Z: "1", "rack": "x"}), node("c", {Z: "1", "rack": "y"})]
    assert names(NodeGroups({one.name: one for one in some}), "rack") == [["a", "b"], ["c"]]
    assert names(NodeGroups({one.name: one for one in some})) == [["a", "b", "c"]]


def test_an_empty_value_is_not_an_absent_one() -> None:
    some = [node("a", {"rack": ""}), node("b", {"other": ""})]
    assert names(NodeGroups({one.name: one for one in some}), "rack") == [["a"], ["b"]]


def test_nodes_without_any_label_are_apart() -> None:
    """Their clients count as unlocated."""
    some = [node("a"), node("b", {"other": ""})]
    assert names(NodeGroups({one.name: one for one in some}), "rack") == [["a"], ["b"]]


def test_the_hostname_is_in_no_grouping() -> None:
    some = [node("a", {H: "a"}), node("b", {H: "b"})]
    groups = NodeGroups({one.name: one for one in some})
    assert names(groups, H) == [["a", "b"]]


def test_nodes_are_found_by_hostname_and_without_that_label_by_name() -> None:
    groups = NodeGroups({"a": node("a", {H: "x"}), "b": node("b", {H: "x"}), "c": node("c"), "d": node("d", {H: "d"})})
    assert groups.with_hostnames(["x"]) >= {"a", "b"}
    assert groups.with_hostnames(["c", "d"]) == {"c", "d"}
    assert groups.with_hostnames([]) == set()


def test_groupings_are_kept_up_to_a_bound() -> None:
    groups = NodeGroups({"a": node("a", {"x": ""})})
    assert groups.grouping(frozenset({"x"})) is groups.grouping(frozenset({"x", H, Z}))
    first = groups.grouping(frozenset({"x"}))
    for number in range(MAX_GROUPINGS):
        groups.grouping(frozenset({f"k{number}"}))
    assert groups.grouping(frozenset({"x"})) is not first


def test_a_large_grouping_is_made_in_steps() -> None:
    groups = NodeGroups({f"n{at}": node(f"n{at}") for at in range(1000)})
    assert len(list(groups.grouping_steps(frozenset()))) == 4 + 4, "labels are counted, then Nodes grouped"
    assert list(groups.grouping_steps(frozenset())) == []
