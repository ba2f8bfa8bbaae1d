"""Topology keys of a ServiceImport at an API server: the id of the cluster counts from its ClusterProperty on."""

from pathlib import Path
from typing import Final

from tests.support.api_objects import Object, endpoint_slice, service_import
from tests.support.fake_api.server import FakeApi
from tests.support.program_with_fake_api import scene

DB: Final = "db.default.svc.clusterset.local A"
EAST, WEST = ["10.61.8.1", "10.61.8.2"], ["10.61.9.1", "10.61.9.2"]
UNLOCATED: Final = "127.61.0.9"  # on no node
ORIGINS, MULTICLUSTER = "cluster.local clusterset.local", "multicluster clusterset.local"
FAILING: Final = "topodns_watch_failing"


def slice_of(cluster_id: str, addresses: list[str]) -> Object:
    """A slice of `db` from this cluster, with an endpoint on a Node of the name n1 and one on n2."""
    found = endpoint_slice("db", dict(zip(addresses, ("n1", "n2"), strict=True)), name=f"db-{cluster_id}")
    labels = {"service-name": "db", "source-cluster": cluster_id}
    found["metadata"]["labels"] = {f"multicluster.kubernetes.io/{name}": value for name, value in labels.items()}
    return found


def imported(keys: str) -> list[Object]:
    db = service_import("db", [])
    db["metadata"]["annotations"] = {"topodns.io/topology-keys": keys}
    db["spec"]["type"] = "Headless"
    return [db, slice_of("east", EAST), slice_of("west", WEST)]


def cluster_property(value: str) -> Object:
    return {
        "kind": "ClusterProperty",
        "apiVersion": "about.k8s.io/v1alpha1",
        "metadata": {"name": "cluster.clusterset.k8s.io"},
        "spec": {"value": value},
    }


def test_a_client_gets_its_own_node_then_its_own_cluster_then_any(tmp_path: Path) -> None:
    there = [*imported("kubernetes.io/hostname,cluster,*"), cluster_property("east")]
    with scene(tmp_path, *there, origins=ORIGINS, options=MULTICLUSTER) as story:
        assert story.data(DB) == EAST[:1]
        assert story.data(DB, UNLOCATED) == EAST
        story.api.delete(slice_of("east", EAST))
        story.comes(DB, *WEST)


def test_without_the_definition_the_id_is_unknown_until_it_comes(tmp_path: Path) -> None:
    def not_installed(api: FakeApi) -> None:
        api.absent("clusterproperties")

    there = imported("cluster,*")
    with scene(tmp_path, *there, origins=ORIGINS, options=MULTICLUSTER, prepare=not_installed) as story:
        assert story.data(DB) == EAST + WEST
        assert story.metric(FAILING, kind="ClusterProperty", status="404") == 1
        story.api.heal()
        story.api.put(cluster_property("west"))
        story.comes(DB, *WEST)
        story.api.put(cluster_property("east"))
        story.comes(DB, *EAST)


def test_the_id_of_the_corefile_needs_no_property_and_asks_for_none(tmp_path: Path) -> None:
    with scene(tmp_path, *imported("cluster"), origins=ORIGINS, options=f"{MULTICLUSTER}\ncluster_id west") as story:
        assert story.data(DB, UNLOCATED) == WEST
        assert story.api.requests.count("clusterproperties") == 0
