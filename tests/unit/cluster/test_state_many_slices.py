"""The work that a change of an EndpointSlice makes, counted in calls, where users of a namespace have very many."""

from dataclasses import replace
from functools import partial

import pytest

from bench.guard.counting import Calls
from tests.support.model_builders import endpoint, endpoint_slice, service
from topodns.cluster.model import EndpointSlice, ObjectKey, Upserted
from topodns.cluster.state import ClusterState

WEB = ObjectKey("default", "web")
ADDRESSES = [f"10.0.0.{number}" for number in range(20)]


def state_of(*slices: EndpointSlice) -> ClusterState:
    state = ClusterState(frozenset())
    state.apply(Upserted(service("web")), 0)
    for one in slices:
        state.apply(Upserted(one), 0)
    return state


def calls(state: ClusterState, *changed: EndpointSlice) -> int:
    """The calls that it takes to apply these changes, one after the other."""
    counted = Calls()
    for change in map(Upserted, changed):
        state.unchecked_slices.clear()
        counted.count(partial(state.apply, change, 0))
    return counted.total


@pytest.mark.parametrize("namespace", ["evil", "default"])
def test_a_change_of_a_slice_takes_no_more_for_thousands_of_copies_in_slices_of_other_services(namespace: str) -> None:
    def copied(copies: int) -> int:
        addresses = [endpoint(each, "n1") for each in ADDRESSES]
        web = endpoint_slice("web", *addresses)
        others = (
            endpoint_slice(f"x{number}", *addresses, name=f"x{number}", namespace=namespace) for number in range(copies)
        )
        state = state_of(web, *others)
        state.backends(WEB)
        moved = tuple(replace(each, node_name="n2") for each in addresses)
        newer = replace(web, generation=2, endpoints=moved)
        return calls(state, newer, replace(newer, generation=3, endpoints=()), replace(newer, generation=4))

    assert copied(2000) <= copied(20) * 1.1
