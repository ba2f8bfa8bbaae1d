"""Which objects are left out where all together are too many: the largest of the largest namespace, and no others."""

from collections import Counter
from itertools import chain
from random import Random
from sys import getsizeof

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.model_builders import endpoint, endpoint_slice, pod, pod_locator, service
from topodns.cluster.model import (
    ClusterObject,
    Deleted,
    EndpointSlice,
    Kind,
    ObjectKey,
    PodLocator,
    Replaced,
    Service,
    Upserted,
    kind_of,
)
from topodns.cluster.namespace_budget import (
    FURTHER,
    LeftOut,
    NamespaceBudget,
    further,
    octets_left_out,
    octets_of,
    placeholder,
)
from topodns.cluster.publishing_state import PublishingState
from topodns.cluster.slices import HELD, MOST_COUNTED
from topodns.cluster.state import ClusterState

NAMESPACES = ("a", "b", "c", "tenant")


class World:
    """A state within a limit of octets, and the objects that were offered to it."""

    def __init__(self, limit: int) -> None:
        self.state = ClusterState(frozenset())
        self.budget = NamespaceBudget(limit)
        self.published = PublishingState(self.state, lambda: 1.0, budget=self.budget)
        self.offered: dict[tuple[Kind, ObjectKey], ClusterObject] = {}

    def put(self, *values: ClusterObject) -> None:
        for value in values:
            self.offered[kind_of(value), value.key] = value
            self.published.apply(Upserted(value))

    def delete(self, value: ClusterObject) -> None:
        del self.offered[kind_of(value), value.key]
        self.published.apply(Deleted(kind_of(value), value.key))

    def is_whole(self, namespace: str) -> bool:
        of_namespace = [entry for entry in self.offered.items() if entry[0][1].namespace == namespace]
        return all(self.state.held(kind, key) == value for (kind, key), value in of_namespace)

    def offered_octets(self) -> Counter[str]:
        sums: Counter[str] = Counter()
        for (_, key), value in self.offered.items():
            sums[key.namespace] += octets_of(value)
        return sums

    def held_octets(self) -> int:
        kinds: tuple[Kind, ...] = ("Service", "EndpointSlice", "Pod")
        held = [self.state.held(kind, key) for kind in kinds for key in self.state.keys(kind)]
        return sum(octets_of(value) for value in held if value is not None)


def with_ports(name: str, number: int, namespace: str = "tenant") -> Service:
    return service(name, namespace, ports=[f"p{port}:{port + 1}" for port in range(number)])


def with_endpoints(name: str, number: int, namespace: str = "tenant", owner: str = "") -> EndpointSlice:
    addresses = [endpoint(f"10.{at >> 16}.{at >> 8 & 255}.{at & 255}", node=f"n{at % 9}") for at in range(number)]
    return endpoint_slice(owner or name, *addresses, name=name, namespace=namespace)


changes = st.lists(
    st.tuples(
        st.sampled_from(NAMESPACES), st.sampled_from("spS"), st.integers(0, 9), st.sampled_from([0, 1, 30, 200, 900])
    ),
    max_size=60,
)


@given(changes=changes, chance=st.randoms(use_true_random=False), limit=st.integers(150_000, 600_000))
def test_the_octets_keep_to_the_limit_and_a_namespace_within_a_fair_share_is_whole(
    changes: list[tuple[str, str, int, int]], chance: Random, limit: int
) -> None:
    world = World(limit)
    most: Counter[str] = Counter()
    for namespace, sort, number, size in changes:
        value = _made(namespace, sort, number, size)
        if (kind_of(value), value.key) in world.offered and chance.random() < 0.3:
            world.delete(value)
        else:
            world.put(value)
        most |= world.offered_octets()
        assert world.held_octets() == world.budget.octets <= limit
        assert all(world.is_whole(name) for name, octets in most.items() if octets < limit / len(NAMESPACES))


def _made(namespace: str, sort: str, number: int, size: int) -> ClusterObject:
    match sort:
        case "s":
            return with_ports(f"x{number}", size, namespace)
        case "S":
            return with_endpoints(f"x{number}", size, namespace)
    return pod(f"x{number}", [f"10.0.0.{number}"], namespace)


