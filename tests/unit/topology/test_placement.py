"""Slices as evidence of a client's location, and the report of those that are not believed."""

from collections.abc import Sequence

import pytest

from tests.support.model_builders import endpoint, endpoint_slice, node, packed, pod
from topodns.cluster.model import ClusterObject, Deleted, Endpoint, Kind, ObjectKey, Replaced, Upserted
from topodns.cluster.state import ClusterState
from topodns.dependency import EVERYTHING, address_fact
from topodns.plugins.topology import TopologySettings
from topodns.topology.client_locator import Locator
from topodns.topology.placement import Contradictions

VICTIM = "10.1.1.9"
N1 = node("n1", addresses=["192.0.2.1"], pod_cidrs=["10.1.1.0/24"])
N2 = node("n2", addresses=["192.0.2.2"], pod_cidrs=["10.1.2.0/24"])
KINDS: Sequence[Kind] = ("Namespace", "Node", "Service", "EndpointSlice", "Pod")


def api_state(*objects: ClusterObject, pods: bool = True) -> ClusterState:
    """As from an API server, with or without Pods watched."""
    needed = frozenset(KINDS if pods else KINDS[:-1])
    state = ClusterState(needed, all_pods=True)
    for kind in sorted(needed):
        state.apply(Replaced(kind, ()), 0)
    for each in (N1, N2, *objects):
        state.apply(Upserted(each), 0)
    return state


def whereabouts(state: ClusterState, address: str = VICTIM) -> tuple[str, str]:
    location = Locator(state, TopologySettings().locate).locate(packed(address))
    return location.node_name, location.method


def forged(*endpoints: Endpoint, namespace: str = "evil", name: str = "x") -> ClusterObject:
    return endpoint_slice(name, *endpoints, namespace=namespace)


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


GENUINE = endpoint_slice("web", endpoint(VICTIM, "n1"), namespace="apps")


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


# What is told


def contradictions(state: ClusterState, record: Contradictions | None = None) -> dict[str, str]:
    record = record or Contradictions(state)
    list(record.check())
    return {f"{key.namespace}/{key.name}": problem for key, problem in record.found().items()}


def test_a_slice_that_a_pod_contradicts_is_named_until_it_ends() -> None:
    state = api_state(pod("victim", [VICTIM], "apps", "n1"), GENUINE, forged(endpoint(VICTIM, "n2", pod="ghost")))
    record = Contradictions(state)
    assert contradictions(state, record) == {
        "evil/x-1": "says that Pod ghost is on node n2, but Pod apps/victim has its address on node n1"
    }
    state.apply(Deleted("EndpointSlice", ObjectKey("evil", "x-1")), 1)
    assert contradictions(state, record) == {}


@pytest.mark.parametrize(
    ("objects", "problem"),
    [
        ((forged(endpoint("192.0.2.1", "n2", pod="p")),), "that is an address of Node n1"),
        (
            (GENUINE, forged(endpoint(VICTIM, "n2", pod="p"), namespace="zoo")),
            "Service apps/web has its address on node n1",
        ),
    ],
)
def test_the_contradiction_has_its_reason(objects: Sequence[ClusterObject], problem: str) -> None:
    found = contradictions(api_state(*objects, pods=False))
    assert f"says that Pod p is on node n2, but {problem}" in found.values()


def test_a_slice_is_looked_at_again_when_a_pod_gets_an_address_of_it() -> None:
    state = api_state(forged(endpoint(VICTIM, "n2")))
    record = Contradictions(state)
    assert contradictions(state, record) == {}
    state.apply(Upserted(pod("victim", [VICTIM], "apps", "n1")), 1)
    assert list(contradictions(state, record)) == ["evil/x-1"]
    state.apply(Deleted("Pod", ObjectKey("apps", "victim")), 2)
    assert contradictions(state, record) == {}


def test_honest_slices_are_not_named() -> None:
    host = pod("agent", ["192.0.2.1"], "apps", "n1", host_network=True)
    state = api_state(host, endpoint_slice("agent", endpoint("192.0.2.1", "n1", pod="agent"), namespace="apps"))
    state.apply(Upserted(pod("victim", [VICTIM], "apps", "n1")), 1)
    state.apply(Upserted(GENUINE), 1)
    assert contradictions(state) == {}


def test_no_more_than_a_thousand_are_remembered() -> None:
    state = api_state(pod("victim", [VICTIM], "apps", "n1"))
    for at in range(1100):
        state.apply(Upserted(forged(endpoint(VICTIM, "n2"), name=f"x{at}")), 1)
    assert len(contradictions(state)) == 1000


def test_a_large_slice_is_looked_at_a_little_at_a_time() -> None:
    state = api_state(endpoint_slice("large", *(endpoint(f"10.1.{at // 250}.{at % 250}", "n1") for at in range(1000))))
    record = Contradictions(state)
    assert record.pending
    assert sum(1 for _ in record.check()) >= 20
    assert not record.pending
