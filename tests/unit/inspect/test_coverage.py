"""Coverage of a Service: a client on each Node gets what `select` gives it, and the load and the zones add up."""

import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.audits import answers_on, coverage
from tests.support.model_builders import endpoint, node
from topodns.cluster.endpoints import Pool, Segment
from topodns.cluster.model import Endpoint, InvalidPolicy, KeySource, MaxLoad, Node, ObjectKey, Policy
from topodns.cluster.node_labels import NodeLabels
from topodns.inspect.coverage import SELECTIONS, STEP, coverage_steps
from topodns.inspect.model import Coverage, NodeGroups, ServiceView
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.guards import Domains, Guards, bounded
from topodns.topology.select import Location, OnInvalid, Reason, UnknownClient, select

H = "kubernetes.io/hostname"
Z = "topology.kubernetes.io/zone"
K = "example.com/rack"
KEY = ObjectKey("shop", "db")

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
    st.builds(
        lambda keys, soft, least, factor: Policy(
            (*keys, *soft),
            KeySource.ANNOTATION,
            min_endpoints=least,
            max_load=None if factor is None else MaxLoad(Fraction(factor), KEY),
        ),
        KEYS,
        st.sampled_from([(), ("*",)]),
        st.sampled_from([1, 1, 2, 3]),
        st.sampled_from([None, None, "1", "1.5"]),
    ),
)


def view(*endpoints: Endpoint, keys: tuple[str, ...] = (Z,)) -> ServiceView:
    return of_endpoints(endpoints, Policy(keys, KeySource.ANNOTATION))


def of_endpoints(
    endpoints: tuple[Endpoint, ...], policy: Policy | InvalidPolicy | None, most: int | None = None
) -> ServiceView:
    families = {size: tuple(one for one in endpoints if len(one.address) == size) for size in (4, 16)}
    return ServiceView(KEY, policy, ipv4=families[4], ipv6=families[16], guards=Guards(max_endpoints=most))


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
    most=st.sampled_from([None, None, 1, 2, 3]),
    unknown_client=st.sampled_from(UnknownClient),
    on_invalid=st.sampled_from(OnInvalid),
)
def test_each_node_has_the_answer_that_select_gives_for_it_alone(
    nodes: Mapping[str, Node],
    endpoints: tuple[Endpoint, ...],
    policy: Policy | InvalidPolicy | None,
    most: int | None,
    unknown_client: UnknownClient,
    on_invalid: OnInvalid,
) -> None:
    service = of_endpoints(endpoints, policy, most)
    found = coverage(service, nodes, unknown_client, on_invalid)
    pools = {family: Pool((Segment(some),), nodes.get) for family, some in service.families}

    labels = NodeLabels()
    for each in nodes.values():
        labels.move(None, each)
    domains = Domains(lambda: nodes, labels)

    def naive(location: Location) -> dict[int, tuple[Reason, str, tuple[Endpoint, ...]]]:
        selections = {
            family: select(pool, policy, location, unknown_client, on_invalid, domains)
            for family, pool in pools.items()
        }
        return {
            family: (one.reason, one.key, bounded(one.group, most or 9, KEY, location.node_name).endpoints)
            for family, one in selections.items()
        }

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


# guards


def thirty(*zones: str) -> dict[str, Node]:
    """Ten Nodes in each of these zones, `a0` to `a9` in zone a."""
    return {f"{zone}{at}": node(f"{zone}{at}", {Z: zone}) for zone in zones for at in range(10)}


def loaded(keys: tuple[str, ...], factor: str) -> ServiceView:
    """Two endpoints in zone a, five in each of b and c."""
    some = [endpoint(f"10.0.{zone}.{at}", f"{'abc'[zone]}{at}") for zone in range(3) for at in range(5 if zone else 2)]
    policy = Policy(keys, KeySource.ANNOTATION, max_load=MaxLoad(Fraction(factor), KEY))
    return of_endpoints(tuple(some), policy)


