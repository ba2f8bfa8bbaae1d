"""Coverage of a Service: a client on each Node gets what `select` gives it, and the load and the zones add up."""

import math
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.audits import answers_on, coverage
from tests.support.model_builders import endpoint, node
from topodns.cluster.endpoints import Pool, Segment
from topodns.cluster.model import Endpoint, InvalidPolicy, KeySource, Node, ObjectKey, Policy
from topodns.inspect.coverage import SELECTIONS, STEP, coverage_steps
from topodns.inspect.model import Coverage, NodeGroups, ServiceView
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.select import Location, OnInvalid, Reason, UnknownClient, select

H = "kubernetes.io/hostname"
Z = "topology.kubernetes.io/zone"
K = "example.com/rack"

NAMES = ("n1", "n2", "n3", "n4", "n5")
SOME_NODES = st.dictionaries(
    st.sampled_from(NAMES),
    st.dictionaries(st.sampled_from([H, Z, K]), st.sampled_from(["", "a", "b", "n1", "n2"])),
    max_size=5,
).map(lambda labels: {name: node(name, some) for name, some in labels.items()})
SOME_ENDPOINTS = st.lists(
    st.builds(
        endpoint,
        address=st.integers(0, 9).map(lambda number: f"10.0.0.{number}")
        | st.integers(0, 9).map(lambda number: f"fd00::{number}"),
        node=st.sampled_from(NAMES) | st.just("gone") | st.just(""),
        topology_zone=st.none() | st.sampled_from(["", "a", "b"]),
        topology=st.dictionaries(st.just(K), st.sampled_from(["", "a"])),
        zone_hints=st.lists(st.sampled_from(["a", "b"]), max_size=1),
        node_hints=st.lists(st.sampled_from(NAMES), max_size=1),
    ),
    max_size=8,
    unique_by=lambda each: each.address,
).map(tuple)
KEYS = st.lists(st.sampled_from([H, Z, K, "x", f"!{H}", f"!{Z}", f"!{K}"]), min_size=1, max_size=4, unique=True)
POLICIES = st.one_of(
    st.none(),
    st.just(InvalidPolicy(KeySource.ANNOTATION, "wrong")),
    st.just(Policy((), KeySource.HINTS)),
    st.just(Policy((K,), KeySource.OPENYURT, keys_if_unlabelled=(H,))),
    st.builds(lambda keys, soft: Policy((*keys, *soft), KeySource.ANNOTATION), KEYS, st.sampled_from([(), ("*",)])),
)


def view(*endpoints: Endpoint, keys: tuple[str, ...] = (Z,)) -> ServiceView:
    return of_endpoints(endpoints, Policy(keys, KeySource.ANNOTATION))


def of_endpoints(endpoints: tuple[Endpoint, ...], policy: Policy | InvalidPolicy | None) -> ServiceView:
    families = {size: tuple(one for one in endpoints if len(one.address) == size) for size in (4, 16)}
    return ServiceView(ObjectKey("shop", "db"), policy, ipv4=families[4], ipv6=families[16])


def answers_by_node(found: Coverage) -> dict[str, dict[int, tuple[Reason, str, tuple[Endpoint, ...]]]]:
    return {
        one.name: {answer.family: (answer.reason, answer.key, answer.group.endpoints) for answer in group.answers}
        for group in found.clients
        for one in group.nodes
    }


@settings(max_examples=120, deadline=None)
@given(
    nodes=SOME_NODES,
    endpoints=SOME_ENDPOINTS,
    policy=POLICIES,
    unknown_client=st.sampled_from(UnknownClient),
    on_invalid=st.sampled_from(OnInvalid),
)
def test_each_node_has_the_answer_that_select_gives_for_it_alone(
    nodes: Mapping[str, Node],
    endpoints: tuple[Endpoint, ...],
    policy: Policy | InvalidPolicy | None,
    unknown_client: UnknownClient,
    on_invalid: OnInvalid,
) -> None:
    service = of_endpoints(endpoints, policy)
    found = coverage(service, nodes, unknown_client, on_invalid)
    pools = {family: Pool((Segment(some),), nodes.get) for family, some in service.families}

    def naive(location: Location) -> dict[int, tuple[Reason, str, tuple[Endpoint, ...]]]:
        selections = {
            family: select(pool, policy, location, unknown_client, on_invalid) for family, pool in pools.items()
        }
        return {family: (one.reason, one.key, one.group.endpoints) for family, one in selections.items()}

    expected = {name: naive(Location(name, each)) for name, each in nodes.items()}
    assert answers_by_node(found) == expected
    assert found.nodes == len(nodes) == sum(group.size for group in found.clients)
    assert found.covered == sum(any(some for _, _, some in each.values()) for each in expected.values())
    load = {
        one.address: sum(1 / len(some) for each in expected.values() for _, _, some in each.values() if one in some)
        for one in endpoints
    }
    assert {one.endpoint.address: pytest.approx(one.clients) for one in found.load} == load


