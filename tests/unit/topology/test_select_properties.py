"""Selections in any cluster agree with a filter written as kube-proxy's was: label maps and loops."""

from collections.abc import Mapping, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.model_builders import endpoint, endpoint_slice, node, service
from topodns.cluster.backends import Backends
from topodns.cluster.model import Endpoint, KeySource, Node, Policy
from topodns.topology.keys import policy_of
from topodns.topology.select import Location, Reason, select

H = "kubernetes.io/hostname"
Z = "topology.kubernetes.io/zone"
K = "example.com/rack"

SOME_KEYS = st.lists(st.sampled_from([H, Z, K, "x", "*"]), min_size=1, max_size=6)
SOME_NAMES = st.sampled_from(["n1", "n2", "n3", "n4"])
SOME_LABELS = st.dictionaries(st.sampled_from([H, Z, K]), st.sampled_from(["", "a", "b", "n1", "n2"]))
SOME_NODES = st.dictionaries(SOME_NAMES, SOME_LABELS, max_size=4)
SOME_ENDPOINTS = st.lists(
    st.builds(
        endpoint,
        address=st.integers(0, 20).map(lambda number: f"10.0.0.{number}"),
        node=SOME_NAMES | st.just(""),
        topology_zone=st.none() | st.sampled_from(["", "a", "b"]),
        topology=st.dictionaries(st.just(K), st.sampled_from(["", "a"])),
        ready=st.booleans(),
    ),
    max_size=8,
    unique_by=lambda each: each.address,
)


def labels_of_endpoint(one: Endpoint, nodes: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The topology map that kube-proxy would have found on the endpoint."""
    if one.node_name in nodes:
        return {H: one.node_name, **nodes[one.node_name]}
    labels = dict(one.topology)
    if one.topology_zone is not None:
        labels[Z] = one.topology_zone
    if one.node_name:
        labels[H] = one.node_name
    return labels


def filtered(
    endpoints: Sequence[Endpoint], keys: Sequence[str], client: str, nodes: Mapping[str, Mapping[str, str]]
) -> list[Endpoint]:
    """FilterTopologyEndpoint; an unknown client has no labels, a known one at least its hostname."""
    labels = {H: client, **nodes.get(client, {})} if client else {}
    ready = [one for one in endpoints if one.ready]
    if not labels:
        return ready if keys[-1] == "*" else []
    for key in keys:
        if key == "*":
            return ready
        topologies = [(one, labels_of_endpoint(one, nodes)) for one in ready]
        matches = [one for one, topology in topologies if key in labels and topology.get(key) == labels[key]]
        if matches:
            return matches
    return []


@settings(max_examples=200, deadline=None)
@given(nodes=SOME_NODES, endpoints=SOME_ENDPOINTS, asked=SOME_KEYS, client=SOME_NAMES | st.just(""))
def test_selections_agree_with_the_naive_filter(
    nodes: dict[str, dict[str, str]], endpoints: list[Endpoint], asked: list[str], client: str
) -> None:
    wish = policy_of(service("db", field=tuple(asked)), [KeySource.FIELD])
    assert isinstance(wish, Policy)
    objects: dict[str, Node] = {name: node(name, labels) for name, labels in nodes.items()}
    pool = Backends([endpoint_slice("db", *endpoints)], objects.get, terminating_fallback=False).pools[4]
    location = Location(client, objects.get(client)) if client else Location()
    selection = select(pool, wish, location)
    assert list(selection.group.endpoints) == filtered(endpoints, wish.keys, client, nodes)
    assert all(one in pool.everyone.endpoints for one in selection.group.endpoints)
    if pool.everyone.endpoints and not selection.group.endpoints:
        assert selection.reason in {Reason.NO_MATCH, Reason.UNKNOWN_CLIENT}
        assert "*" not in wish.keys
    assert select(pool, wish, location).group is selection.group, "a repeated selection builds nothing"
