"""Topology keys on ServiceImports (semantics 10.6), as clients see them below `clusterset.local`."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.support.cluster_dig import ClusterDig, settings
from tests.support.model_builders import cluster_property, endpoint, endpoint_slice, namespace, node, service
from topodns.cluster.annotations import BadAnnotation
from topodns.cluster.model import (
    HOSTNAME_LABEL,
    OWN_CLUSTER,
    REGION_LABEL,
    ZONE_LABEL,
    ClusterObject,
    Deleted,
    ObjectKey,
    TopologyInputs,
    Upserted,
)
from topodns.dependency import service_fact
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.plugin import Scope

N1, N2, NOWHERE = "10.0.0.1", "10.0.0.2", "192.0.2.1"
EAST, WEST = ["172.1.0.1", "172.1.0.2"], ["172.2.0.1", "172.2.0.2"]
FACT = service_fact("shop", "zone")


def headless(name: str, **topology: str | None) -> list[ClusterObject]:
    """A ServiceImport with an endpoint in zone a and one in zone b of each cluster, on Nodes of the same names."""
    imported = [
        endpoint_slice(
            name,
            *(endpoint(f"172.{at}.0.{nth}", node=f"n{nth}", topology_zone="ab"[nth - 1]) for nth in (1, 2)),
            name=f"{name}-{cluster_id}",
            namespace="shop",
            ports=["http:80"],
            imported=True,
            cluster_id=cluster_id,
        )
        for at, cluster_id in enumerate(("east", "west"), 1)
    ]
    keys = TopologyInputs(**topology)  # type: ignore[arg-type]  # texts alone
    return [replace(service(name, "shop", imported=True), topology=keys), *imported]


def cluster(*more: ClusterObject) -> list[ClusterObject]:
    zones = {"n1": "a", "n2": "b"}
    return [
        namespace("shop"),
        *(
            node(name, {HOSTNAME_LABEL: name, ZONE_LABEL: each, REGION_LABEL: "eu"}, addresses=[f"10.0.0.{name[1]}"])
            for name, each in zones.items()
        ),
        *headless("plain"),
        *headless("own", annotation="cluster"),
        *headless("near", annotation=f"{HOSTNAME_LABEL},cluster,*", ttl="7"),
        *headless("zone", annotation=f"{ZONE_LABEL},*"),
        *headless("region", annotation=REGION_LABEL),
        *headless("one", max_endpoints="1"),
        *headless("pair", annotation=f"{HOSTNAME_LABEL},cluster", min_endpoints="2"),
        *headless("bad", annotation="no such key!"),
        service("zone", "shop", annotation="cluster"),
        endpoint_slice("zone", endpoint("172.9.0.1", node="n1"), namespace="shop"),
        *more,
    ]


def server(*more: ClusterObject, cluster_id: str = "", topology: TopologySettings | None = None) -> ClusterDig:
    kubernetes = settings("cluster.local", "clusterset.local", multicluster=["clusterset.local"], cluster_id=cluster_id)
    return ClusterDig(cluster(*more), kubernetes, topology or TopologySettings())


def addresses(dig: ClusterDig, name: str, source: str) -> list[str]:
    """Of the A records of a name in the namespace `shop`."""
    lines = dig(f"{name}.shop.svc.clusterset.local. A", source).splitlines()
    return [line.split()[-1] for line in lines if " A " in line]


@pytest.mark.parametrize(
    ("name", "source", "got"),
    [
        ("plain", N1, EAST + WEST),
        ("own", N1, EAST),
        ("own", NOWHERE, EAST),
        ("near", N1, EAST[:1]),
        ("near", N2, EAST[1:]),
        ("near", NOWHERE, EAST),
        ("zone", N1, [EAST[0], WEST[0]]),
        ("zone", NOWHERE, EAST + WEST),
        ("region", N1, EAST + WEST),
        ("region", NOWHERE, []),
        ("pair", N1, EAST),
        ("bad", N1, EAST + WEST),
    ],
)
def test_a_client_of_east_gets_the_endpoints_of_its_domain(name: str, source: str, got: list[str]) -> None:
    assert addresses(server(cluster_property("east")), name, source) == got


def test_on_a_service_cluster_is_the_name_of_a_label() -> None:
    assert server(cluster_property("east"))("zone.shop.svc.cluster.local. A", N1).startswith("NODATA")


def test_without_topology_every_client_gets_every_endpoint() -> None:
    kubernetes = settings("clusterset.local", multicluster=["clusterset.local"], cluster_id="east")
    assert addresses(ClusterDig(cluster(), kubernetes), "own", N1) == EAST + WEST


def test_the_id_of_the_corefile_wins_over_the_clusters_own_and_case_does_not_matter() -> None:
    assert addresses(server(cluster_property("east"), cluster_id="West"), "own", N1) == WEST


def test_srv_records_name_the_clusters_of_the_same_endpoints() -> None:
    dig = server(cluster_property("east"))
    lines = dig("_http._tcp.zone.shop.svc.clusterset.local. SRV", N1).splitlines()
    targets = [line.split()[-1] for line in lines if " SRV " in line]
    assert targets == [
        f"172-{at}-0-1.{each}.zone.shop.svc.clusterset.local." for at, each in ((1, "east"), (2, "west"))
    ]
    assert len(lines) == 4  # and the two addresses


def test_srv_records_have_no_priorities() -> None:
    topology = TopologySettings(srv_priority=True)
    lines = server(cluster_property("east"), topology=topology)("zone.shop.svc.clusterset.local. SRV", N1).splitlines()
    assert [line.split()[4] for line in lines if " SRV " in line] == ["0", "0"]


def test_a_bounded_answer_is_the_same_for_a_client_again() -> None:
    dig = server()
    found = [addresses(dig, "one", source) for source in (N1, N1, NOWHERE)]
    assert found[0] == found[1]
    assert [len(each) for each in found] == [1, 1, 1]


def test_pods_of_two_clusters_are_two_though_they_have_one_name() -> None:
    twins = [
        endpoint_slice(
            "twins",
            endpoint(address, pod="db-0"),
            name=cluster_id,
            namespace="shop",
            imported=True,
            cluster_id=cluster_id,
        )
        for address, cluster_id in ((EAST[0], "east"), (WEST[0], "west"))
    ]
    bounded = replace(service("twins", "shop", imported=True), topology=TopologyInputs(max_endpoints="1"))
    assert len(addresses(server(bounded, *twins), "twins", N1)) == 1


@pytest.mark.parametrize("view", ["_near", "_all"])
def test_an_import_has_no_views(view: str) -> None:
    dig = server(cluster_property("east"))
    assert dig(f"{view}.zone.shop.svc.clusterset.local. A", N1) == "NXDOMAIN clusterset.local. 5"


def test_a_name_of_one_endpoint_is_filtered_with_that_option_alone() -> None:
    name = "172-2-0-2.west.zone"
    for filtered, got in ((False, WEST[1:]), (True, WEST[1:])):  # * is left
        assert addresses(server(topology=TopologySettings(filter_hostnames=filtered)), name, N1) == got
    hard = server(*headless("hard", annotation=ZONE_LABEL), topology=TopologySettings(filter_hostnames=True))
    assert addresses(hard, "172-2-0-2.west.hard", N1) == []
    assert addresses(hard, "172-2-0-1.west.hard", N1) == WEST[:1]


def test_an_answer_by_the_cluster_alone_is_for_everyone_and_waits_for_no_pod() -> None:
    found = server(cluster_property("east")).resolve("own.shop.svc.clusterset.local. A", NOWHERE)
    assert (found.scope, found.location) == (Scope.EVERYONE, None)


def test_the_extended_error_of_a_miss_names_no_location_where_none_counts() -> None:
    found = server(cluster_property("north")).resolve("own.shop.svc.clusterset.local. A", NOWHERE)
    assert found.response.ede is not None
    assert found.response.ede.text == "no endpoint matches topologyKeys cluster"


# Changes


def test_the_clusters_id_counts_from_its_property_on() -> None:
    dig = server()
    assert addresses(dig, "near", NOWHERE) == EAST + WEST
    for value, got in (("west", WEST), ("east", EAST)):
        facts = dig.state.apply(Upserted(cluster_property(value)), 9)
        assert FACT in facts
        assert addresses(dig, "near", NOWHERE) == got
    assert FACT in dig.state.apply(Deleted("ClusterProperty", ObjectKey("", OWN_CLUSTER)), 9)
    assert addresses(dig, "near", NOWHERE) == EAST + WEST


def test_a_property_that_says_the_same_touches_nothing() -> None:
    dig = server(cluster_property("East"))
    assert dig.state.apply(Upserted(cluster_property("east")), 9) == frozenset()


def test_a_region_follows_the_labels_of_own_nodes() -> None:
    dig = server(cluster_property("east"))
    assert addresses(dig, "region", N1) == EAST + WEST
    moved = node("n2", {HOSTNAME_LABEL: "n2", ZONE_LABEL: "b", REGION_LABEL: "us"}, addresses=["10.0.0.2"])
    assert service_fact("shop", "region") in dig.state.apply(Upserted(moved), 9)
    assert addresses(dig, "region", N1) == [EAST[0], WEST[0]]
    assert addresses(dig, "region", N2) == [EAST[1], WEST[1]]


def test_keys_that_are_taken_away_filter_nothing() -> None:
    dig = server(cluster_property("east"))
    assert addresses(dig, "own", N1) == EAST
    assert service_fact("shop", "own") in dig.state.apply(Upserted(service("own", "shop", imported=True)), 9)
    assert addresses(dig, "own", N1) == EAST + WEST


def notices(**topology: str) -> Iterable[str]:
    state = server(*headless("noted", **topology)).state
    return [notice.text for notice in state.cluster_set.keys[ObjectKey("shop", "noted")].notices]


def test_a_misspelt_annotation_is_named() -> None:
    state = server(*headless("noted", annotation="cluster")).state
    found = state.imports["shop", "noted"]
    bad = (BadAnnotation("topodns.io/tll", "topodns.io/ttl"),)
    state.apply(Upserted(replace(found, topology=replace(found.topology, bad=bad))), 9)
    (notice,) = state.cluster_set.keys[ObjectKey("shop", "noted")].notices
    expected = "annotation 'topodns.io/tll' is unknown and has no effect, did you mean 'topodns.io/ttl'?"
    assert (notice.text, notice.severity) == (expected, "error")


def test_guards_without_a_meaning_there_are_named() -> None:
    assert notices(annotation="cluster", max_load="2", apply_to="near", min_endpoints="0") == [
        "annotation 'topodns.io/min-endpoints': expected 1 to 1000, found '0'; it has no effect",
        "annotation 'topodns.io/max-load' has no effect on a ServiceImport",
        "annotation 'topodns.io/apply-to' has no effect on a ServiceImport",
    ]


def test_a_serviceimport_with_an_address_has_no_keys() -> None:
    vip = replace(service("vip", "shop", ["10.9.0.1"], imported=True), topology=TopologyInputs(annotation="cluster"))
    dig = server(vip, cluster_id="east")
    assert addresses(dig, "vip", N1) == ["10.9.0.1"]
    found = dig.state.cluster_set.keys[vip.key]
    assert [each.text for each in found.notices] == [
        "topology keys have no effect here: the ServiceImport is not headless"
    ]