@settings(max_examples=50, deadline=None)
@given(nodes=SOME_NODES, views=st.lists(st.tuples(SOME_ENDPOINTS, POLICIES), max_size=4))
def test_services_of_the_same_nodes_share_their_groupings_without_effect(
    nodes: Mapping[str, Node], views: list[tuple[tuple[Endpoint, ...], Policy | InvalidPolicy | None]]
) -> None:
    groups = NodeGroups(nodes)
    for endpoints, policy in views:
        service = of_endpoints(endpoints, policy)
        assert answers_by_node(coverage(service, groups)) == answers_by_node(coverage(service, nodes))


def zones_of(found: Coverage) -> list[tuple[str, int, int, int]]:
    """(name, Nodes, covered ones, endpoints) of each zone."""
    return [(name, one.nodes, one.covered, one.endpoints) for name, one in found.zones.items()]


def cluster(*zones: str) -> dict[str, Node]:
    """n1, n2, ... in these zones."""
    return {f"n{at}": node(f"n{at}", {Z: one} if one else {"other": ""}) for at, one in enumerate(zones, 1)}


def test_zones_count_their_nodes_those_covered_and_their_endpoints() -> None:
    found = coverage(
        view(endpoint("10.0.0.1", "n1"), endpoint("10.0.0.2", "n3"), endpoint("10.0.0.3", "gone")),
        cluster("a", "a", "b", "c", ""),
    )
    assert zones_of(found) == [("", 1, 0, 1), ("a", 2, 2, 1), ("b", 1, 1, 1), ("c", 1, 0, 0)]
    assert (found.nodes, found.covered, found.endpoints) == (5, 3, 3)


def test_load_is_the_clients_of_each_endpoint_if_every_node_asks_once() -> None:
    found = coverage(
        view(endpoint("10.0.0.1", "n1"), endpoint("10.0.0.2", "n4"), endpoint("10.0.0.3", "n4")),
        cluster("a", "a", "a", "b"),
    )
    assert [one.clients for one in found.load] == [3.0, 0.5, 0.5]
    assert math.isclose(found.skew, 2.25)


def test_a_service_without_ready_endpoints_covers_no_node() -> None:
    found = coverage(view(), cluster("a", "b"))
    assert (found.endpoints, found.covered, found.skew, found.load) == (0, 0, 0.0, ())


def test_two_families_are_chosen_from_apart() -> None:
    found = coverage(view(endpoint("10.0.0.1", "n1"), endpoint("fd00::1", "n2")), cluster("a", "b", "c"))
    assert {
        name: {family: len(some) for family, (_, _, some) in each.items()}
        for name, each in answers_by_node(found).items()
    } == {
        "n1": {4: 1, 6: 0},
        "n2": {4: 0, 6: 1},
        "n3": {4: 0, 6: 0},
    }
    assert zones_of(found) == [("a", 1, 1, 1), ("b", 1, 1, 1), ("c", 1, 0, 0)]


def test_a_node_with_an_endpoint_by_its_hostname_is_apart_from_others() -> None:
    found = coverage(view(endpoint("10.0.0.1", "n1"), keys=(H, "*")), cluster("a", "a"))
    assert [answer.key for answer in answers_on(found, "n1")] == [H]
    assert [answer.key for answer in answers_on(found, "n2")] == ["*"]


def test_nodes_that_no_endpoint_is_on_are_selected_for_once() -> None:
    """The cost is that of the endpoints and the distinct values of labels, not of their product with the Nodes."""
    nodes = {f"n{at}": node(f"n{at}", {Z: f"z{at % 3}", H: f"n{at}"}) for at in range(3000)}
    found = coverage(view(endpoint("10.0.0.1", "n1"), endpoint("10.0.0.2", "n2"), keys=(H, Z)), nodes)
    assert len(found.clients) == 2 + 3
    assert sum(group.size for group in found.clients) == 3000


@pytest.mark.parametrize("keys", [(H,), (Z, "*")])
def test_a_large_service_is_covered_in_steps(keys: tuple[str, ...]) -> None:
    """However many endpoints there are, a step indexes, selects for, or counts a bounded number."""
    nodes = NodeGroups({f"n{at}": node(f"n{at}", {Z: f"z{at % 3}"}) for at in range(2000)})
    some = tuple(endpoint(f"10.0.{at // 200}.{at % 200}", f"n{at}") for at in range(2000))
    steps = list(coverage_steps(view(*some, keys=keys), nodes, TopologySettings()))
    selections, endpoint_steps = (2000 // SELECTIONS if keys == (H,) else 0), 2000 // STEP
    by_hostname = 3 * endpoint_steps if keys == (H,) else 0
    assert len(steps) >= selections + 3 * endpoint_steps + by_hostname


def test_beyond_a_number_of_endpoints_another_host_is_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client's own Node is one of many then, and time would grow with their square."""
    nodes = {name: node(name, {H: name}) for name in NAMES}
    endpoints = tuple(endpoint(f"10.0.0.{at}", node=name) for at, name in enumerate(NAMES))
    service = view(*endpoints, keys=(f"!{H}",))
    assert {len(each.answers[0].group.endpoints) for each in coverage(service, nodes).clients} == {4}
    monkeypatch.setattr("topodns.inspect.coverage.MAX_OTHERS", 4)
    assert len(coverage(service, nodes).clients) == 1
