"""How many Nodes have each label."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.model_builders import node
from topodns.cluster.model import HOSTNAME_LABEL, Node
from topodns.cluster.node_labels import NodeLabels

LABELS = ("zone", "rack", "disk")
NODES = st.builds(
    lambda name, labels: node(name, dict.fromkeys(labels, "x")),
    st.sampled_from("abcd"),
    st.sets(st.sampled_from(LABELS)),
)


@given(st.lists(st.tuples(st.booleans(), NODES)))
def test_after_any_changes_each_label_has_as_many_nodes_as_have_it(changes: list[tuple[bool, Node]]) -> None:
    labels = NodeLabels()
    held: dict[str, Node] = {}
    for removed, one in changes:
        labels.move(held.pop(one.name, None), None if removed else one)
        if not removed:
            held[one.name] = one
    counts = {label: sum(label in each.labels for each in held.values()) for label in LABELS}
    assert {label: labels.with_label(label) for label in LABELS} == counts
    assert (labels.nodes, labels.with_label(HOSTNAME_LABEL)) == (len(held), len(held))
    assert labels.names == tuple(sorted({HOSTNAME_LABEL, *(label for label in LABELS if counts[label])}))
