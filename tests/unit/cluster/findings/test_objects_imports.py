"""Findings about the topology keys of ServiceImports."""

from collections.abc import Iterable

import pytest

from tests.support.model_builders import cluster_property, endpoint, endpoint_slice, listed, node, service
from topodns.cluster.findings.finding import Finding
from topodns.cluster.findings.objects import annotation_findings
from topodns.cluster.model import (
    CLUSTER_KEY,
    HOSTNAME_LABEL,
    REGION_LABEL,
    ZONE_LABEL,
    ClusterObject,
    EndpointSlice,
    KeySource,
    Kind,
    Node,
    ObjectKey,
)
from topodns.cluster.state import ClusterState
from topodns.topology.keys import key_reader

KINDS: tuple[Kind, ...] = ("Node", "ServiceImport", "ClusterProperty", "EndpointSlice")
RACK = "example.com/rack"
NODES = [
    node("n1", {ZONE_LABEL: "a", REGION_LABEL: "eu", HOSTNAME_LABEL: "n1", RACK: "1"}),
    node("n2", {ZONE_LABEL: "b", REGION_LABEL: "eu", HOSTNAME_LABEL: "n2", RACK: "2"}),
]
EAST = cluster_property("east")


def state_of(*objects: ClusterObject, kinds: Iterable[Kind] = KINDS, cluster_id: str = "") -> ClusterState:
    state = ClusterState(frozenset(KINDS), key_reader((KeySource.ANNOTATION,)), cluster_id=cluster_id)
    return listed(state, kinds, objects)


def found(state: ClusterState) -> list[Finding]:
    return [each for each in annotation_findings(state) if each is not None]


def lines(keys: str, *others: ClusterObject, nodes: Iterable[Node] = NODES) -> list[str]:
    """The findings about a ServiceImport with these keys in the cluster `east`, without its name."""
    state = state_of(EAST, *nodes, service("db", "shop", imported=True, annotation=keys), *others)
    about = "ServiceImport shop/db: "
    assert all(str(each).startswith(about) for each in found(state))
    return [str(each).removeprefix(about) for each in found(state)]


def never(key: str, before: str) -> list[str]:
    if key == HOSTNAME_LABEL and before in (ZONE_LABEL, REGION_LABEL):
        where = f"never decides for clients on Nodes with the label {before}"
        return [
            f"the key {key} {where}, since {before} before it always matches there; the nearest first: {key},{before}"
        ]
    order = "in this order" if "!" in key else "the nearest first"
    return [f"the key {key} never decides, since {before} before it always matches; {order}: {key},{before}"]


def slice_of(cluster_id: str, topology_zone: str | None) -> EndpointSlice:
    one = endpoint("10.1.0.1", "n1", topology_zone=topology_zone)
    return endpoint_slice("db", one, namespace="shop", imported=True, cluster_id=cluster_id)


@pytest.mark.parametrize(
    ("keys", "label", "meant"),
    [
        ("topology.kubernetes.io/zoen", "topology.kubernetes.io/zoen", ZONE_LABEL),
        ("clusters,*", "clusters", CLUSTER_KEY),
        ("!clustr", "clustr", CLUSTER_KEY),
        ("rack", "rack", RACK),
        ("None", "None", "'none'"),
    ],
)
def test_a_key_that_no_node_has_as_a_label_is_named_with_what_may_be_meant(keys: str, label: str, meant: str) -> None:
    assert lines(keys) == [f"no Node has the label {label}, which therefore never matches; did you mean {meant}?"]


def test_each_of_two_misspelt_keys_is_named() -> None:
    assert len(lines("topology.kubernetes.io/zoen,clusters")) == 2


@pytest.mark.parametrize(
    "keys", [f"{ZONE_LABEL},{CLUSTER_KEY},*", f"{HOSTNAME_LABEL},{RACK},{ZONE_LABEL},{REGION_LABEL}", f"!{CLUSTER_KEY}"]
)
def test_of_keys_in_a_good_order_nothing_is_said(keys: str) -> None:
    assert lines(keys, slice_of("east", "a")) == []


