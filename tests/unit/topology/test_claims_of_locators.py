"""NodeLocators and PodLocators as evidence of a client's location."""

from collections.abc import Sequence

import pytest

from tests.support.forged_slices import N1, N2, VICTIM
from tests.support.model_builders import (
    endpoint,
    endpoint_slice,
    listed_state,
    node,
    node_locator,
    packed,
    pod,
    pod_locator,
)
from topodns.cluster.model import ClusterObject, Deleted, Kind, Node, ObjectKey, Pod, PodLocator, Replaced, Upserted
from topodns.cluster.state import ClusterState
from topodns.dependency import EVERYTHING, address_fact
from topodns.topology.claims import verdicts
from topodns.topology.client_locator import ClientLocator, Method

BOTH = (Method.NODELOCATOR, Method.PODLOCATOR)
NODE_KINDS: tuple[Kind, ...] = ("NodeLocator", "PodLocator", "Node", "Pod", "EndpointSlice")


def state_of(*listed: ClusterObject, later: Sequence[ClusterObject] = ()) -> ClusterState:
    """A state with the Nodes n1 and n2, first lists with `listed`, and then the objects of `later`, one by one."""
    state = listed_state(NODE_KINDS, N1, N2, *listed, all_pods=True)
    for each in later:
        state.apply(Upserted(each), 1)
    return state


def whereabouts(state: ClusterState, address: str = VICTIM, methods: Sequence[Method] = BOTH) -> tuple[str, str]:
    location = ClientLocator(state, methods).locate(packed(address))
    return location.node_name, location.method


def reasons(state: ClusterState, address: str = VICTIM) -> dict[str, str]:
    """By locator: the reason why it is not believed, "" if it is."""
    claims = state.locators.claims(packed(address))
    found = verdicts(state, packed(address), claims)
    return {claim.locator: against.reason if against is not None else "" for claim, against in found}


UNKNOWN = ("", "unknown")
HERE, THERE = node_locator("n1", [VICTIM]), node_locator("n2", [VICTIM])


def test_a_client_is_where_its_locator_says() -> None:
    assert whereabouts(state_of(HERE)) == ("n1", "nodelocator")
    assert whereabouts(state_of(node_locator("n1", addresses=["10.9.0.1"])), "10.9.0.1") == ("n1", "nodelocator")
    assert whereabouts(state_of(pod_locator("p", [VICTIM], "n1"))) == ("n1", "podlocator")
    assert whereabouts(state_of(node_locator("n1", ["fd00::5"])), "fd00::5") == ("n1", "nodelocator")


def test_a_client_in_no_locator_is_unknown() -> None:
    assert whereabouts(state_of(HERE), "10.1.1.10") == UNKNOWN
    assert whereabouts(state_of()) == UNKNOWN


def test_a_locator_counts_only_for_the_method_of_its_kind() -> None:
    assert whereabouts(state_of(HERE), methods=[Method.PODLOCATOR]) == UNKNOWN
    assert whereabouts(state_of(pod_locator("p", [VICTIM], "n1")), methods=[Method.NODELOCATOR]) == UNKNOWN
    both = state_of(HERE, pod_locator("p", [VICTIM], "n1"))
    assert whereabouts(both) == ("n1", "nodelocator")
    assert whereabouts(both, methods=BOTH[::-1]) == ("n1", "podlocator")


def test_methods_are_tried_in_the_order_of_locate() -> None:
    slices = endpoint_slice("web", endpoint(VICTIM, "n2"))
    state = state_of(HERE, pod("pod-" + VICTIM, [VICTIM], node="n1"))
    assert whereabouts(state, methods=[Method.PODS, Method.NODELOCATOR]) == ("n1", "pods")
    assert whereabouts(state, methods=[Method.NODELOCATOR, Method.PODS]) == ("n1", "nodelocator")
    unwatched = ClusterState(frozenset({"NodeLocator"}))
    for each in (HERE, slices):
        unwatched.apply(Upserted(each), 0)
    assert whereabouts(unwatched, methods=[Method.SLICES, Method.NODELOCATOR]) == ("n2", "slices")
    assert whereabouts(unwatched, methods=[Method.NODELOCATOR, Method.SLICES]) == ("n1", "nodelocator")


# A locator that lies

