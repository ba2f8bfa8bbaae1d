"""Pods and EndpointSlices as evidence of a client's location."""

import pytest

from tests.support.forged_slices import GENUINE, KINDS, N1, N2, VICTIM, api_state, forged
from tests.support.model_builders import endpoint, endpoint_slice, packed, pod
from topodns.cluster.model import ClusterObject, Deleted, ObjectKey, Replaced, Upserted
from topodns.cluster.state import ClusterState
from topodns.dependency import EVERYTHING, address_fact
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.client_locator import ClientLocator


def whereabouts(state: ClusterState, address: str = VICTIM) -> tuple[str, str]:
    location = ClientLocator(state, TopologySettings().locate).locate(packed(address))
    return location.node_name, location.method


UNKNOWN = ("", "unknown")
FORGERIES = [
    pytest.param(forged(endpoint(VICTIM, "n2")), id="a Pod that is not there"),
    pytest.param(forged(endpoint(VICTIM, "n2", pod="mine")), id="a Pod of the forger's own"),
    pytest.param(forged(endpoint(VICTIM, "n2", pod="")), id="no Pod"),
    pytest.param(forged(endpoint(VICTIM, "n2", ready=False)), id="not ready"),
    pytest.param(forged(endpoint(VICTIM, "n2"), *(endpoint(f"10.1.2.{at}", "n2") for at in range(2, 250))), id="many"),
]
MINE = pod("mine", ["10.1.2.3"], "evil", "n2")


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("first", [True, False], ids=["before the Pod", "after the Pod"])
def test_slices_of_another_namespace_do_not_move_a_pod(forgery: ClusterObject, first: bool) -> None:
    victim = pod("victim", [VICTIM], "apps", "n1")
    state = api_state(MINE, *((forgery, victim) if first else (victim, forgery)))
    assert whereabouts(state) == ("n1", "pods")


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("address", [VICTIM, "10.1.1.1", "203.0.113.5"], ids=["a new Pod", "a gateway", "a stranger"])
def test_a_slice_locates_no_address_of_an_unknown_pod(forgery: ClusterObject, address: str) -> None:
    assert whereabouts(api_state(MINE, forgery), address) == UNKNOWN


@pytest.mark.parametrize("address", ["192.0.2.1", "10.1.1.1"], ids=["its address", "the gateway between its Pods"])
def test_slices_do_not_move_a_node(address: str) -> None:
    state = api_state(pod("p", [VICTIM], "apps", "n1"), forged(endpoint(address, "n2")))
    assert whereabouts(state, address)[0] == "n1"


def test_two_pods_with_one_address_are_nowhere_whatever_slices_say() -> None:
    state = api_state(pod("p", [VICTIM], "a", "n1"), pod("q", [VICTIM], "b", "n2"), forged(endpoint(VICTIM, "n2")))
    assert whereabouts(state) == UNKNOWN


# Without Pods


def test_without_pods_an_endpoint_is_where_its_slice_says() -> None:
    assert whereabouts(api_state(GENUINE, pods=False)) == ("n1", "slices")


def test_without_pods_an_endpoint_that_is_no_pod_is_nowhere() -> None:
    state = api_state(endpoint_slice("web", endpoint(VICTIM, "n1", pod="")), pods=False)
    assert whereabouts(state) == UNKNOWN


@pytest.mark.parametrize("terminating", [False, True])
def test_without_pods_a_forger_can_hide_an_endpoint_but_not_move_it(terminating: bool) -> None:
    genuine = endpoint_slice("web", endpoint(VICTIM, "n1", terminating=terminating), namespace="apps")
    assert whereabouts(api_state(genuine, forged(endpoint(VICTIM, "n2")), pods=False)) == UNKNOWN


def test_without_pods_an_endpoint_in_the_proven_pod_cidr_of_its_node_cannot_even_be_hidden() -> None:
    proof = [
        endpoint_slice(name, *(endpoint(f"10.1.1.{at}", "n1") for at in range(10, 250)), namespace=name)
        for name in ("a", "b")
    ]
    state = api_state(*proof, GENUINE, forged(endpoint(VICTIM, "n2")), pods=False)
    assert whereabouts(state) == ("n1", "podcidr")


# The gateway


@pytest.mark.parametrize("address", ["10.1.1.0", "10.1.1.1"])
def test_a_gateway_is_on_the_node_whose_pods_are_around_it(address: str) -> None:
    state = api_state()
    assert whereabouts(state, address) == UNKNOWN
    facts = state.apply(Upserted(pod("p", [VICTIM], "apps", "n1")), 0)
    assert address_fact(packed(address)) in facts
    assert whereabouts(state, address) == ("n1", "podcidr")
    assert whereabouts(state, "10.1.1.10") == UNKNOWN  # may be another node's Pod, for all that is known
    assert whereabouts(state, "10.1.2.1") == UNKNOWN
    state.apply(Deleted("Pod", ObjectKey("apps", "p")), 1)
    assert whereabouts(state, address) == UNKNOWN


def test_a_gateway_address_that_a_pod_has_is_the_pods() -> None:
    state = api_state(pod("p", [VICTIM], "apps", "n1"), pod("q", ["10.1.1.1"], "apps", "n2"))
    assert whereabouts(state, "10.1.1.1") == ("n2", "pods")


def test_while_pods_are_denied_slices_locate_and_gateways_are_nowhere() -> None:
    state = ClusterState(frozenset(KINDS), all_pods=True)
    for kind in KINDS[:-1]:
        state.apply(Replaced(kind, ()), 0)
    assert state.do_without("Pod") == {EVERYTHING}
    for each in (N1, N2, GENUINE):
        state.apply(Upserted(each), 0)
    assert whereabouts(state) == ("n1", "slices")
    assert whereabouts(state, "10.1.1.1") == UNKNOWN
