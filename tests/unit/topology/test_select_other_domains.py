"""Anti-affinity: `!KEY` selects endpoints on Nodes with another value of KEY (docs/reference/topology.md)."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.model_builders import endpoint, endpoint_slice, node, service
from topodns.cluster import endpoints as endpoints_module
from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import EMPTY_GROUP, Pool
from topodns.cluster.model import Endpoint, InvalidPolicy, KeySource, Node, Policy
from topodns.topology.keys import policy_of
from topodns.topology.select import Location, Reason, Selection, UnknownClient, select, select_while_denied

H = "kubernetes.io/hostname"
Z = "topology.kubernetes.io/zone"
K = "example.com/rack"

Labels = Mapping[str, str]

NODES = {
    each.name: each
    for each in (
        node("a1", {H: "a1", Z: "a", K: "1"}),
        node("a2", {H: "a2", Z: "a"}),
        node("b1", {H: "b1", Z: "b", K: "1"}),
        node("c1", {H: "c1", Z: "c", K: "2"}),
        node("no-zone", {H: "no-zone"}),
        node("bare"),
        node("renamed", {H: "its-hostname", Z: "c"}),
    )
}
ON = {
    name: endpoint(f"10.0.0.{number}", node=name)
    for number, name in enumerate(("a1", "a2", "b1", "c1", "no-zone", "bare", "renamed"), 1)
}
OF_SLICE = endpoint("10.0.0.8", node="gone", topology_zone="b")
NOWHERE = endpoint("10.0.0.9")
ALL = (*ON.values(), OF_SLICE, NOWHERE)


def pool_of(*endpoints: Endpoint, nodes: Mapping[str, Node] = NODES) -> Pool:
    return Backends([endpoint_slice("db", *endpoints)], nodes.get, terminating_fallback=False).pools[4]


def selected(keys: str, client: str, *endpoints: Endpoint, denied: bool = False) -> tuple[list[int], Reason]:
    """The last octets of the addresses that a client on a Node gets, and the reason."""
    policy = policy_of(service("db", annotation=keys), [KeySource.ANNOTATION])
    assert isinstance(policy, Policy)
    location = Location(client, NODES.get(client), "nodes") if client else Location()
    pool = pool_of(*(endpoints or ALL))
    found = select_while_denied(pool, policy, location, True) if denied else select(pool, policy, location)
    return [address[-1] for address in found.group.addresses], found.reason


@pytest.mark.parametrize(
    ("keys", "client", "octets", "reason"),
    [
        (f"!{Z}", "a1", [3, 4, 7, 8], Reason.MATCHED),
        (f"!{Z}", "b1", [1, 2, 4, 7], Reason.MATCHED),
        (f"!{Z}", "no-zone", [], Reason.NO_MATCH),
        (f"!{Z},*", "no-zone", [1, 2, 3, 4, 5, 6, 7, 8, 9], Reason.ANY),
        (f"!{K}", "a1", [4], Reason.MATCHED),
        (f"!{K}", "a2", [], Reason.NO_MATCH),
        (f"!{H}", "a1", [2, 3, 4, 5, 6, 7, 8], Reason.MATCHED),
        (f"!{H}", "bare", [1, 2, 3, 4, 5, 7, 8], Reason.MATCHED),
        (f"!{H}", "renamed", [1, 2, 3, 4, 5, 6, 8], Reason.MATCHED),
        (f"!{H}", "unheard-of", [1, 2, 3, 4, 5, 6, 7, 8], Reason.MATCHED),
        (f"{Z},!{Z}", "a1", [1, 2], Reason.MATCHED),
        (f"!{Z}", "", [], Reason.UNKNOWN_CLIENT),
        (f"!{Z}", "bare", [], Reason.UNKNOWN_CLIENT),
        (f"!{Z},*", "", [1, 2, 3, 4, 5, 6, 7, 8, 9], Reason.UNKNOWN_CLIENT_ALL),
    ],
)
def test_a_client_gets_the_endpoints_of_other_domains(
    keys: str, client: str, octets: list[int], reason: Reason
) -> None:
    assert selected(keys, client) == (octets, reason)


def test_the_own_domain_comes_first_and_another_one_where_it_is_empty() -> None:
    assert selected(f"{Z},!{Z}", "a1", ON["b1"], ON["c1"]) == ([3, 4], Reason.MATCHED)


def test_where_all_endpoints_are_in_the_own_domain_none_is_looked_at() -> None:
    pool = pool_of(ON["a1"], ON["a2"])
    assert pool.outside(Z, pool.everyone) is EMPTY_GROUP


def test_without_another_domain_nothing_matches() -> None:
    assert selected(f"!{Z}", "a1", ON["a1"], ON["a2"], NOWHERE) == ([], Reason.NO_MATCH)
    assert selected(f"!{H}", "a1", ON["a1"]) == ([], Reason.NO_MATCH)


def test_while_nodes_are_denied_another_hostname_is_known_and_another_zone_is_not() -> None:
    assert selected(f"!{H}", "a1", ON["a1"], ON["a2"], denied=True) == ([2], Reason.MATCHED)
    assert selected(f"!{H},!{Z}", "a1", ON["a1"], denied=True) == ([1], Reason.NOT_PERMITTED)


def test_a_field_or_another_annotation_has_no_such_key() -> None:
    for made, source in (
        (service("db", field=(f"!{Z}",)), KeySource.FIELD),
        (service("db", superedge=f'["!{Z}"]'), KeySource.SUPEREDGE),
    ):
        found = policy_of(made, [source])
        assert isinstance(found, InvalidPolicy)
        assert found.problem == f"expected a label key or *, found '!{Z}'"


def test_groups_of_other_domains_are_kept_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints_module, "_MAX_OUTSIDE", 1)
    pool = pool_of(*ALL)
    first, second = pool.matching(Z, "a"), pool.matching(Z, "b")
    kept = pool.outside(Z, first)
    assert pool.outside(Z, first) is kept
    assert pool.outside(Z, second) is not pool.outside(Z, second)
    assert pool.outside(Z, second) == pool.outside(Z, second)


# The rule, written a second time as loops.


def value_at(nodes: Mapping[str, Node], one: Endpoint, label: str) -> str | None:
    if one.node_name in nodes:
        labels = nodes[one.node_name].labels
        return labels.get(label, one.node_name if label == H else None)
    if label == H:
        return one.node_name or None
    return one.topology_zone if label == Z else None


def expected(nodes: Mapping[str, Node], endpoints: Sequence[Endpoint], keys: Sequence[str], client: str) -> list[bytes]:
    labels = nodes[client].labels
    for key in keys:
        label = key.removeprefix("!")
        own = labels.get(label, client if label == H else None)
        if key == "*":
            return [one.address for one in endpoints]
        found = []
        for one in endpoints:
            value = value_at(nodes, one, label)
            same = value == own or (label == H and one.node_name == client)
            if own is not None and value is not None and same is not key.startswith("!"):
                found.append(one.address)
        if found:
            return found
    return []


VALUES = st.sampled_from(["a", "b", "c", ""])
LABELS = st.dictionaries(st.sampled_from([H, Z, K]), VALUES, min_size=1)
NAMES = ["n1", "n2", "n3", "n4"]


@st.composite
def clusters(draw: st.DrawFn) -> tuple[dict[str, Node], list[Endpoint]]:
    nodes = {name: node(name, draw(LABELS)) for name in NAMES}
    places = draw(st.lists(st.sampled_from([*NAMES, "gone", ""]), max_size=8))
    zones = st.one_of(st.none(), VALUES)
    return nodes, [
        endpoint(f"10.0.0.{number}", node=name, topology_zone=draw(zones)) for number, name in enumerate(places, 1)
    ]


@settings(max_examples=120)
@given(
    cluster=clusters(),
    keys=st.lists(st.sampled_from([H, Z, K, f"!{H}", f"!{Z}", f"!{K}", "*"]), min_size=1, max_size=4, unique=True),
    client=st.sampled_from(NAMES),
)
def test_a_selection_is_what_the_rule_says(
    cluster: tuple[dict[str, Node], list[Endpoint]], keys: list[str], client: str
) -> None:
    nodes, endpoints = cluster
    policy = policy_of(service("db", annotation=",".join(keys)), [KeySource.ANNOTATION])
    assert isinstance(policy, Policy)
    pool = pool_of(*endpoints, nodes=nodes)
    found: Selection = select(pool, policy, Location(client, nodes[client], "nodes"), UnknownClient.STRICT)
    assert list(found.group.addresses) == expected(nodes, endpoints, policy.keys, client)
