"""Selections in any cluster are those of kube-proxy: its rules are written here a second time, as loops over endpoints.

`filter_topology_endpoint` is FilterTopologyEndpoint of Kubernetes 1.17 to 1.20, the others are CategorizeEndpoints,
topologyModeFromHints and the controller's ReconcileHints of 1.35. Intended differences are in
docs/reference/differences-from-kube-proxy.md; here they are in the functions that make kube-proxy's input.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.model_builders import endpoint, endpoint_slice, node, service
from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import Pool
from topodns.cluster.model import Endpoint, KeySource, Node, Policy, Service
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.keys import policy_of
from topodns.topology.select import Location, Reason, select

H = "kubernetes.io/hostname"
Z = "topology.kubernetes.io/zone"
K = "example.com/rack"

Labels = Mapping[str, str]


# kube-proxy


def filter_topology_endpoint(
    node_labels: Labels, topology_keys: Sequence[str], endpoints: Sequence[tuple[Endpoint, Labels]]
) -> list[Endpoint]:
    """`endpoints`: ready ones, each with its topology map."""
    if not topology_keys:
        return [one for one, _ in endpoints]
    if not node_labels:
        if topology_keys[-1] == "*":
            return [one for one, _ in endpoints]
        return []
    for key in topology_keys:
        if key == "*":
            return [one for one, _ in endpoints]
        if key not in node_labels:
            continue
        matching = []
        for one, topology in endpoints:
            if key in topology and topology[key] == node_labels[key]:
                matching.append(one)
        if matching:
            return matching
    return []


def categorize_endpoints(
    endpoints: Sequence[Endpoint], node_name: str, node_labels: Labels, internal_traffic_policy: str
) -> list[Endpoint]:
    """The endpoints for traffic inside of the cluster; hints do not count with `Local`."""
    if internal_traffic_policy == "Local":
        local = [one for one in endpoints if one.node_name == node_name and node_name]
        ready = [one for one in local if one.ready]
        if ready:
            return ready
        return [one for one in local if one.serving and one.terminating]
    zone = node_labels.get(Z, "")
    mode = topology_mode_from_hints(endpoints, node_name, zone)
    cluster = []
    for one in endpoints:
        if not one.ready:
            continue
        if mode == "PreferSameNode" and node_name not in one.node_hints:
            continue
        if mode == "PreferSameZone" and zone not in one.zone_hints:
            continue
        cluster.append(one)
    if not cluster:
        for one in endpoints:
            if one.serving and one.terminating:
                cluster.append(one)
    return cluster


def topology_mode_from_hints(endpoints: Sequence[Endpoint], node_name: str, zone: str) -> str:
    has_ready_endpoints = False
    has_endpoint_for_node, all_endpoints_have_node_hints = False, True
    has_endpoint_for_zone, all_endpoints_have_zone_hints = False, True
    for one in endpoints:
        if not one.ready:
            continue
        has_ready_endpoints = True
        if len(one.node_hints) == 0:
            all_endpoints_have_node_hints = False
        elif node_name in one.node_hints:
            has_endpoint_for_node = True
        if len(one.zone_hints) == 0:
            all_endpoints_have_zone_hints = False
        elif zone in one.zone_hints:
            has_endpoint_for_zone = True
    if not has_ready_endpoints:
        return ""
    if all_endpoints_have_node_hints and has_endpoint_for_node:
        return "PreferSameNode"
    if all_endpoints_have_zone_hints and has_endpoint_for_zone:
        return "PreferSameZone"
    return ""


def reconcile_hints(traffic_distribution: str, one: Endpoint) -> Endpoint:
    """The endpoint with the hints that the EndpointSlice controller writes; it writes none to one that is not ready."""
    if not one.ready:
        return one
    for_zones = (one.topology_zone,) if one.topology_zone is not None else ()
    for_nodes = (one.node_name,) if one.node_name and traffic_distribution == "PreferSameNode" else ()
    return replace(one, zone_hints=for_zones, node_hints=for_nodes)


# topodns


@dataclass(frozen=True)
class Cluster:
    """Nodes by name with their labels, and the endpoints of one Service in one family."""

    nodes: Mapping[str, Labels]
    endpoints: Sequence[Endpoint]

    def pool(self, terminating_fallback: bool = False) -> Pool:
        return Backends([endpoint_slice("db", *self.endpoints)], self._node, terminating_fallback).pools[4]

    def location(self, client: str) -> Location:
        return Location(client, self._node(client)) if client else Location()

    def _node(self, name: str) -> Node | None:
        return node(name, self.nodes[name]) if name in self.nodes else None

    def selected(
        self, client: str, one: Service, sources: Sequence[KeySource], terminating_fallback: bool = False
    ) -> list[Endpoint]:
        """The endpoints for a client on the Node `client`; "" for one without a location."""
        policy = policy_of(one, sources)
        selection = select(self.pool(terminating_fallback), policy, self.location(client))
        return list(selection.group.endpoints)

    def seen(self, terminating_fallback: bool) -> list[Endpoint]:
        """The endpoints that a rule of kube-proxy gets: without `terminating_fallback` the ready ones only."""
        return [one for one in self.endpoints if one.ready or terminating_fallback]

    def eligible(self, terminating_fallback: bool) -> list[Endpoint]:
        """The ready endpoints, else, with `terminating_fallback`, those that still serve."""
        ready = [one for one in self.endpoints if one.ready]
        if ready or not terminating_fallback:
            return ready
        return [one for one in self.endpoints if one.serving and one.terminating]

    def topology_of(self, one: Endpoint) -> Labels:
        """The topology map that kube-proxy would find: of the Node as it is now, else what the slice has."""
        if one.node_name in self.nodes:
            return {H: one.node_name, **self.nodes[one.node_name]}
        topology = dict(one.topology)
        if one.topology_zone is not None:
            topology[Z] = one.topology_zone
        if one.node_name:
            topology[H] = one.node_name
        return topology

    def labels_of(self, client: str) -> Labels:
        """The labels of the client's Node; a Node without a hostname label has its name as the value."""
        return {H: client, **self.nodes.get(client, {})} if client else {}

    def filtered(self, client: str, keys: Sequence[str], terminating_fallback: bool = False) -> list[Endpoint]:
        endpoints = [(one, self.topology_of(one)) for one in self.eligible(terminating_fallback)]
        return filter_topology_endpoint(self.labels_of(client), keys, endpoints)