@pytest.mark.parametrize(
    ("before", "key"),
    [
        (CLUSTER_KEY, HOSTNAME_LABEL),
        (CLUSTER_KEY, RACK),
        (CLUSTER_KEY, f"!{RACK}"),
        (REGION_LABEL, ZONE_LABEL),
        (f"!{ZONE_LABEL}", f"!{REGION_LABEL}"),
        (RACK, HOSTNAME_LABEL),
        (ZONE_LABEL, HOSTNAME_LABEL),
        (REGION_LABEL, HOSTNAME_LABEL),
    ],
)
def test_a_key_behind_one_of_a_wider_domain_never_decides(before: str, key: str) -> None:
    assert lines(f"{before},{key}", slice_of("east", "a")) == never(key, before)


@pytest.mark.parametrize(
    ("before", "key"),
    [
        (CLUSTER_KEY, ZONE_LABEL),  # in the zone there are endpoints of other clusters, too
        (CLUSTER_KEY, f"!{CLUSTER_KEY}"),
        (f"!{HOSTNAME_LABEL}", f"!{ZONE_LABEL}"),  # the first compares endpoints of this cluster alone
        (f"!{CLUSTER_KEY}", HOSTNAME_LABEL),
        ("failure-domain.beta.kubernetes.io/region", ZONE_LABEL),
    ],
)
def test_a_key_behind_one_that_may_match_nothing_decides(before: str, key: str) -> None:
    nodes = [node(one.name, {**one.labels, "failure-domain.beta.kubernetes.io/region": "eu"}) for one in NODES]
    assert lines(f"{before},{key}", slice_of("east", "a"), nodes=nodes) == []


@pytest.mark.parametrize("topology_zone", [None, "b"])
def test_behind_the_zone_the_node_decides_where_a_slice_has_another_zone_than_it(topology_zone: str | None) -> None:
    keys = f"{ZONE_LABEL},{HOSTNAME_LABEL}"
    assert lines(keys, slice_of("east", topology_zone)) == []
    assert lines(keys, slice_of("west", topology_zone)) == never(HOSTNAME_LABEL, ZONE_LABEL)


def test_a_node_without_a_zone_does_not_hide_that_the_hostname_behind_it_never_decides() -> None:
    """It hides the same of the zone behind the region: endpoints in a zone may be on Nodes without a region."""
    bare = node("n3", {HOSTNAME_LABEL: "n3", RACK: "r3"})
    assert lines(f"{ZONE_LABEL},{HOSTNAME_LABEL}", nodes=[*NODES, bare]) == never(HOSTNAME_LABEL, ZONE_LABEL)
    assert lines(f"{REGION_LABEL},{ZONE_LABEL}", nodes=[*NODES, bare]) == []


def test_behind_the_region_the_zone_decides_where_nodes_of_a_zone_have_two_regions() -> None:
    torn = node("n3", {**NODES[0].labels, REGION_LABEL: "us"})
    assert lines(f"{REGION_LABEL},{ZONE_LABEL}", nodes=[*NODES, torn]) == []


def test_without_nodes_nothing_is_said_of_labels() -> None:
    assert lines("zone", nodes=()) == []


DB, WEB = service("db", imported=True, annotation="cluster,*"), service("web", imported=True, annotation=RACK)
UNKNOWN = (
    "the id of this cluster is unknown, so the keys 'cluster' and labels of Nodes match nothing for ServiceImport "
    "default/db{}: expected 'cluster_id' in the Corefile, or the ClusterProperty cluster.clusterset.k8s.io"
)


def test_imports_whose_keys_need_the_unknown_id_of_this_cluster_have_one_finding() -> None:
    others = (
        service("far", imported=True, annotation=f"{ZONE_LABEL},*"),
        service("bad", imported=True, annotation="?"),
    )
    one, bad = sorted(found(state_of(*NODES, DB, WEB, *others)), key=lambda each: each.kind)
    assert (str(one), one.kind, one.may_pass) == (UNKNOWN.format(" and 1 more"), "cluster_id", True)
    assert bad.imported == ObjectKey("default", "bad")
    assert [str(each) for each in found(state_of(*NODES, DB))] == [UNKNOWN.format("")]


def test_of_the_id_of_this_cluster_nothing_is_said_once_it_is_known_or_before_its_property_is_listed() -> None:
    assert found(state_of(*NODES, DB, EAST)) == []
    assert found(state_of(*NODES, DB, cluster_id="east")) == []
    assert found(state_of(*NODES, DB, kinds=[kind for kind in KINDS if kind != "ClusterProperty"])) == []
