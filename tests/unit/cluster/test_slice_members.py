"""The ready endpoints of each slice, and which slices are compared with each other."""

from collections.abc import Mapping
from dataclasses import replace

from tests.support.model_builders import endpoint, endpoint_slice
from topodns.cluster.model import Endpoint, EndpointSlice
from topodns.cluster.slice_members import SliceMembers, distinct_endpoints, members_of_slices

ONE, TWO, THREE = (endpoint(f"10.0.0.{number}") for number in (1, 2, 3))
SIX = endpoint("fd00::1")


def web(name: str, *endpoints: Endpoint, generation: int = 0) -> EndpointSlice:
    return replace(endpoint_slice("web", *endpoints, name=name), generation=generation)


def ready(*members: SliceMembers) -> list[list[Endpoint]]:
    return [[each for some in (one.ipv4, one.ipv6) if some for each in some.endpoints] for one in members]


def by_name(*members: SliceMembers) -> Mapping[str, SliceMembers]:
    return {one.slice.name: one for one in members}


def test_members_are_the_ready_endpoints_by_family() -> None:
    (mixed,) = members_of_slices([web("a", SIX, ONE, replace(TWO, ready=False))])
    assert ready(mixed) == [[ONE, SIX]]
    (four,) = members_of_slices([web("a", ONE)])
    assert (four.of(4) is not None, four.of(6)) == (True, None)


def test_an_endpoint_in_two_slices_is_a_member_of_the_first() -> None:
    members = members_of_slices([web("a", ONE, TWO), web("b", THREE), web("c", TWO)])
    assert ready(*members) == [[ONE, TWO], [THREE], []]
    assert [one.shares_address for one in members] == [True, False, True]


def test_so_is_one_that_is_twice_in_a_slice_once() -> None:
    members = members_of_slices([web("a", ONE, ONE), web("b", TWO)])
    assert ready(*members) == [[ONE], [TWO]]
    assert [one.shares_address for one in members] == [True, False]


def test_an_endpoint_is_a_member_of_the_first_slice_in_which_it_is_ready() -> None:
    first, second = replace(ONE, ready=False, node_name="old"), replace(ONE, node_name="new")
    assert distinct_endpoints([web("a", first, TWO), web("b", second)]) == [(TWO,), (second,)]


def test_a_copy_of_a_higher_generation_in_a_later_slice_takes_the_place_of_the_first() -> None:
    first, second = replace(ONE, node_name="old"), replace(ONE, node_name="new")
    found = distinct_endpoints([web("a", first, TWO), web("b", second, generation=1)])
    assert found == [(second, TWO), ()]


def test_of_unchanged_slices_the_members_are_kept_unless_the_changed_one_has_an_address_of_theirs() -> None:
    slices = [web("a", ONE), web("b", TWO), web("c", THREE)]
    before = members_of_slices(slices)
    slices[2] = web("c", TWO)
    after = members_of_slices(slices, by_name(*before[:2]), lambda _one: {"b", "c"})
    assert after[0] is before[0]
    assert after[1].ipv4 is before[1].ipv4, "its endpoints are the same, so their indexes are"
    assert ready(*after) == [[ONE], [TWO], []]
    assert [one.shares_address for one in after] == [False, True, True]


def test_a_slice_that_shared_an_address_is_compared_anew() -> None:
    slices = [web("a", ONE), web("b", ONE), web("c", THREE)]
    before = members_of_slices(slices)
    del slices[0]
    after = members_of_slices(slices, by_name(*before[1:]), lambda _one: ())
    assert ready(*after) == [[ONE], [THREE]]
    assert [one.shares_address for one in after] == [False, False]
    assert after[1] is before[2]