# Random clusters

NAMES = ["n1", "n2", "n3", "n4"]
SOME_CLIENTS = st.sampled_from([*NAMES, ""])


class Conditions(NamedTuple):
    ready: bool
    serving: bool
    terminating: bool


READY, STARTING = Conditions(True, True, False), Conditions(False, False, False)
SERVING, GONE = Conditions(False, True, True), Conditions(False, False, True)
SOME_CONDITIONS = st.sampled_from([READY, READY, READY, SERVING, SERVING, GONE, STARTING])
NO_READY = st.sampled_from([SERVING, SERVING, GONE, STARTING])


@st.composite
def clusters(
    draw: st.DrawFn, any_labels: bool = False, conditions: st.SearchStrategy[Conditions] = SOME_CONDITIONS
) -> Cluster:
    """Some Nodes lack labels, some have no object. `any_labels`: hostnames that several Nodes have, empty values."""
    zones = st.sampled_from(["a", "b", *([""] if any_labels else [])])
    nodes: dict[str, Labels] = {}
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
        hostnames = ["", "a", "n1", "n2"] if any_labels else [name, f"host-of-{name}"]
        values = {H: st.sampled_from(hostnames), Z: zones, K: st.sampled_from(["1", "2"])}
        nodes[name] = draw(st.fixed_dictionaries({}, optional=values))
    endpoints = []
    for number in range(draw(st.integers(0, 8))):
        place = draw(st.sampled_from([*NAMES, *NAMES, ""]))
        zone = draw(st.none() | zones)
        if place in nodes and not any_labels:
            zone = nodes[place].get(Z)  # as the controller copies it
        made = endpoint(
            f"10.0.0.{number}",
            place,
            topology_zone=zone,
            topology=draw(st.sampled_from([{}, {K: "1"}])) if any_labels else {},
            zone_hints=draw(st.sampled_from([["a"], ["b"], ["a", "b"], ["c"], []])),
            node_hints=draw(st.sampled_from([["n1"], ["n2"], ["n1", "n3"], []])),
            **draw(conditions)._asdict(),
        )
        endpoints.append(made)
    if draw(st.booleans()):  # often every endpoint has hints, as they count only then
        endpoints = [replace(one, zone_hints=one.zone_hints or ("a",)) for one in endpoints]
    if draw(st.booleans()):
        endpoints = [replace(one, node_hints=one.node_hints or ("n1",)) for one in endpoints]
    return Cluster(nodes, endpoints)


