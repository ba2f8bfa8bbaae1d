"""The labels of Nodes by their locators, where there are no Node objects."""

import time
from itertools import permutations

import pytest

from tests.support.model_builders import (
    endpoint,
    endpoint_slice,
    listed_state,
    node,
    node_locator,
    pod_locator,
    service,
    state_of,
)
from topodns.cluster.model import ClusterObject, Deleted, Kind, ObjectKey, PodLocator, Upserted
from topodns.cluster.state import ClusterState
from topodns.dependency import label_fact, node_fact, service_fact

KINDS: tuple[Kind, ...] = ("NodeLocator", "PodLocator")
ZONE = "topology.kubernetes.io/zone"


def of_pod(name: str, zone: str, on: str = "n1") -> PodLocator:
    """A PodLocator whose Node is in this zone; "" for one without labels."""
    return pod_locator(name, [], on, labels={ZONE: zone} if zone else {})


def zone(state: ClusterState, name: str = "n1") -> str | None:
    found = state.node(name)
    return found.labels[ZONE] if found is not None else None


def test_the_labels_in_pod_locators_stand_for_those_of_an_unknown_node() -> None:
    state = listed_state(KINDS, of_pod("p", "a"), of_pod("q", "", "n2"))
    assert (zone(state), zone(state, "n2")) == ("a", None)
    assert set(state.all_nodes()) == {"n1"}
    state.apply(Upserted(node("n1", {ZONE: "b"})), 1)
    assert zone(state) == "b"
    state.apply(Deleted("Node", ObjectKey("", "n1")), 2)
    assert zone(state) == "a"
    state.apply(Upserted(of_pod("p", "a", "n3")), 3)
    assert (zone(state), zone(state, "n3")) == (None, "a")
    state.apply(Deleted("PodLocator", ObjectKey("default", "p")), 4)
    assert not state.all_nodes()


def test_a_node_locator_with_labels_counts_before_pod_locators() -> None:
    state = listed_state(KINDS, of_pod("p", "a"), of_pod("q", "a"), node_locator("n1", labels={ZONE: "b"}))
    assert zone(state) == "b"
    state.apply(Upserted(node_locator("n1")), 1)
    assert zone(state) == "a"


@pytest.mark.parametrize(
    ("zones", "taken"),
    [("aab", "a"), ("abb", "b"), ("ab", "a"), ("aabb", "a"), ("ba-", "a"), ("b--", "b"), ("---", None)],
)
def test_the_labels_that_most_pod_locators_have_count_whatever_the_order(zones: str, taken: str | None) -> None:
    """Of equally many those that are first in order; old PodLocators without labels do not count."""
    locators = [of_pod(f"p{at}", each.replace("-", "")) for at, each in enumerate(zones)]
    for order in permutations(locators):
        state = listed_state(KINDS)
        for each in order:
            state.apply(Upserted(each), 1)
        assert zone(state) == taken


def test_while_labels_are_written_one_by_one_all_servers_take_the_same_ones() -> None:
    state = listed_state(KINDS, *(of_pod(f"p{at}", "a") for at in range(5)))
    seen = []
    for at in (3, 0, 4, 1, 2):
        state.apply(Upserted(of_pod(f"p{at}", "b")), 1)
        assert zone(state) == zone(listed_state(KINDS, *state.locators.pod_locators.values()))
        seen.append(zone(state))
    assert seen == ["a", "a", "b", "b", "b"]


def test_labels_are_counted_as_those_of_nodes() -> None:
    state = listed_state(KINDS, of_pod("p", "a"), of_pod("q", "a", "n2"), of_pod("r", "", "n3"))
    assert (state.node_labels.nodes, state.node_labels.with_label(ZONE)) == (2, 2)
    state.apply(Upserted(pod_locator("p", [], "n1", labels={"rack": "r"})), 1)
    assert (state.node_labels.with_label(ZONE), state.node_labels.with_label("rack")) == (1, 1)
    state.apply(Upserted(of_pod("p", "a", "n2")), 2)
    assert (state.node_labels.nodes, state.node_labels.with_label("rack")) == (1, 0)


def test_a_change_touches_answers_only_where_other_labels_count() -> None:
    slices = endpoint_slice("s", endpoint("10.0.0.1", "n1"))
    there: list[ClusterObject] = [service("s", annotation=ZONE), slices, of_pod("p", "a"), of_pod("q", "a")]
    state = state_of(*there)

    def touched(value: PodLocator) -> frozenset[object]:
        state.backends(ObjectKey("default", "s")).index((ZONE,))
        return frozenset(state.apply(Upserted(value), 1))

    assert touched(of_pod("r", "b")) == frozenset()
    assert touched(of_pod("q", "b")) == {node_fact("n1"), service_fact("default", "s"), label_fact(ZONE)}
    assert touched(of_pod("p", "")) == frozenset()
    assert touched(of_pod("x", "b")) == frozenset()


def test_each_of_8000_pod_locators_with_labels_of_its_own_comes_and_goes_in_logarithmic_time() -> None:
    """A user who may write PodLocators in one namespace can make that many."""
    many = [of_pod(f"p{at}", f"z{at:04}") for at in range(8000)]
    seconds = []
    for _ in range(3):
        state = listed_state(KINDS)
        began = time.process_time()
        for each in many:
            state.apply(Upserted(each), 1)
        for each in many:
            state.apply(Deleted("PodLocator", each.key), 1)
        seconds.append(time.process_time() - began)
        assert state.node("n1") is None
    assert min(seconds) < 5.0  # CPU: 0.7 as it is, 5 and more on an idle machine where each change compares all