def test_the_largest_objects_of_the_largest_namespace_are_left_out() -> None:
    world = World(400_000)
    world.put(with_ports("small", 1), with_endpoints("middle", 100), with_endpoints("other", 100, "a"))
    world.put(*(with_endpoints(f"large-{number}", 600) for number in range(4)))
    left_out = sorted(key.name for _, key in world.state.left_out.octets)
    assert len(left_out) == 3
    assert all(name.startswith("large-") for name in left_out)
    assert world.is_whole("a")
    assert world.state.held("Service", ObjectKey("tenant", "small")) == with_ports("small", 1)
    assert world.state.held("EndpointSlice", ObjectKey("tenant", "middle")) == with_endpoints("middle", 100)


def test_a_small_namespace_that_grows_takes_the_room_from_the_largest() -> None:
    world = World(400_000)
    world.put(*(with_endpoints(f"large-{number}", 400) for number in range(2)))
    assert world.is_whole("tenant")
    world.put(with_endpoints("web", 200, "a"))
    assert world.is_whole("a")
    assert not world.is_whole("tenant")


def test_an_update_that_makes_an_object_small_brings_it_back() -> None:
    world = World(200_000)
    world.put(with_endpoints("db", 900))
    assert octets_left_out(world.state.held("EndpointSlice", ObjectKey("tenant", "db")))
    world.put(with_endpoints("db", 3))
    assert world.is_whole("tenant")
    assert not world.state.left_out.octets


def test_the_deletion_of_an_object_that_is_left_out_is_forgotten() -> None:
    world = World(200_000)
    large = with_endpoints("db", 900)
    world.put(large)
    world.delete(large)
    assert (world.state.counts()["EndpointSlice"], world.budget.octets) == (0, 0)
    assert not world.state.left_out.namespaces


def test_small_objects_without_end_leave_nothing_but_the_mark_of_their_namespace() -> None:
    world = World(100_000)
    world.put(*(service(f"s{number}", "tenant") for number in range(2000)), service("web", "a"))
    assert world.budget.octets <= 100_000
    assert world.is_whole("a")
    assert world.state.left_out.cuts("tenant")
    assert ObjectKey("tenant", FURTHER) in world.state.services


def test_a_namespace_of_small_objects_gives_room_to_others() -> None:
    world = World(100_000)
    world.put(*(service(f"s{number}", "tenant") for number in range(100)))
    world.put(*(service(f"s{number}", "a") for number in range(40)))
    assert world.is_whole("a")
    assert world.budget.octets <= 100_000


def test_a_list_beyond_the_limit_is_taken_as_far_as_there_is_room() -> None:
    world = World(300_000)
    listed = [with_endpoints(f"large-{number}", 300) for number in range(9)]
    for _ in world.published.replace_steps(Replaced("EndpointSlice", (*listed, with_endpoints("web", 9, "a")))):
        assert world.budget.octets <= world.budget.limit + octets_of(listed[0]) * len(listed)
    assert world.budget.octets <= 300_000
    assert world.state.held("EndpointSlice", ObjectKey("a", "web")) == with_endpoints("web", 9, "a")


def test_a_copy_of_the_state_leaves_out_the_same_objects() -> None:
    world = World(300_000)
    world.put(*(with_endpoints(f"large-{number}", 300) for number in range(9)))
    copy = ClusterState(frozenset())
    held = [world.state.held("EndpointSlice", key) for key in world.state.keys("EndpointSlice")]
    copy.take_copied("EndpointSlice", [each for each in held if each is not None], (), 1, listing=False)
    assert copy.left_out.octets == world.state.left_out.octets != {}


@pytest.mark.parametrize("ascending", [True, False])
def test_of_the_slices_of_one_service_so_many_are_held_as_may_count(ascending: bool) -> None:
    world = World(1 << 40)
    slices = [with_endpoints(f"db-{number:05}", 1, owner="db") for number in range(HELD + 50)]
    world.put(*(slices if ascending else reversed(slices)))
    held = [one for key in world.state.keys("EndpointSlice") if (one := world.state.held("EndpointSlice", key))]
    assert sorted(one.name for one in held if isinstance(one, EndpointSlice) and not one.left_out) == [
        one.name for one in slices[:HELD]
    ]
    assert not world.state.backends(ObjectKey("tenant", "db")).partial
    assert list(world.state.left_out_that_count()) == []


