"""How many Nodes have each label."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.model_builders import node
from topodns.cluster.model import HOSTNAME_LABEL, Node
from topodns.cluster.node_labels import NodeLabels

LABELS = ("zone", "rack", "disk")
NODES = st.builds(
    lambda name, labels, hostname: node(name, {**dict.fromkeys(labels, "x"), **hostname}),
    st.sampled_from("abcd"),
    st.sets(st.sampled_from(LABELS)),
    st.sampled_from([{}, *({HOSTNAME_LABEL: value} for value in "abx")]),
)


def after(changes: list[tuple[bool, Node]]) -> tuple[NodeLabels, list[Node]]:
    """The labels after these changes, of which the first part says that the Node is removed, and the Nodes left."""
    labels = NodeLabels()
    held: dict[str, Node] = {}
    for removed, one in changes:
        labels.move(held.pop(one.name, None), None if removed else one)
        if not removed:
            held[one.name] = one
    return labels, list(held.values())


@given(st.lists(st.tuples(st.booleans(), NODES)))
def test_after_any_changes_each_label_has_as_many_nodes_as_have_it(changes: list[tuple[bool, Node]]) -> None:
    labels, nodes = after(changes)
    counts = {label: sum(label in each.labels for each in nodes) for label in LABELS}
    assert {label: labels.with_label(label) for label in LABELS} == counts
    assert (labels.nodes, labels.with_label(HOSTNAME_LABEL)) == (len(nodes), len(nodes))
    assert labels.names == tuple(sorted({HOSTNAME_LABEL, *(label for label in LABELS if counts[label])}))


@given(st.lists(st.tuples(st.booleans(), NODES)))
def test_after_any_changes_nodes_are_found_by_a_hostname_that_is_not_their_name(
    changes: list[tuple[bool, Node]],
) -> None:
    labels, nodes = after(changes)
    others: dict[str, set[str]] = {}
    for one in nodes:
        if (value := one.labels.get(HOSTNAME_LABEL, one.name)) != one.name:
            others.setdefault(value, set()).add(one.name)
    assert labels.other_hostnames == others
