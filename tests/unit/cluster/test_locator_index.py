"""NodeLocators and PodLocators by their addresses, in the order of their arrival."""

import time
from collections.abc import Iterable

from tests.support.model_builders import listed_state, node, node_locator, packed, pod, pod_locator
from topodns.cluster.locator_index import MOST, LocatorIndex
from topodns.cluster.model import (
    ClusterObject,
    Deleted,
    Kind,
    NodeLocator,
    ObjectKey,
    PodLocator,
    RefusedAddresses,
    Replaced,
    Upserted,
)
from topodns.cluster.state import ClusterState
from topodns.dependency import EVERYTHING, address_fact, label_fact, node_fact

KINDS: tuple[Kind, ...] = ("NodeLocator", "PodLocator")
P, Q = packed("10.0.0.1"), packed("10.0.0.2")


def claims(state: ClusterState, address: bytes = P) -> list[tuple[str, str, bool]]:
    """(locator, Node name, whether it is later than those before it)."""
    return [(each.locator, each.node_name, each.later) for each in state.locators.claims(address)]


def test_a_locator_has_its_addresses_until_it_is_deleted() -> None:
    state = listed_state(KINDS, node_locator("n1", ["10.0.0.1"], ["192.0.2.1"]), pod_locator("p", ["10.0.0.2"], "n2"))
    assert claims(state) == [("NodeLocator n1", "n1", False)]
    assert claims(state, Q) == [("PodLocator default/p", "n2", False)]
    assert [each.of_node for each in state.locators.claims(packed("192.0.2.1"))] == [True]
    assert [each.of_node for each in state.locators.claims(P)] == [False]
    state.apply(Deleted("NodeLocator", ObjectKey("", "n1")), 1)
    state.apply(Deleted("PodLocator", ObjectKey("default", "p")), 1)
    assert claims(state) == claims(state, Q) == []


def test_an_address_that_leaves_a_locator_or_comes_to_it_is_touched_and_no_other() -> None:
    state = listed_state(KINDS, node_locator("n1", ["10.0.0.1", "10.0.0.2"]))
    facts = state.apply(Upserted(node_locator("n1", ["10.0.0.2", "10.0.0.3"])), 1)
    assert facts == {address_fact(P), address_fact(packed("10.0.0.3"))}
    assert claims(state) == []
    assert state.apply(Upserted(pod_locator("p", ["10.0.0.9"], "n1")), 1) == {address_fact(packed("10.0.0.9"))}
    assert state.apply(Upserted(pod_locator("p", ["10.0.0.9"], "n2")), 1) == {address_fact(packed("10.0.0.9"))}
    assert state.apply(Upserted(pod_locator("p", ["10.0.0.9"], "n2")), 1) == frozenset()


def test_a_locator_that_arrives_alone_is_later_and_those_of_a_list_have_no_order() -> None:
    state = listed_state(KINDS, node_locator("n1", ["10.0.0.1"]), node_locator("n2", ["10.0.0.1"]))
    assert {later for _, _, later in claims(state)} == {False}
    state.apply(Upserted(node_locator("n3", ["10.0.0.1"])), 1)
    assert claims(state)[2:] == [("NodeLocator n3", "n3", True)]
    relisted = [node_locator(name, ["10.0.0.1"]) for name in ("n1", "n2", "n3", "n4")]
    state.apply(Replaced("NodeLocator", tuple(relisted)), 2)
    assert claims(state)[2:] == [("NodeLocator n3", "n3", True), ("NodeLocator n4", "n4", False)]


def test_an_address_that_a_locator_keeps_does_not_arrive_again() -> None:
    state = listed_state(KINDS, node_locator("n1", ["10.0.0.1"]))
    state.apply(Upserted(node_locator("n2", ["10.0.0.1"])), 1)
    state.apply(Upserted(node_locator("n1", ["10.0.0.1", "10.0.0.2"])), 2)
    assert [locator for locator, _, _ in claims(state)] == ["NodeLocator n1", "NodeLocator n2"]


def test_locators_before_the_first_list_have_no_order() -> None:
    """As from manifests, of which some cannot be read yet."""
    state = ClusterState(frozenset(KINDS))
    state.apply(Upserted(node_locator("n1", ["10.0.0.1"])), 0)
    state.apply(Upserted(node_locator("n2", ["10.0.0.1"])), 0)
    assert {later for _, _, later in claims(state)} == {False}


def test_of_very_many_locators_with_one_address_a_hundred_and_one_are_looked_at() -> None:
    state = listed_state(KINDS, *(pod_locator(f"p{at}", ["10.0.0.1"], "n1") for at in range(300)))
    assert len(claims(state)) == MOST + 1
    for at in range(300):
        state.apply(Deleted("PodLocator", ObjectKey("default", f"p{at}")), 1)
    assert claims(state) == []


