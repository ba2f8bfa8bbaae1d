"""The record of EndpointSlices and locators that other objects contradict."""

from collections.abc import Sequence

import pytest

from tests.support.forged_slices import GENUINE, VICTIM, api_state, forged
from tests.support.model_builders import endpoint, endpoint_slice, node, node_locator, pod, pod_locator
from topodns.cluster.model import ClusterObject, Deleted, NodeLocator, ObjectKey, RefusedAddresses, Replaced, Upserted
from topodns.cluster.state import ClusterState
from topodns.plugins.kubernetes.contradictions import Contradictions, LocatorContradictions


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


@pytest.mark.parametrize("tunnels", [False, True], ids=["an address", "a tunnel address"])
def test_so_it_is_when_a_node_gets_an_address_of_it(tunnels: bool) -> None:
    state = api_state(forged(endpoint(VICTIM, "n2")), pods=False)
    record = Contradictions(state)
    assert contradictions(state, record) == {}
    state.apply(Upserted(node("n3", addresses=() if tunnels else [VICTIM], tunnels=[VICTIM] if tunnels else ())), 1)
    (problem,) = contradictions(state, record).values()
    assert problem.endswith("but that is an address of Node n3")
    state.apply(Deleted("Node", ObjectKey("", "n3")), 2)
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


# Locators

ELSEWHERE = node_locator("n2", [VICTIM])


def locator_lines(state: ClusterState, record: LocatorContradictions) -> list[str]:
    list(record.check())
    return sorted(record.lines())


def test_a_locator_that_a_pod_contradicts_is_named_until_it_ends() -> None:
    state = api_state(pod("victim", [VICTIM], "apps", "n1"), ELSEWHERE)
    record = LocatorContradictions(state)
    assert record.pending
    assert locator_lines(state, record) == [
        f"NodeLocator n2 says that {VICTIM} is on node n2, but Pod apps/victim has its address on node n1; "
        "it locates no client with that address"
    ]
    assert record.counts() == {("NodeLocator", "pod"): 1}
    assert not record.pending
    state.apply(Deleted("Pod", ObjectKey("apps", "victim")), 1)
    assert (locator_lines(state, record), record.counts()) == ([], {})


def test_each_reason_has_its_sentence_and_count() -> None:
    state = api_state(node_locator("n2", ["192.0.2.1"]))
    state.apply(Replaced("PodLocator", (pod_locator("old", ["10.5.0.1"], "n1"),)), 0)
    state.apply(Replaced("NodeLocator", (node_locator("n2", ["192.0.2.1"]), node_locator("n3", ["10.6.0.1"]))), 0)
    for later in (
        pod_locator("new", ["10.5.0.1"], "n2"),
        pod_locator("evil", ["10.6.0.1"], "n4", "zoo"),
        node_locator("n5", addresses=["10.7.0.1"]),
        node_locator("n6", ["10.7.0.1"]),
    ):
        state.apply(Upserted(later), 1)
    record = LocatorContradictions(state)
    ends = "; it locates no client with that address"
    assert locator_lines(state, record) == [
        f"NodeLocator n2 says that 192.0.2.1 is on node n2, but that is an address of Node n1{ends}",
        f"NodeLocator n3 says that 10.6.0.1 is on node n3, but PodLocator zoo/evil has its address on node n4{ends}",
        f"NodeLocator n6 says that 10.7.0.1 is on node n6, but NodeLocator n5 has it as an address of its Node{ends}",
        "PodLocator default/old says that 10.5.0.1 is on node n1, but PodLocator default/new, which is newer, has its "
        f"address on node n2{ends}",
    ]
    assert record.counts() == {
        ("NodeLocator", "node_address"): 2,
        ("NodeLocator", "conflict"): 1,
        ("PodLocator", "conflict"): 1,
        ("PodLocator", "superseded"): 1,
    }


def test_refused_addresses_are_named_by_their_place() -> None:
    refused = (
        RefusedAddresses("loopback", 1, "spec.podIPs[3] '127.0.0.1'"),
        RefusedAddresses("malformed", 3, "spec.addresses[0] 'x'"),
        RefusedAddresses("too_many", 76, "spec.podIPs[1024]"),
    )
    state = api_state(NodeLocator("n1", refused=refused))
    assert locator_lines(state, LocatorContradictions(state)) == [
        "NodeLocator n1: spec.addresses[0] 'x' is no IP address; ignored, with 2 more",
        "NodeLocator n1: spec.podIPs[1024] is beyond the limit of the field; ignored, with 75 more",
        "NodeLocator n1: spec.podIPs[3] '127.0.0.1' is loopback; ignored",
    ]


def test_no_more_than_a_thousand_addresses_are_remembered() -> None:
    addresses = [f"10.8.{at >> 8}.{at & 255}" for at in range(1024)]
    state = api_state(node_locator("n3", addresses), node_locator("n4", addresses))
    record = LocatorContradictions(state)
    assert len(locator_lines(state, record)) == 1000
    assert record.counts() == {("NodeLocator", "superseded"): 1000}