PROOF = [pod(f"p{at}", [f"10.1.{at % 2 + 1}.{at + 10}"], f"ns{at % 3}", f"n{at % 2 + 1}") for at in range(220)]
LIES = [
    pytest.param(node_locator("n2", ["192.0.2.1"]), "192.0.2.1", [], "node_address", id="an address of another Node"),
    pytest.param(node_locator("n2", addresses=["192.0.2.1"]), "192.0.2.1", [], "node_address", id="as its own"),
    pytest.param(pod_locator("p", ["192.0.2.1"], "n2"), "192.0.2.1", [], "node_address", id="of a Node, as a Pod's"),
    pytest.param(THERE, VICTIM, [pod("v", [VICTIM], "apps", "n1")], "pod", id="a Pod on another Node"),
    pytest.param(pod_locator("p", [VICTIM], "n2"), VICTIM, [pod("v", [VICTIM], "apps", "n1")], "pod", id="PodLocator"),
    pytest.param(THERE, VICTIM, PROOF, "pod_cidr", id="in the proven podCIDR of another Node"),
    pytest.param(pod_locator("p", [VICTIM], "n2"), VICTIM, PROOF, "pod_cidr", id="PodLocator in a podCIDR"),
]


@pytest.mark.parametrize(("lie", "address", "known", "reason"), LIES)
@pytest.mark.parametrize("first", [True, False], ids=["before what contradicts it", "after"])
def test_a_locator_that_another_object_contradicts_places_no_client(
    lie: ClusterObject, address: str, known: Sequence[Pod], reason: str, first: bool
) -> None:
    state = state_of(lie, later=known) if first else state_of(*known, later=[lie])
    assert whereabouts(state, address) == UNKNOWN
    assert list(reasons(state, address).values()) == [reason]


def test_a_locator_is_right_again_when_what_contradicted_it_is_gone() -> None:
    state = state_of(pod("v", [VICTIM], "apps", "n1"), THERE)
    assert whereabouts(state) == UNKNOWN
    assert address_fact(packed(VICTIM)) in state.apply(Deleted("Pod", ObjectKey("apps", "v")), 1)
    assert whereabouts(state) == ("n2", "nodelocator")


def test_a_contradicted_locator_does_not_hide_a_true_one() -> None:
    state = state_of(HERE, pod("v", [VICTIM], "apps", "n1"), later=[THERE])
    assert whereabouts(state) == ("n1", "nodelocator")
    assert reasons(state) == {"NodeLocator n1": "", "NodeLocator n2": "pod"}


def test_an_unproven_pod_cidr_contradicts_nothing() -> None:
    assert whereabouts(state_of(THERE)) == ("n2", "nodelocator")


# Nodes with overlapping podCIDRs

NEW = "10.1.3.9"  # in no podCIDR of n1 and n2
NEW_HERE, NEW_THERE = node_locator("n1", [NEW]), node_locator("n3", [NEW])
N3 = node("n3", pod_cidrs=["10.1.3.0/24"])


def comes(state: ClusterState, *nodes: Node) -> None:
    for each in nodes:
        assert state.apply(Upserted(each), 2) == {EVERYTHING}


def goes(state: ClusterState, name: str) -> None:
    assert state.apply(Deleted("Node", ObjectKey("", name)), 3) == {EVERYTHING}


def test_a_pod_cidr_that_two_nodes_have_contradicts_no_locator_until_one_of_them_is_gone() -> None:
    state = state_of(NEW_HERE, N3, *PROOF)
    assert reasons(state, NEW) == {"NodeLocator n1": "pod_cidr"}
    comes(state, node("n4", pod_cidrs=["10.1.3.0/24"]), node("n5", pod_cidrs=["10.1.0.0/16"]))
    assert state.nodes.pod_cidrs_verified  # no Pod has an address of theirs
    assert whereabouts(state, NEW) == ("n1", "nodelocator")  # and the wider one of n5 is hidden
    goes(state, "n4")
    assert whereabouts(state, NEW) == UNKNOWN
    assert reasons(state, NEW) == {"NodeLocator n1": "pod_cidr"}


def test_of_nested_pod_cidrs_the_longest_contradicts_the_locators_of_other_nodes() -> None:
    state = state_of(NEW_THERE, N3, *PROOF)
    assert whereabouts(state, NEW) == ("n3", "nodelocator")
    comes(state, node("n4", pod_cidrs=["10.1.3.8/29"]))
    assert whereabouts(state, NEW) == UNKNOWN
    assert reasons(state, NEW) == {"NodeLocator n3": "pod_cidr"}
    assert whereabouts(state, NEW, methods=[Method.NODELOCATOR, Method.PODCIDR]) == ("n4", "podcidr")
    goes(state, "n4")
    assert whereabouts(state, NEW) == ("n3", "nodelocator")