def test_a_slice_that_may_count_after_others_were_deleted_returns() -> None:
    world = World(1 << 40)
    slices = [with_endpoints(f"db-{number:05}", 1, owner="db") for number in range(HELD + 50)]
    world.put(*slices)
    for one in slices[:60]:
        world.delete(one)
    returning = {key.name for key in world.published.returning_steps("EndpointSlice") if key is not None}
    assert returning == {one.name for one in slices[HELD:]}
    assert not world.state.backends(ObjectKey("tenant", "db")).partial
    assert len(world.state.backends(ObjectKey("tenant", "db")).pools[4].segments) in (1, MOST_COUNTED)


def test_a_placeholder_has_the_key_of_the_object_and_its_service_and_nothing_else() -> None:
    one = endpoint_slice("db", endpoint("10.0.0.1"), namespace="tenant", ports=["http:80"])
    other = placeholder(one, 5000)
    assert other == EndpointSlice("tenant", "db-1", "db", "IPv4", left_out=5000)
    wide = placeholder(service("web", "tenant", ["10.96.0.1"], ["http:80"]), 6000)
    assert wide is not None
    assert (kind_of(wide), wide.key, octets_left_out(wide)) == ("Service", ObjectKey("tenant", "web"), 6000)
    assert kind_of(placeholder(service("web", "tenant", imported=True), 6000) or wide) == "ServiceImport"


def test_nothing_stands_for_a_pod_or_for_what_stands_for_others() -> None:
    assert placeholder(pod("p", ["10.0.0.1"]), 5000) is None
    assert placeholder(further("tenant"), 5000) is None


def test_objects_that_are_left_out_are_counted_by_namespace() -> None:
    left_out = LeftOut()
    one, two = service("a", "tenant"), service("b", "tenant")
    others = [placeholder(each, 5000) for each in (one, two)]
    left_out.take("Service", [(each.key, each, other) for each, other in zip((one, two), others, strict=True)])
    assert left_out.namespaces == {"tenant": 2}
    assert left_out.may_have("Service", one.key)
    left_out.take("Service", [(one.key, others[0], one), (two.key, others[1], None)])
    assert (left_out.namespaces, left_out.octets) == ({}, {})
    assert not left_out.may_have("Service", one.key)


def test_where_nothing_stands_for_some_each_object_of_the_namespace_may_be_left_out() -> None:
    left_out, other = LeftOut(), further("tenant")
    left_out.take("Service", [(other.key, None, other)])
    assert left_out.may_have("EndpointSlice", ObjectKey("tenant", "x"))
    assert not left_out.may_have("EndpointSlice", ObjectKey("other", "x"))


def labelled(name: str, labels: int, namespace: str = "tenant") -> PodLocator:
    return pod_locator(name, ["10.0.0.1"], "n1", namespace, {f"{name}-{at}": "v" * 63 for at in range(labels)})


def test_pod_locators_with_many_labels_take_no_more_than_their_namespace_may_have() -> None:
    world = World(300_000)
    world.put(
        *(labelled(f"p{number}", 64) for number in range(100)), *(labelled(f"q{at}", 3, "a") for at in range(100))
    )
    assert world.budget.octets <= 300_000
    assert world.is_whole("a")
    assert world.state.left_out.cuts("tenant")


def test_a_pod_locator_with_labels_is_estimated_at_no_less_than_its_memory() -> None:
    """Those of one Node share a few labels; the octets of further ones count."""
    few, many = (
        pod_locator("p", ["10.0.0.1"], "n1", labels=dict.fromkeys(("host", "zone", "rack"), "v")),
        labelled("q", 64),
    )
    assert octets_of(few) == octets_of(pod("p", ["10.0.0.1"]))
    assert octets_of(many) > 800 + sum(map(getsizeof, chain(*many.node_labels)))
