"""The work that a change of an EndpointSlice makes, counted in calls, where users of a namespace have very many."""

from dataclasses import replace
from functools import partial

import pytest

from bench.guard.counting import Calls
from tests.support.model_builders import endpoint, endpoint_slice, service, state_of
from topodns.cluster.model import HOSTNAME_LABEL, EndpointSlice, ObjectKey, Upserted
from topodns.cluster.slices import MOST_MIRRORED
from topodns.cluster.state import ClusterState

WEB = ObjectKey("default", "web")
SERVICE = service("web")
ADDRESSES = [f"10.0.0.{number}" for number in range(20)]


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
        state = state_of(SERVICE, web, *others)
        state.backends(WEB)
        moved = tuple(replace(each, node_name="n2") for each in addresses)
        newer = replace(web, generation=2, endpoints=moved)
        return calls(state, newer, replace(newer, generation=3, endpoints=()), replace(newer, generation=4))

    assert copied(2000) <= copied(20) * 1.1


@pytest.mark.parametrize("mirrored", [False, True], ids=["", "mirrored from Endpoints"])
@pytest.mark.parametrize("ready", [True, False], ids=["ready", "not ready"])
def test_a_change_takes_no_more_for_thousands_of_slices_of_the_same_service(mirrored: bool, ready: bool) -> None:
    def one(number: int, generation: int = 0) -> EndpointSlice:
        address = endpoint(f"10.0.{number >> 8}.{number & 255}", "n1", ready=ready)
        made = endpoint_slice("web", address, name=f"web-{number:04}")
        return replace(made, generation=generation, mirrored=mirrored)

    def among(slices: int) -> int:
        state = state_of(SERVICE, *map(one, range(slices)))
        return calls(state, one(7, 1), replace(one(3, 1), service_name="other"), one(3, 2), one(9000))

    assert among(3000) <= among(MOST_MIRRORED) * 1.1


def test_where_a_real_slice_comes_a_bounded_number_of_mirrored_ones_is_looked_at() -> None:
    def hidden(slices: int) -> int:
        mirrored = (
            replace(endpoint_slice("web", endpoint(f"10.0.{each >> 8}.{each & 255}"), name=f"m{each}"), mirrored=True)
            for each in range(slices)
        )
        return calls(state_of(SERVICE, *mirrored), endpoint_slice("web", endpoint("10.1.0.1")))

    assert hidden(1000) <= hidden(MOST_MIRRORED) * 1.1


def test_where_two_slices_share_an_address_a_change_of_a_third_does_not_go_through_all_endpoints() -> None:
    def one(number: int, ready: bool = True) -> EndpointSlice:
        addresses = [f"10.0.{number}.{at}" for at in range(100)]
        shared = ["10.9.9.9"] if number < 2 else []
        endpoints = (endpoint(each, "n1", ready=ready) for each in addresses + shared)
        return endpoint_slice("web", *endpoints, name=f"web-{number:02}")

    state = state_of(SERVICE, *map(one, range(40)))
    assert len(state.backends(WEB).pools[4].matching(HOSTNAME_LABEL, "n1").addresses) == 4001
    state.apply(Upserted(one(7, ready=False)), 0)
    counted = Calls()
    counted.count(lambda: state.backends(WEB).pools[4].matching(HOSTNAME_LABEL, "n1"))
    assert counted.total < 1500
    assert len(state.backends(WEB).pools[4].matching(HOSTNAME_LABEL, "n1").addresses) == 3901
