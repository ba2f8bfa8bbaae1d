"""Endpoints of each Service, built at their first use and kept until a change."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.model_builders import endpoint, endpoint_slice, node, service, state_of
from topodns.cluster import backends as backends_module
from topodns.cluster.backends import EVERYWHERE, Backends, BackendsTable, PortIndex
from topodns.cluster.endpoints import EMPTY_GROUP, Group, Identity, Pool, Segment, identity_of
from topodns.cluster.model import (
    HOSTNAME_LABEL,
    MAX_PORTS,
    ZONE_LABEL,
    Change,
    Deleted,
    Endpoint,
    EndpointPort,
    EndpointSlice,
    KeySource,
    Node,
    ObjectKey,
    Policy,
    Service,
    Upserted,
)
from topodns.cluster.slice_members import SliceMembers
from topodns.cluster.slices import SliceOwner, SliceTable
from topodns.cluster.state import ClusterState
from topodns.topology.keys import key_reader

WEB = SliceOwner(ObjectKey("default", "web"))


class Held:
    """Slices, and the endpoints that are built of them."""

    def __init__(self, *slices: EndpointSlice) -> None:
        self.slices: dict[tuple[str, str], EndpointSlice] = {}
        self._table = SliceTable(self.slices)
        self.backends = BackendsTable(self._table, lambda name: None, terminating_fallback=False, pod_names=False)
        for each in slices:
            self.put(each)

    def put(self, new: EndpointSlice) -> None:
        old = self.slices.get(new.key)
        self.slices[new.key] = new
        self._table.replace(new.key, old, new)
        self.backends.invalidate_slice(ObjectKey(new.namespace, new.service_name), new.name)


ONE, TWO = (endpoint_slice("web", endpoint(f"10.0.0.{at}"), name=f"s{at}") for at in (1, 2))


def test_endpoints_are_built_once_until_a_change() -> None:
    held = Held(ONE)
    built = held.backends.get(WEB)
    assert held.backends.get(WEB) is built
    held.put(TWO)
    assert [member.slice for member in held.backends.get(WEB).members] == [ONE, TWO]


def test_a_changed_slice_leaves_the_members_of_the_others() -> None:
    held = Held(ONE, TWO)
    first, second = held.backends.get(WEB).members
    held.put(endpoint_slice("web", endpoint("10.0.0.9"), name="s2"))
    after = held.backends.get(WEB).members
    assert after[0] is first
    assert after[1] is not second
    held.backends.invalidate(WEB.key)
    assert held.backends.get(WEB).members[0] is not first


def test_a_name_that_does_not_exist_takes_no_memory() -> None:
    held = Held(ONE)
    nothing = held.backends.get(SliceOwner(ObjectKey("default", "none")))
    assert nothing is held.backends.get(SliceOwner(ObjectKey("other", "none")))
    assert held.backends.built == {}


def test_the_endpoints_of_one_cluster_are_built_apart() -> None:
    imports = [endpoint_slice("web", name=each, imported=True, cluster_id=each) for each in ("east", "west")]
    held, owner = Held(*imports), WEB._replace(imported=True)
    built = [held.backends.get(owner, each) for each in ("east", "west", "")]
    assert [each.cluster_ids for each in built] == [("east",), ("west",), ("east", "west")]


def test_cluster_ids_are_the_same_in_any_case() -> None:
    ids = ("East", "eAst", "c1.EU")
    imports = [endpoint_slice("web", name=f"web-{each}", imported=True, cluster_id=each) for each in ids]
    held, owner = Held(*imports), WEB._replace(imported=True)
    built = [held.backends.get(owner, each).cluster_ids for each in ("", "east", "c1.eu")]
    assert built == [("East", "c1.EU"), ("East",), ("c1.EU",)]


# Ports of a Service's slices, and the slices with each.

HTTP, DNS = EndpointPort("http", "TCP", 80), EndpointPort("dns", "UDP", 53)


def test_a_port_of_all_slices_is_everywhere() -> None:
    found = PortIndex([endpoint_slice("a", ports=["http:80", "dns:53/UDP"]) for _ in range(2)])
    assert (found.ports, found.set_of(HTTP), found.set_of(DNS)) == ((HTTP, DNS), EVERYWHERE, EVERYWHERE)


def test_ports_of_the_same_slices_share_a_set() -> None:
    slices = [
        endpoint_slice("a", endpoint("10.0.0.1"), ports=["http:80"]),
        endpoint_slice("a", endpoint("10.0.0.2", hostname="b"), ports=["http:80", "dns:53/UDP", "a:1"]),
    ]
    found = PortIndex(slices)
    number = found.set_of(DNS)
    assert number is not None
    assert (found.set_of(HTTP), found.set_of(EndpointPort("a", "TCP", 1))) == (EVERYWHERE, number)
    assert found.places(number) == (1,)
    assert found.set_of(EndpointPort("http", "UDP", 80)) is None


def test_the_first_thousand_ports_count() -> None:
    slices = [endpoint_slice("a", ports=[f"p{first + at}:1" for at in range(600)]) for first in (0, 600)]
    found = PortIndex(slices)
    assert (len(found.ports), found.ports[-1].name) == (MAX_PORTS, f"p{MAX_PORTS - 1}")


def test_a_service_without_slices_has_no_ports() -> None:
    assert PortIndex([]).ports == ()


def test_a_slice_without_ports_is_in_a_set_of_its_own() -> None:
    nameless = EndpointPort("", "", None)
    found = PortIndex([endpoint_slice("a", ports=["http:80"]), endpoint_slice("a")])
    assert found.ports == (HTTP, nameless)
    numbers = [found.set_of(port) for port in found.ports]
    assert [found.places(number) for number in numbers if number is not None] == [(0,), (1,)]
    assert PortIndex([endpoint_slice("a"), endpoint_slice("a")]).set_of(nameless) == EVERYWHERE


def test_a_port_that_a_slice_has_twice_counts_once() -> None:
    found = PortIndex([endpoint_slice("a", ports=["http:80", "http:80"]), endpoint_slice("a", ports=["dns:53/UDP"])])
    numbers = [found.set_of(port) for port in (HTTP, DNS)]
    assert None not in numbers
    assert [found.places(number) for number in numbers if number is not None] == [(0,), (1,)]


# Backends after changes of single slices: equal to Backends merged anew, and made of the other slices' segments.

DB = ObjectKey("default", "db")
RACK = "example.com/rack"
KEYS = f"{HOSTNAME_LABEL},{ZONE_LABEL},{RACK}"
NODES = ("n0", "n1", "n2", "")
VALUES = ("a", "b", "A")
HOSTNAMES = ("", "", "", "h0", "10-0-0-1")

# Few addresses, so that slices often share one, or more of them than there are endpoints, so that they rarely do.
ADDRESSES = st.integers(1, 8) | st.integers(1, 250)
HINTS = st.sampled_from(((), ("n0",), ("n0", "n1"), ("a",), ("a", "b")))
PORTS = st.sampled_from((["http:80"], ["http:80"], ["http:80"], ["http:80", "dns:53/UDP"], []))


@st.composite
def endpoints(draw: st.DrawFn) -> Endpoint:
    number = draw(ADDRESSES)
    ready = draw(st.sampled_from((True, True, False)))
    return endpoint(
        f"fd00::{number:x}" if draw(st.integers(0, 9)) == 0 else f"10.0.0.{number}",
        node=draw(st.sampled_from(NODES)),
        hostname=draw(st.sampled_from(HOSTNAMES)),
        topology_zone=draw(st.sampled_from((None, *VALUES))),
        ready=ready,
        serving=ready or draw(st.booleans()),
        terminating=draw(st.booleans()),
        node_hints=draw(HINTS),
        zone_hints=draw(HINTS),
    )


@st.composite
def slices(draw: st.DrawFn) -> EndpointSlice:
    address_type = draw(st.sampled_from(("IPv4", "IPv4", "IPv4", "IPv6", "FQDN")))
    made = endpoint_slice(
        draw(st.sampled_from(("db", "db", "db", "db", "other"))),
        *(draw(st.lists(endpoints(), max_size=4)) if address_type != "FQDN" else ()),
        name=draw(st.sampled_from(("s0", "s1", "s2", "s3", "s4"))),
        ports=draw(PORTS),
        address_type=address_type,
        imported=draw(st.integers(0, 9)) == 0,
    )
    return replace(made, generation=draw(st.integers(0, 3)), mirrored=draw(st.integers(0, 9)) == 0)


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    labels = draw(st.dictionaries(st.sampled_from((HOSTNAME_LABEL, ZONE_LABEL, RACK)), st.sampled_from(VALUES)))
    return node(draw(st.sampled_from(NODES[:3])), labels)


SERVICES: st.SearchStrategy[Service] = st.builds(
    service, st.just("db"), annotation=st.sampled_from((None, KEYS, "not a key"))
)
CHANGES: st.SearchStrategy[Change] = st.one_of(
    *[st.builds(Upserted, slices())] * 6,
    st.builds(lambda name: Deleted("EndpointSlice", ObjectKey("default", name)), st.sampled_from(("s0", "s1", "s2"))),
    st.builds(Upserted, nodes()),
    st.builds(lambda name: Deleted("Node", ObjectKey("", name)), st.sampled_from(NODES[:3])),
    st.builds(Upserted, SERVICES),
)


def lookups(pool: Pool) -> Iterator[Group]:
    yield pool.everyone
    yield from (pool.on_node(name) for name in NODES[:3])
    yield from (pool.matching(key, value) for key in (HOSTNAME_LABEL, ZONE_LABEL, RACK) for value in (*VALUES, "n0"))
    yield from (pool.same_host(name, value) for name in NODES[:3] for value in (*VALUES, name))
    yield from (pool.hinted_for_node(name) or EMPTY_GROUP for name in NODES[:3])
    yield from (pool.hinted_for_zone(value) or EMPTY_GROUP for value in VALUES)
    yield from (pool.by_topology_zone(value) for value in VALUES)


def all_of(backends: Backends) -> object:
    """Each answer that Backends give about the names, ports and values in this file."""
    families = 4, 6
    ports = *backends.ports, EndpointPort("none", "TCP", 1)
    named = [backends.named(name) for name in (*HOSTNAMES, "10-0-0-1", "10-0-0-2", "fd00--1", "H0")]
    by_port = [backends.pool_for_port(family, port) for family in families for port in ports]
    pools = [
        *map(backends.pools.__getitem__, families),
        *by_port,
        *(backends.pool_for_name(4, name) for name in HOSTNAMES),
    ]
    exposing = [backends.exposing(4, port, group) for port in ports for some in named for group in some.values()]
    groups = [group for pool in pools for group in lookups(pool)]
    return (
        *(backends.has_ready, backends.ports, backends.cluster_ids, backends.nodes, named, exposing),
        [(group.endpoints, group.addresses) for group in groups],
        backends.joined_addresses(group for group in groups if group.endpoints and len(group.addresses[0]) == 4),
    )


def in_one_segment(slices: Sequence[EndpointSlice], *_: object) -> tuple[SliceMembers, ...]:
    """The members of all slices, as if they were one."""
    best: dict[Identity, tuple[int, Endpoint]] = {}
    for one in slices:
        for each in filter(attrgetter("ready"), one.endpoints):
            if one.generation > best.get(identity_of(each), (-1,))[0]:
                best[identity_of(each)] = one.generation, each
    ready = [each for _, each in best.values()]
    four, six = (tuple(each for each in ready if len(each.address) == size) for size in (4, 16))
    segments = (Segment(four) if four else None, Segment(six) if six else None)
    return (SliceMembers(slices[0], (), *segments, shares_address=True),) if slices else ()


USES = st.sampled_from(("nothing", "build", "all"))  # after a change


@given(st.lists(st.tuples(CHANGES, USES), max_size=12), st.booleans(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_after_any_changes_backends_are_as_if_all_slices_were_merged_anew(
    changes: list[tuple[Change, str]], terminating_fallback: bool, pod_names: bool
) -> None:
    state = ClusterState(frozenset(), key_reader((KeySource.ANNOTATION,)), terminating_fallback, pod_names)
    state.apply(Upserted(service("db", annotation=KEYS)), 0)
    for change, use in (*changes, (Upserted(endpoint_slice("db", endpoint("10.0.0.77"), name="s9")), "all")):
        state.apply(change, 0)
        if use == "build":
            state.backends(DB)
        # Without a policy nothing reads the labels of Nodes, so that a change of them need not outdate anything.
        elif use == "all" and isinstance(state.policies.get(DB), Policy):
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(backends_module, "members_of_slices", in_one_segment)
                fresh = Backends(
                    state.slice_table.owned.counted(SliceOwner(DB)), state.node, terminating_fallback, pod_names
                )
            assert not fresh.members
            assert all_of(state.backends(DB)) == all_of(fresh)


def large(at: int, ready: bool = True, serving: bool = True) -> EndpointSlice:
    """A slice of a hundred endpoints; `ready` and `serving` are of the first of them."""
    first, *others = (endpoint(f"10.0.{at}.{number}", f"n{number % 3}") for number in range(100))
    return endpoint_slice(
        "db", replace(first, ready=ready, serving=serving), *others, name=f"db-{at}", ports=["http:80"]
    )


@pytest.fixture
def state() -> ClusterState:
    return state_of(*(node(f"n{number}") for number in range(3)), service("db", annotation=KEYS), *map(large, range(5)))


def test_a_changed_slice_leaves_the_segments_of_the_others(state: ClusterState) -> None:
    before = state.backends(DB).pools[4].segments
    state.apply(Upserted(large(2, ready=False)), 0)
    state.apply(Upserted(large(2, ready=False, serving=False)), 0)
    after = state.backends(DB).pools[4].segments
    assert [new is old for old, new in zip(before, after, strict=True)] == [True, True, False, True, True]
    assert len(state.backends(DB).pools[4].everyone.endpoints) == 499


def test_so_does_a_slice_that_is_added_and_one_that_is_removed(state: ClusterState) -> None:
    before = state.backends(DB).pools[4].segments
    state.apply(Upserted(large(5)), 0)
    assert state.backends(DB).pools[4].segments[:5] == before
    state.apply(Deleted("EndpointSlice", ObjectKey("default", "db-0")), 0)
    assert state.backends(DB).pools[4].segments[:4] == before[1:]


def test_addresses_of_other_services_do_not_matter(state: ClusterState) -> None:
    before = state.backends(DB).pools[4].segments
    twin = replace(large(2), name="twin", service_name="twin")
    others = (replace(twin, name=f"{number:03}", namespace="elsewhere") for number in range(200))
    for one in (twin, *others):
        state.apply(Upserted(one), 0)
    state.apply(Upserted(large(2, ready=False)), 0)
    assert state.backends(DB).pools[4].segments[3] is before[3]


def test_slices_that_share_an_address_are_merged_and_the_others_keep_their_segments(state: ClusterState) -> None:
    before = state.backends(DB).pools[4].segments
    both = large(2)
    state.apply(Upserted(replace(both, endpoints=(*both.endpoints, endpoint("10.0.0.0", "n0")))), 0)
    after = state.backends(DB).pools[4].segments
    assert [new is old for old, new in zip(before, after, strict=True)] == [True, True, False, True, True]
    assert len(state.backends(DB).pools[4].everyone.endpoints) == 500
    state.apply(Upserted(large(3, ready=False)), 0)
    later = state.backends(DB).pools[4].segments
    assert [new is old for old, new in zip(after, later, strict=True)] == [True, True, True, False, True]
    state.apply(Upserted(both), 0)
    state.backends(DB)
    state.apply(Upserted(large(3)), 0)
    assert [one.shares_address for one in state.backends(DB).members] == [False] * 5


def test_labels_of_nodes_are_read_again_before_the_next_use(state: ClusterState) -> None:
    assert len(state.backends(DB).pools[4].matching(RACK, "7").endpoints) == 0
    state.apply(Upserted(large(2, ready=False)), 0)
    state.apply(Upserted(node("n1", {RACK: "7"})), 0)
    assert len(state.backends(DB).pools[4].matching(RACK, "7").endpoints) == 5 * 33


def test_nothing_is_kept_of_a_service_without_slices(state: ClusterState) -> None:
    state.backends(DB)
    for at in range(5):
        state.apply(Deleted("EndpointSlice", ObjectKey("default", f"db-{at}")), 0)
    assert not state._backends._kept
    assert not state.backends(DB).has_ready