SOME_KEYS = st.lists(st.sampled_from([H, Z, K, "x", "*"]), min_size=1, max_size=6)
rule = settings(max_examples=100, deadline=None)


@rule
@given(clusters(any_labels=True), SOME_CLIENTS, SOME_KEYS, st.booleans())
def test_topology_keys_select_what_filter_topology_endpoint_selects(
    cluster: Cluster, client: str, keys: list[str], fallback: bool
) -> None:
    policy = policy_of(service("db", field=tuple(keys)), [KeySource.FIELD])
    assert isinstance(policy, Policy)
    pool, location = cluster.pool(fallback), cluster.location(client)
    selection = select(pool, policy, location)
    assert list(selection.group.endpoints) == cluster.filtered(client, policy.keys, fallback)
    if pool.everyone.endpoints and not selection.group.endpoints:
        assert selection.reason in {Reason.NO_MATCH, Reason.UNKNOWN_CLIENT}
        assert "*" not in policy.keys
    assert select(pool, policy, location).group is selection.group, "a repeated selection builds nothing"


@rule
@given(clusters(), SOME_CLIENTS, st.booleans())
def test_hints_select_what_categorize_endpoints_selects(cluster: Cluster, client: str, fallback: bool) -> None:
    expected = categorize_endpoints(cluster.seen(fallback), client, cluster.nodes.get(client, {}), "Cluster")
    assert cluster.selected(client, service("db"), [KeySource.HINTS], fallback) == expected


@rule
@given(clusters(conditions=NO_READY), SOME_CLIENTS)
def test_endpoints_that_serve_while_they_terminate_are_used_regardless_of_their_hints(
    cluster: Cluster, client: str
) -> None:
    expected = categorize_endpoints(cluster.endpoints, client, cluster.nodes.get(client, {}), "Cluster")
    assert cluster.selected(client, service("db"), [KeySource.HINTS], True) == expected
    assert expected == [one for one in cluster.endpoints if one.serving]


@rule
@given(clusters(), SOME_CLIENTS, st.booleans())
def test_internal_traffic_policy_selects_what_categorize_endpoints_selects(
    cluster: Cluster, client: str, fallback: bool
) -> None:
    local = service("db", internal_traffic_policy="Local")
    selected = cluster.selected(client, local, [KeySource.INTERNAL_TRAFFIC_POLICY], fallback)
    expected = categorize_endpoints(cluster.seen(fallback), client, cluster.nodes.get(client, {}), "Local")
    if any(one.ready for one in cluster.endpoints):  # elsewhere: then terminating ones here do not count, by intention
        expected = [one for one in expected if one.ready]
    assert selected == expected
    everywhere = service("db", internal_traffic_policy="Cluster")
    assert cluster.selected(client, everywhere, [KeySource.INTERNAL_TRAFFIC_POLICY]) == cluster.seen(False)