def test_each_of_8000_locators_with_one_address_comes_and_goes_in_constant_time() -> None:
    """A user who may write PodLocators in one namespace can make that many."""
    many = [pod_locator(f"p{at}", ["10.0.0.1"], "n1") for at in range(8000)]
    one_by_one = LocatorIndex()
    seconds = []
    for _ in range(3):
        began = time.process_time()
        for each in many:
            one_by_one.pod_locators[each.key] = each
            one_by_one.take(each.key, None, each)
        for each in many:
            del one_by_one.pod_locators[each.key]
            one_by_one.take(each.key, each, None)
        seconds.append(time.process_time() - began)
    assert min(seconds) < 5.0  # CPU: 0.1 as it is, 4 and more on an idle machine where each change copies the others
    assert one_by_one.claims(P) == ()


# The Nodes that they describe


def test_the_labels_of_a_node_locator_stand_for_those_of_an_unknown_node() -> None:
    state = listed_state(KINDS, node_locator("n1", labels={"zone": "a"}))
    found = state.node("n1")
    assert found is not None
    assert (found.name, found.labels) == ("n1", {"zone": "a"})
    real = node("n1", {"zone": "b"})
    state.apply(Upserted(real), 1)
    assert state.node("n1") == real
    state.apply(Deleted("Node", ObjectKey("", "n1")), 2)
    assert state.node("n1") == found
    state.apply(Deleted("NodeLocator", ObjectKey("", "n1")), 3)
    assert state.node("n1") is None


def test_a_change_of_labels_touches_the_node_unless_a_node_object_has_them() -> None:
    state = listed_state(KINDS, node_locator("n1", labels={"zone": "a"}))
    touched = {node_fact("n1"), label_fact("zone")}
    assert state.apply(Upserted(node_locator("n1", labels={"zone": "b"})), 1) == touched
    assert state.apply(Upserted(node_locator("n1")), 1) == touched
    assert state.node("n1") is None
    state.apply(Upserted(node("n1", {"zone": "c"})), 1)
    assert state.apply(Upserted(node_locator("n1", labels={"zone": "d"})), 1) == frozenset()


# Refused addresses


def test_refused_addresses_are_counted_while_they_last() -> None:
    refused = (RefusedAddresses("loopback", 2, "spec.podIPs[0] '127.0.0.1'"), RefusedAddresses("too_many", 7, "x"))
    state = listed_state(KINDS, NodeLocator("n1", refused=refused), PodLocator("a", "p", (), "n1", (), refused[:1]))
    assert +state.locators.refused() == {
        ("NodeLocator", "loopback"): 2,
        ("NodeLocator", "too_many"): 7,
        ("PodLocator", "loopback"): 2,
    }
    assert state.locators.refusing == {ObjectKey("", "n1"): refused, ObjectKey("a", "p"): refused[:1]}
    state.apply(Upserted(NodeLocator("n1", refused=refused[:1])), 1)
    state.apply(Deleted("PodLocator", ObjectKey("a", "p")), 1)
    assert +state.locators.refused() == {("NodeLocator", "loopback"): 2}


# Addresses to check


def unchecked(index: LocatorIndex) -> set[bytes]:
    found = set()
    while (address := index.next_unchecked()) is not None:
        found.add(address)
    assert not index.pending
    return found


def apply(state: ClusterState, *objects: ClusterObject) -> Iterable[bytes]:
    for each in objects:
        state.apply(Upserted(each), 1)
    return unchecked(state.locators)


def test_an_address_is_checked_after_a_change_of_what_it_is_compared_with() -> None:
    state = listed_state(KINDS, node_locator("n1", ["10.0.0.1"]), node_locator("n2", ["10.0.0.2"]))
    assert unchecked(state.locators) == {P, Q}
    assert apply(state, node_locator("n1", ["10.0.0.1"], ["192.0.2.1"])) == {packed("192.0.2.1")}
    assert apply(state, pod("p", ["10.0.0.2"], node="n1")) == {Q}
    assert apply(state, node("n3", addresses=["10.0.0.1"])) == {P}
    assert apply(state, pod("q", ["10.0.0.3"], node="n1"), node("n4", addresses=["192.0.2.4"])) == set()


def test_all_addresses_are_checked_after_a_first_list_and_when_pod_cidrs_are_proven() -> None:
    state = ClusterState(frozenset({"NodeLocator", "Node", "Pod"}))
    state.apply(Replaced("NodeLocator", (node_locator("n1", ["10.0.0.1"]),)), 0)
    assert unchecked(state.locators) == {P}
    state.apply(Replaced("Node", (node("n1", pod_cidrs=["10.0.0.0/24"]),)), 0)
    assert unchecked(state.locators) == {P}
    assert state.apply(Replaced("Pod", (pod("p", ["10.0.0.9"], node="n1"),)), 0) == {EVERYTHING}
    assert state.nodes.pod_cidrs_verified
    assert unchecked(state.locators) == {P}
