"""The record of EndpointSlices that other objects contradict."""

from collections.abc import Sequence

import pytest

from tests.support.forged_slices import GENUINE, VICTIM, api_state, forged
from tests.support.model_builders import endpoint, endpoint_slice, pod
from topodns.cluster.model import ClusterObject, Deleted, ObjectKey, Upserted
from topodns.cluster.state import ClusterState
from topodns.topology.contradictions import Contradictions


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