@rule
@given(clusters(), SOME_CLIENTS, st.sampled_from(["PreferClose", "PreferSameZone", "PreferSameNode"]))
def test_traffic_distribution_selects_what_its_hints_make_kube_proxy_select(
    cluster: Cluster, client: str, traffic_distribution: str
) -> None:
    spread = service("db", traffic_distribution=traffic_distribution)
    selected = cluster.selected(client, spread, [KeySource.TRAFFIC_DISTRIBUTION])
    hinted = [
        reconcile_hints(traffic_distribution, replace(one, zone_hints=(), node_hints=())) for one in cluster.seen(False)
    ]
    theirs = categorize_endpoints(hinted, client, cluster.nodes.get(client, {}), "Cluster")
    expected = [one for one in cluster.seen(False) if one.address in {each.address for each in theirs}]
    if all(one.zone_hints for one in hinted):
        by_node = traffic_distribution == "PreferSameNode"
        assume(not by_node or all(one.node_hints for one in hinted))
        assert selected == expected
    else:  # an endpoint without a hint makes kube-proxy use all; keys need no hints
        assert [one for one in expected if one in selected] == selected
        assert bool(selected) == bool(expected)


ANNOTATIONS = [None, "none", "", H, f"{Z},*", f"{K},{Z}"]
FIELDS: list[tuple[str, ...] | None] = [None, (Z,), (H, "*")]
SOME_SOURCES = st.permutations(
    [
        KeySource.ANNOTATION,
        KeySource.FIELD,
        KeySource.INTERNAL_TRAFFIC_POLICY,
        KeySource.TRAFFIC_DISTRIBUTION,
        KeySource.HINTS,
    ]
).flatmap(lambda order: st.integers(1, 5).map(lambda number: order[:number]))
KEYS_OF = {
    "PreferClose": (Z, "*"),
    "PreferSameZone": (Z, "*"),
    "PreferSameNode": (H, Z, "*"),
}


@rule
@given(
    clusters(),
    SOME_CLIENTS,
    st.sampled_from(ANNOTATIONS),
    st.sampled_from(FIELDS),
    st.sampled_from([None, "Cluster", "Local"]),
    st.sampled_from([None, "Other", *KEYS_OF]),
    SOME_SOURCES,
)
def test_the_first_source_with_a_value_decides_alone(
    cluster: Cluster,
    client: str,
    annotation: str | None,
    field: tuple[str, ...] | None,
    internal: str | None,
    traffic: str | None,
    sources: list[KeySource],
) -> None:
    one = service(
        "db", annotation=annotation, field=field, internal_traffic_policy=internal, traffic_distribution=traffic
    )
    expected = cluster.seen(False)
    for source in sources:
        if source is KeySource.ANNOTATION and annotation:
            keys = [] if annotation == "none" else annotation.split(",")
            expected = cluster.filtered(client, keys)
            break
        if source is KeySource.FIELD and field is not None:
            expected = cluster.filtered(client, field)
            break
        if source is KeySource.INTERNAL_TRAFFIC_POLICY and internal == "Local":
            expected = categorize_endpoints(cluster.seen(False), client, {}, "Local")
            break
        if source is KeySource.TRAFFIC_DISTRIBUTION and traffic in KEYS_OF:
            expected = cluster.filtered(client, KEYS_OF[traffic])
            break
        if source is KeySource.HINTS:
            expected = categorize_endpoints(cluster.seen(False), client, cluster.nodes.get(client, {}), "Cluster")
            break
    assert cluster.selected(client, one, sources) == expected


@rule
@given(
    clusters(),
    SOME_CLIENTS,
    st.sampled_from(ANNOTATIONS),
    st.sampled_from([None, "Local"]),
    st.sampled_from(list(KEYS_OF)),
)
def test_by_default_only_keys_that_were_written_for_them_choose_the_endpoints(
    cluster: Cluster, client: str, annotation: str | None, internal: str | None, traffic: str
) -> None:
    one = service("db", annotation=annotation, internal_traffic_policy=internal, traffic_distribution=traffic)
    keys = annotation.split(",") if annotation not in (None, "", "none") else []
    assert cluster.selected(client, one, TopologySettings().keys) == cluster.filtered(client, keys)