def test_nodes_beyond_the_load_of_their_zone_are_a_group_of_their_own() -> None:
    found = coverage(loaded((Z, "*"), "1.5"), thirty(*"abc"))
    assert sorted((group.topology_zone, group.size, group.answers[0].key) for group in found.clients) == [
        ("a", 3, "*"),
        ("a", 7, Z),
        ("b", 10, Z),
        ("c", 10, Z),
    ]
    assert (found.covered, {name: zone.near for name, zone in found.zones.items()}) == (30, {"a": 7, "b": 10, "c": 10})
    assert [round(one.clients, 3) for one in found.load] == [3.75] * 2 + [2.25] * 10


def test_the_load_is_shared_by_the_nodes_that_there_are() -> None:
    """With zone c down 20 Nodes share 7 endpoints: a capacity of 1.5 * 20 * 2 / 7."""
    service = loaded((Z, "*"), "1.5")
    left = {name: each for name, each in thirty(*"abc").items() if name[0] != "c"}
    found = coverage(of_endpoints(service.ipv4[:7], service.policy), left)
    assert {(group.size, group.answers[0].key) for group in found.clients if group.topology_zone == "a"} == {
        (8, Z),
        (2, "*"),
    }


def test_nodes_of_zones_within_their_load_are_selected_for_once() -> None:
    steps = [
        list(coverage_steps(loaded((Z,), factor), NodeGroups(thirty(*"abc")), TopologySettings())) for factor in "19"
    ]
    assert len(steps[0]) - len(steps[1]) == 10 + 2, "a step for each Node of zone a, and for each of their two answers"


def test_a_bounded_answer_loads_the_endpoints_that_each_node_gets() -> None:
    nodes = thirty(*"ab")
    some = tuple(endpoint(f"10.0.0.{at}", f"a{at}") for at in range(10))
    found = coverage(of_endpoints(some, None, 3), nodes)
    chosen = {name: bounded(Pool((Segment(some),), nodes.get).everyone, 3, KEY, name).endpoints for name in nodes}
    expected = Counter(each.address for endpoints in chosen.values() for each in endpoints)
    assert {one.endpoint.address: round(one.clients * 3) for one in found.load} == {
        each.address: expected[each.address] for each in some
    }
    assert {(each.size, len(each.answers[0].group.endpoints), each.answers[0].matches) for each in found.clients} == {
        (1, 3, 10)
    }
    assert found.skew > 1


def test_a_bounded_answer_counts_as_even_for_many_endpoints_and_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topodns.inspect.coverage.MAX_HASHED", 199)
    some = tuple(endpoint(f"10.0.0.{at}", f"a{at}") for at in range(10))
    found = coverage(of_endpoints(some, None, 3), thirty(*"ab"))
    assert [(each.size, each.answers[0].matches) for each in found.clients] == [(10, 10), (10, 10)]
    assert {one.clients for one in found.load} == {2.0}


ALONE = {
    "the next key has others": (Policy((Z, K), KeySource.ANNOTATION, min_endpoints=3), ("n1", "n3"), False),
    "no key has others": (Policy((Z, K), KeySource.ANNOTATION, min_endpoints=2), ("n1", "n4"), True),
    "a key that the load passed over has others": (
        Policy((K, H), KeySource.ANNOTATION, max_load=MaxLoad(Fraction(1), KEY)),
        ("n1", "n2", "n4", "n4", "n4", "n4"),
        False,
    ),
}


@pytest.mark.parametrize(("policy", "names", "alone"), ALONE.values(), ids=ALONE)
def test_an_endpoint_is_alone_if_no_key_at_all_has_another(policy: Policy, names: tuple[str, ...], alone: bool) -> None:
    labels = {"n1": {Z: "a", K: "r"}, "n2": {Z: "a", K: "r"}, "n3": {Z: "b", K: "r"}, "n4": {Z: "c", K: "s"}}
    nodes = {name: node(name, {H: name, **some}) for name, some in labels.items()}
    found = coverage(
        of_endpoints(tuple(endpoint(f"10.0.0.{at}", name) for at, name in enumerate(names)), policy), nodes
    )
    singles = [answers_on(found, name)[0] for name in ("n1", "n2")]
    assert {each.alone for each in singles if each.matches == 1} == {alone}
