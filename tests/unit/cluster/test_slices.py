"""EndpointSlices by Service and by address."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.support.model_builders import endpoint, endpoint_slice, packed
from topodns.cluster.model import EndpointSlice, ObjectKey
from topodns.cluster.slices import (
    MOST_COUNTED,
    MOST_MIRRORED,
    MOST_MIRRORED_ENDPOINTS,
    MOST_SEARCHED,
    OwnedSlices,
    SliceChange,
    SliceOwner,
    SliceTable,
)
from topodns.dependency import address_fact, service_fact

WEB = SliceOwner(ObjectKey("default", "web"))
ADDRESS = packed("10.0.0.1")


class Held:
    """The slices that a state has, and their table."""

    def __init__(self, *slices: EndpointSlice) -> None:
        self.slices: dict[tuple[str, str], EndpointSlice] = {}
        self.table = SliceTable(self.slices)
        for each in slices:
            self.put(each)

    def put(self, new: EndpointSlice) -> frozenset[object]:
        """Add or change a slice; the facts that this touches."""
        return frozenset(self.change(new).facts)

    def change(self, new: EndpointSlice) -> SliceChange:
        old = self.slices.get(new.key)
        self.slices[new.key] = new
        return self.table.replace(new.key, old, new)


def test_slices_of_a_service_are_ordered_by_name() -> None:
    held = Held(*(endpoint_slice("web", name=name) for name in ("b", "c", "a")), endpoint_slice("db"))
    assert [each.name for each in held.table.owned.counted(WEB)] == ["a", "b", "c"]


def test_a_service_and_a_serviceimport_of_one_name_have_their_own() -> None:
    held = Held(endpoint_slice("web", name="a"), endpoint_slice("web", name="b", imported=True))
    names = [[each.name for each in held.table.owned.counted(owner)] for owner in (WEB, WEB._replace(imported=True))]
    assert names == [["a"], ["b"]]


def test_of_copies_of_an_endpoint_a_ready_one_is_found() -> None:
    held = Held(
        endpoint_slice("web", endpoint("10.0.0.1", ready=False), name="a"),
        endpoint_slice("web", endpoint("10.0.0.1", hostname="b"), name="b"),
        endpoint_slice("db", endpoint("10.0.0.1")),
    )
    found = {key.name: each.hostname for key, each in held.table.with_address(ADDRESS)}
    assert found == {"web": "b", "db": ""}


def test_ready_entries_at_one_address_are_found_all_and_at_most_a_hundred_of_a_namespace() -> None:
    many = [endpoint("10.0.0.1", pod=f"{at}") for at in range(MOST_SEARCHED + 1)]
    held = Held(
        endpoint_slice("web", *(endpoint("10.0.0.1", hostname=name, ready=name != "c") for name in "abc")),
        endpoint_slice("many", *many, namespace="tenant"),
    )
    found = held.table.ready_at(ADDRESS)
    assert [(key.name, each.hostname) for key, each in found[:2]] == [("web", "a"), ("web", "b")]
    assert len(found[2:]) == MOST_SEARCHED


def test_in_a_large_slice_an_endpoint_is_found_as_in_a_small_one() -> None:
    many = [endpoint(f"10.0.{at // 200}.{at % 200}") for at in range(500)]
    held = Held(endpoint_slice("web", *many))
    assert [each.address for _, each in held.table.with_address(many[-1].address)] == [many[-1].address]
    assert held.table.with_address(packed("10.9.9.9")) == ()


def test_of_a_namespace_no_more_slices_are_searched_than_the_limit() -> None:
    held = Held(*(endpoint_slice("web", endpoint("10.0.0.1"), name=f"s{at}") for at in range(MOST_SEARCHED + 5)))
    assert len(list(held.table.keys_with_address(ADDRESS))) == MOST_SEARCHED
    assert list(held.table.keys_with_address(ADDRESS, besides="default")) == []


def test_a_change_touches_the_service_and_the_addresses_that_differ() -> None:
    held = Held(endpoint_slice("web", endpoint("10.0.0.1"), endpoint("10.0.0.2")))
    changed = endpoint_slice("web", endpoint("10.0.0.1"), endpoint("10.0.0.3"))
    touched = {service_fact("default", "web"), address_fact(packed("10.0.0.2")), address_fact(packed("10.0.0.3"))}
    assert held.put(changed) == touched


def test_an_address_that_other_slices_of_the_service_have_is_shared() -> None:
    one, other = (endpoint_slice("web", endpoint("10.0.0.1"), name=name) for name in ("a", "b"))
    assert Held(one, endpoint_slice("db", endpoint("10.0.0.1"))).table.sharers(one) == set()
    assert Held(one, other).table.sharers(one) == {"a", "b"}
    assert Held(one, replace(other, mirrored=True)).table.sharers(one) == set()
    twice = replace(one, endpoints=one.endpoints * 2)
    assert Held(twice).table.sharers(twice) == {"a"}


def test_a_new_generation_of_one_of_two_copies_touches_their_address() -> None:
    """The copy of the highest generation counts, so the client may be on another Node now."""
    held = Held(
        replace(endpoint_slice("web", endpoint("10.0.0.1", "n1"), name="a"), generation=1),
        replace(endpoint_slice("web", endpoint("10.0.0.1", "n2"), name="b"), generation=2),
        endpoint_slice("db", endpoint("10.0.0.2"), name="c"),
    )
    newer = replace(endpoint_slice("web", endpoint("10.0.0.1", "n1"), name="a"), generation=3)
    assert held.put(newer) == {address_fact(ADDRESS), service_fact("default", "web")}
    assert [each.node_name for _, each in held.table.with_address(ADDRESS)] == ["n1"]


def test_another_order_of_two_endpoints_with_one_address_touches_it() -> None:
    """Pods of the host network have the address of their Node; of two in one slice the first counts."""
    a, b, other = endpoint("10.0.0.1", hostname="a"), endpoint("10.0.0.1", hostname="b"), endpoint("10.0.0.2")
    held = Held(endpoint_slice("web", a, b, other))
    assert held.put(endpoint_slice("web", other, a, b)) == {service_fact("default", "web")}
    assert held.put(endpoint_slice("web", other, b, a)) == {address_fact(ADDRESS), service_fact("default", "web")}
    assert [each.hostname for _, each in held.table.with_address(ADDRESS)] == ["b"]


def test_a_new_generation_of_an_address_in_slices_of_two_services_touches_the_service_only() -> None:
    held = Held(
        endpoint_slice("web", endpoint("10.0.0.1"), name="a"), endpoint_slice("db", endpoint("10.0.0.1"), name="b")
    )
    newer = replace(endpoint_slice("web", endpoint("10.0.0.1"), name="a"), generation=9)
    assert held.put(newer) == {service_fact("default", "web")}


# The slices of each Service, and which of them count.


def web(name: str, mirrored: bool = False, ready: bool = True) -> EndpointSlice:
    return replace(endpoint_slice("web", endpoint("10.0.0.1", ready=ready), name=name), mirrored=mirrored)


def owned(*slices: EndpointSlice) -> OwnedSlices:
    made = OwnedSlices()
    for one in slices:
        made.add(one)
    return made


def names(of: OwnedSlices) -> list[str]:
    return [one.name for one in of.counted(WEB)]


def test_mirrored_slices_count_only_where_there_is_no_other() -> None:
    real, mirrored = web("b"), web("a", mirrored=True)
    of = owned(real, mirrored)
    assert (names(of), of.counts(real), of.counts(mirrored)) == (["b"], True, False)
    of.remove(real)
    assert (names(of), of.counts(mirrored)) == (["a"], True)


def test_a_thousand_slices_of_a_service_count_the_first_by_name() -> None:
    slices = [web(f"s{number:04}") for number in range(MOST_COUNTED + 2)]
    of = owned(*reversed(slices))
    assert names(of) == [one.name for one in slices[:MOST_COUNTED]]
    of.remove(slices[0])
    assert names(of) == [one.name for one in slices[1 : MOST_COUNTED + 1]]


def test_of_mirrored_slices_so_many_count() -> None:
    slices = [web(f"s{number:03}", mirrored=True) for number in range(MOST_MIRRORED + 1)]
    of = owned(*slices)
    assert names(of) == [one.name for one in slices[:-1]]
    assert [of.counts(one) for one in slices[-2:]] == [True, False]


def test_of_large_mirrored_slices_fewer_count() -> None:
    endpoints = tuple(endpoint(f"10.{at >> 8}.{at & 255}.1") for at in range(MOST_MIRRORED_ENDPOINTS // 4))
    of = owned(*(replace(web(f"s{number}", mirrored=True), endpoints=endpoints) for number in range(6)))
    assert names(of) == ["s0", "s1", "s2", "s3"]


def test_slices_with_a_ready_endpoint_are_counted_of_mirrored_ones_only_without_others() -> None:
    mirrored, first, second = web("m", mirrored=True), web("a", ready=False), web("b")
    of = owned(mirrored)
    assert of.ready(WEB) == 1
    of.add(first)
    assert of.ready(WEB) == 0
    of.add(second)
    assert of.ready(WEB) == 1
    for one in (first, second, mirrored):
        of.remove(one)
    assert of.ready(WEB) == 0


def test_slices_of_no_service_are_left_out() -> None:
    alone = replace(web("a"), service_name="")
    of = owned(alone)
    assert of.counted(SliceOwner(ObjectKey("default", ""))) == ()
    of.remove(alone)


def copy_of(one: EndpointSlice) -> EndpointSlice:
    """Equal to the slice, without an object that this one has, too."""
    return replace(one, endpoints=tuple([replace(each) for each in one.endpoints]))


POOL = (
    *(endpoint(f"10.0.0.{at}", node=f"n{at % 3}", pod=f"p{at}") for at in range(6)),
    endpoint("10.0.0.1", node="n2", pod="p1", ready=False),
    endpoint("10.0.0.2", node="", pod=""),
    endpoint("10.0.0.2", hostname="b"),
)
SLICES = st.builds(
    lambda service, name, endpoints, generation, mirrored, imported: replace(
        endpoint_slice(service, *endpoints, name=name, imported=imported), generation=generation, mirrored=mirrored
    ),
    st.sampled_from(("web", "web", "web", "db", "")),
    st.sampled_from("abc"),
    st.lists(st.sampled_from(POOL), max_size=5),
    st.integers(0, 2),
    st.sampled_from((False, False, True)),
    st.sampled_from((False, False, False, True)),
)


@given(st.lists(SLICES, max_size=20))
def test_endpoints_that_stay_are_passed_over_without_any_effect(versions: list[EndpointSlice]) -> None:
    """A slice that has the same objects touches the same dependencies as one with copies, and leaves the same table."""
    sharing, copied = Held(), Held()
    for new in versions:
        assert sharing.put(new) == copied.put(copy_of(new))
        for at in range(6):
            address = packed(f"10.0.0.{at}")
            assert sharing.table.with_address(address) == copied.table.with_address(address)
            assert sharing.table.ready_at(address) == copied.table.ready_at(address)
        for owner in (WEB, SliceOwner(ObjectKey("default", "db"))):
            assert sharing.table.owned.counted(owner) == copied.table.owned.counted(owner)
            assert sharing.table.owned.ready(owner) == copied.table.owned.ready(owner)


@given(st.lists(SLICES, max_size=20))
def test_pods_move_alike_whether_those_that_stay_are_passed_over_or_not(versions: list[EndpointSlice]) -> None:
    sharing, copied = Held(), Held()
    for new in versions:
        moves = []
        for held, value in ((sharing, new), (copied, copy_of(new))):
            change = held.change(value)
            moves.append((change.before - change.after, change.after - change.before, set(change.sharing)))
        assert moves[0] == moves[1]