def test_a_node_with_the_pod_cidr_of_the_pods_of_another_ends_the_proof_until_it_is_gone() -> None:
    """No Pod of n1 has an address of a podCIDR of n1 alone, so no podCIDR is evidence any more."""
    state = state_of(THERE, *PROOF)
    assert reasons(state) == {"NodeLocator n2": "pod_cidr"}
    comes(state, node("n3", pod_cidrs=["10.1.1.0/24"]))
    assert not state.nodes.pod_cidrs_verified
    assert whereabouts(state) == ("n2", "nodelocator")
    assert whereabouts(state, "10.1.2.99", methods=[Method.PODCIDR]) == UNKNOWN
    goes(state, "n3")
    assert state.nodes.pod_cidrs_verified
    assert reasons(state) == {"NodeLocator n2": "pod_cidr"}
    assert whereabouts(state, "10.1.2.99", methods=[Method.PODCIDR]) == ("n2", "podcidr")


# Two locators for one address


def test_two_locators_of_one_list_that_name_two_nodes_are_not_believed() -> None:
    state = state_of(HERE, THERE)
    assert whereabouts(state) == UNKNOWN
    assert reasons(state) == {"NodeLocator n1": "conflict", "NodeLocator n2": "conflict"}
    state.apply(Upserted(node_locator("n1")), 1)
    assert whereabouts(state) == ("n2", "nodelocator")


def test_of_two_locators_the_one_that_arrived_later_is_believed() -> None:
    state = state_of(HERE, later=[THERE])
    assert whereabouts(state) == ("n2", "nodelocator")
    assert reasons(state) == {"NodeLocator n1": "superseded", "NodeLocator n2": ""}
    state.apply(Upserted(node_locator("n3", [VICTIM])), 2)
    assert whereabouts(state) == ("n3", "nodelocator")
    state.apply(Deleted("NodeLocator", ObjectKey("", "n3")), 3)
    assert whereabouts(state) == ("n2", "nodelocator")


def test_a_later_list_proves_no_order() -> None:
    state = state_of(HERE)
    state.apply(Replaced("NodeLocator", (HERE, THERE)), 1)
    assert whereabouts(state) == UNKNOWN


def test_locators_that_name_one_node_agree() -> None:
    state = state_of(pod_locator("p", [VICTIM], "n1", "a"), pod_locator("q", [VICTIM], "n1", "b"), HERE)
    assert whereabouts(state) == ("n1", "nodelocator")
    assert set(reasons(state).values()) == {""}


def test_of_the_pod_locators_of_one_namespace_the_later_is_believed() -> None:
    state = state_of(pod_locator("p", [VICTIM], "n1"), later=[pod_locator("q", [VICTIM], "n2")])
    assert whereabouts(state) == ("n2", "podlocator")


@pytest.mark.parametrize("genuine", [HERE, pod_locator("victim", [VICTIM], "n1", "apps")])
def test_pod_locators_of_another_namespace_can_hide_a_client_but_not_move_it(genuine: PodLocator) -> None:
    forgery = pod_locator("mine", [VICTIM], "n2", "evil")
    for state in (state_of(genuine, later=[forgery]), state_of(forgery, later=[genuine])):
        assert whereabouts(state) == UNKNOWN
        assert set(reasons(state).values()) == {"conflict"}


def test_a_client_cannot_even_be_hidden_where_nodes_pods_or_pod_cidrs_know_it() -> None:
    forgery = pod_locator("mine", [VICTIM], "n2", "evil")
    assert whereabouts(state_of(HERE, *PROOF, later=[forgery])) == ("n1", "nodelocator")


def test_a_nodes_own_address_in_its_locator_is_of_no_pod_however_late() -> None:
    state = state_of(node_locator("n3", addresses=["10.9.0.1"]), later=[node_locator("n4", ["10.9.0.1"])])
    assert whereabouts(state, "10.9.0.1") == ("n3", "nodelocator")
    assert reasons(state, "10.9.0.1") == {"NodeLocator n3": "", "NodeLocator n4": "node_address"}


def test_a_replacement_machine_with_the_address_of_the_old_one_is_believed() -> None:
    state = state_of(node_locator("old", addresses=["10.9.0.1"]), later=[node_locator("new", addresses=["10.9.0.1"])])
    assert whereabouts(state, "10.9.0.1") == ("new", "nodelocator")


def test_an_address_in_very_many_locators_is_nowhere() -> None:
    state = state_of(*(pod_locator(f"p{at}", [VICTIM], "n1") for at in range(101)))
    assert whereabouts(state) == UNKNOWN
    state.apply(Deleted("PodLocator", ObjectKey("default", "p0")), 1)
    assert whereabouts(state) == ("n1", "podlocator")


# The labels of Nodes that are not known otherwise


def test_a_client_has_the_labels_of_its_nodes_locator() -> None:
    state = ClusterState(frozenset({"NodeLocator"}))
    state.apply(Replaced("NodeLocator", (node_locator("n9", ["10.7.0.1"], labels={"zone": "a"}),)), 0)
    location = ClientLocator(state, [Method.NODELOCATOR]).locate(packed("10.7.0.1"))
    assert location.node == Node("n9", {"zone": "a"})
