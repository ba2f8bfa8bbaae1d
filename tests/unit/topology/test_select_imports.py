"""Topology keys of ServiceImports (semantics 10.6): endpoints of several clusters, and one of the client."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.model_builders import cluster_property, endpoint, endpoint_slice, node
from topodns.cluster.backends import Backends
from topodns.cluster.cluster_set import ClusterSet
from topodns.cluster.endpoints import Pool
from topodns.cluster.model import EndpointSlice, KeySource, Node, Policy
from topodns.topology.select import Location, Reason, UnknownClient, is_same_for_all, select, select_while_denied

C = "cluster"
H = "kubernetes.io/hostname"
Z = "topology.kubernetes.io/zone"
R = "topology.kubernetes.io/region"
K = "example.com/rack"
MATCHED, NO_MATCH, ANY = Reason.MATCHED, Reason.NO_MATCH, Reason.ANY


class Of(NamedTuple):
    """An endpoint of a cluster, on a Node of that cluster, with the zone in its slice."""

    cluster: str
    node: str
    zone: str | None


def pool_of(endpoints: Sequence[Of], own: str, nodes: Mapping[str, Node]) -> Pool:
    """The endpoints, with the addresses 10.0.0.1 and on, in a slice each."""
    cluster_set = ClusterSet()
    cluster_set.take_property(cluster_property(own) if own else None)
    for each in nodes.values():
        cluster_set.take_node(None, each, lambda _key, _name: False)
    slices: list[EndpointSlice] = [
        endpoint_slice(
            "db",
            endpoint(f"10.0.0.{at}", node=each.node, topology_zone=each.zone),
            name=f"db-{at}",
            imported=True,
            cluster_id=each.cluster,
        )
        for at, each in enumerate(endpoints, 1)
    ]
    return Backends(slices, nodes.get, terminating_fallback=False, cluster_set=cluster_set).pools[4]


NODES = {
    each.name: each
    for each in (
        node("n1", {H: "n1", Z: "a", R: "eu", K: "7", C: "red"}),
        node("n2", {H: "n2", Z: "b", R: "eu", K: "7", C: "blue"}),
        node("n3", {H: "n3", Z: "d", R: "us"}),
        node("n4", {H: "n4", Z: "torn", R: "us"}),
        node("n5", {H: "n5", Z: "torn", R: "eu"}),
        node("bare"),
    )
}
SEVEN = (
    Of("east", "n1", "a"),
    Of("east", "n2", "b"),
    Of("east", "n3", "d"),
    Of("west", "n1", "a"),
    Of("west", "n2", "c"),
    Of("west", "n9", "b"),
    Of("", "n1", "a"),
)


def at(node_name: str) -> Location:
    return Location(node_name, NODES.get(node_name), "nodes") if node_name else Location()


def policy(keys: Sequence[str], least: int = 1) -> Policy:
    return Policy(tuple(keys), KeySource.ANNOTATION, min_endpoints=least)


# Keys, own cluster, client's node, endpoints -> those that the client gets, by their number, and the reason

VECTORS: Mapping[str, tuple[list[str], str, str, Sequence[Of], list[int], Reason]] = {
    "the own cluster's endpoints": ([C], "east", "n1", SEVEN, [1, 2, 3], MATCHED),
    "of the other cluster for its clients": ([C], "west", "n1", SEVEN, [4, 5, 6], MATCHED),
    "for clients without a node, too": ([C], "east", "", SEVEN, [1, 2, 3], MATCHED),
    "for clients on an unknown node": ([C], "east", "n9", SEVEN, [1, 2, 3], MATCHED),
    "a label of that name does not count": ([C], "east", "n2", SEVEN[3:], [], NO_MATCH),
    "another cluster, where the own one has none": ([C, "*"], "east", "n1", SEVEN[3:], [1, 2, 3, 4], ANY),
    "for clients without a node just so": ([C, "*"], "east", "", SEVEN[3:], [1, 2, 3, 4], ANY),
    "without it nothing matches them": ([C], "east", "", SEVEN[3:], [], NO_MATCH),
    "own id unknown: no match": ([C], "", "n1", SEVEN, [], NO_MATCH),
    "own id unknown: for clients without a node neither": ([C], "", "", SEVEN, [], NO_MATCH),
    "own id unknown: no label matches": ([H, K], "", "n1", SEVEN, [], NO_MATCH),
    "own id unknown: the zone of the slice is known": ([Z], "", "n1", SEVEN, [1, 4, 7], MATCHED),
    "the zone is that of the slice, in any cluster": ([Z], "east", "n1", SEVEN, [1, 4, 7], MATCHED),
    "also where the own node has another": ([Z], "east", "n2", (Of("east", "n2", "a"),), [], NO_MATCH),
    "without one in the slice there is none": ([Z], "east", "n1", (Of("east", "n1", None),), [], NO_MATCH),
    "the region that own nodes show for the zone": ([R], "east", "n1", SEVEN, [1, 2, 4, 6, 7], MATCHED),
    "a zone without own nodes is in no region": ([R], "west", "n3", (Of("west", "n3", "c"),), [], NO_MATCH),
    "nor is one whose nodes differ": ([R], "east", "n1", (Of("east", "n5", "torn"),), [], NO_MATCH),
    "the own node": ([H], "east", "n1", SEVEN, [1], MATCHED),
    "never a foreign node of that name": ([H], "east", "n1", SEVEN[3:], [], NO_MATCH),
    "any other label by the own nodes": ([K], "east", "n1", SEVEN, [1, 2], MATCHED),
    "and by no foreign node": ([K], "east", "n1", SEVEN[3:], [], NO_MATCH),
    "own node, own cluster, anything": ([H, C, "*"], "west", "n3", SEVEN, [4, 5, 6], MATCHED),
    "no node: the keys that need one are passed over": ([H, Z, C, "*"], "east", "", SEVEN, [1, 2, 3], MATCHED),
    "no node, and no key without one": ([Z], "east", "", SEVEN, [], Reason.UNKNOWN_CLIENT),
    "no node, and * last": ([Z, "*"], "east", "", SEVEN, [1, 2, 3, 4, 5, 6, 7], Reason.UNKNOWN_CLIENT_ALL),
    "no node, and the cluster has none": ([Z, C], "east", "", SEVEN[3:], [], Reason.UNKNOWN_CLIENT),
    "another zone": ([f"!{Z}"], "east", "n1", SEVEN, [2, 3, 5, 6], MATCHED),
    "another cluster": ([f"!{C}"], "east", "", SEVEN, [4, 5, 6], MATCHED),
    "another own node": ([f"!{H}"], "east", "n1", SEVEN, [2, 3], MATCHED),
    "no node is no other node": ([f"!{H}", C], "west", "", SEVEN, [4, 5, 6], MATCHED),
}


@pytest.mark.parametrize(("keys", "own", "client", "endpoints", "got", "reason"), VECTORS.values(), ids=VECTORS)
def test_a_client_gets_the_endpoints_of_its_domain(
    keys: list[str], own: str, client: str, endpoints: Sequence[Of], got: list[int], reason: Reason
) -> None:
    selection = select(pool_of(endpoints, own, NODES), policy(keys), at(client))
    assert ([address[-1] for address in selection.group.addresses], selection.reason) == (got, reason)


def test_a_guard_counts_for_the_cluster_as_for_other_keys() -> None:
    pool = pool_of(SEVEN[2:4], "east", NODES)
    assert select(pool, policy([C, "*"], 2), at("")).reason is Reason.ANY
    assert select(pool, policy([C], 2), at("")).reason is Reason.LAST_RESORT


def test_the_choice_is_the_same_for_all_clients_where_no_key_needs_a_node() -> None:
    assert is_same_for_all(policy([C, f"!{C}", "*"]))
    assert not is_same_for_all(policy([C, Z]))


def test_unknown_clients_get_all_with_that_option_and_no_match_of_the_cluster() -> None:
    pool = pool_of(SEVEN[3:], "east", NODES)
    found = select(pool, policy([Z, C]), at(""), UnknownClient.ALL)
    assert (len(found.group.endpoints), found.reason) == (4, Reason.UNKNOWN_CLIENT_ALL)


@pytest.mark.parametrize("client", ["", "n1"])
def test_while_nodes_are_denied_the_cluster_decides_and_no_other_label(client: str) -> None:
    pool, location = pool_of(SEVEN, "east", {}), Location(client)
    assert select_while_denied(pool, policy([C, Z]), location, True).group.addresses == pool.everyone.addresses[:3]
    assert select_while_denied(pool, policy([Z, C]), location, True).reason is Reason.NOT_PERMITTED


# Against a literal transcription


class _World(NamedTuple):
    own: str
    nodes: Mapping[str, Node]
    client: str
    endpoints: Sequence[Of]
    keys: Sequence[str]


def _matches(world: _World, each: Of, key: str) -> bool:
    """The sentences of semantics 10.6, one by one."""
    own, nodes, client = world.own, world.nodes, world.client
    labels = nodes[client].labels if client in nodes else {}
    if key == C:
        return own != "" and each.cluster == own
    if key == Z:
        return Z in labels and each.zone == labels[Z]
    if key == R:
        shown = {one.labels[R] for one in nodes.values() if R in one.labels and one.labels.get(Z) == each.zone}
        return each.zone is not None and R in labels and shown == {labels[R]}
    if own == "" or each.cluster != own:
        return False
    if key == H:
        hostnames = [nodes[name].labels.get(H, name) if name in nodes else name for name in (each.node, client)]
        return "" not in (each.node, client) and (each.node == client or hostnames[0] == hostnames[1])
    return key in labels and each.node in nodes and nodes[each.node].labels.get(key) == labels[key]


def _selected(world: _World) -> list[int]:
    for key in world.keys:
        matching = [at for at, each in enumerate(world.endpoints, 1) if key == "*" or _matches(world, each, key)]
        if matching:
            return matching
    return []


NAMES = ("n1", "n2", "n3")
LABELS = st.fixed_dictionaries(
    {},
    optional={
        H: st.sampled_from(("n1", "n2", "h")),
        Z: st.sampled_from("ab"),
        R: st.sampled_from(("eu", "us")),
        K: st.sampled_from("78"),
        C: st.sampled_from(("east", "west")),
    },
)
WORLDS = st.builds(
    _World,
    st.sampled_from(("east", "west", "")),
    st.dictionaries(st.sampled_from(NAMES), LABELS).map(
        lambda found: {name: node(name, labels) for name, labels in found.items()}
    ),
    st.sampled_from((*NAMES, "")),
    st.lists(
        st.builds(
            Of, st.sampled_from(("east", "west", "")), st.sampled_from((*NAMES, "")), st.sampled_from(("a", "b", None))
        ),
        max_size=6,
    ),
    st.lists(st.sampled_from((C, H, Z, R, K)), min_size=1, unique=True).flatmap(
        lambda keys: st.sampled_from((keys, [*keys, "*"]))
    ),
)


@given(WORLDS)
def test_a_selection_is_that_of_the_rule_word_by_word(world: _World) -> None:
    pool = pool_of(world.endpoints, world.own, world.nodes)
    location = Location(world.client, world.nodes.get(world.client)) if world.client else Location()
    found = select(pool, policy(world.keys), location)
    assert [address[-1] for address in found.group.addresses] == _selected(world)
