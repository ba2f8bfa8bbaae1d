"""The value of a topology key at an endpoint. That of a Service's is in tests/unit/cluster/test_endpoints.py."""

import pytest

from tests.support.model_builders import cluster_property, endpoint, node
from topodns.cluster.cluster_set import ClusterSet
from topodns.cluster.label_values import imported_label_of, label_of
from topodns.cluster.model import CLUSTER_KEY, HOSTNAME_LABEL, REGION_LABEL, ZONE_LABEL, Endpoint

OWN_NODE = node("n1", {HOSTNAME_LABEL: "host-1", ZONE_LABEL: "b", REGION_LABEL: "eu", "rack": "7", CLUSTER_KEY: "blue"})


def on_n1(cluster_id: str) -> Endpoint:
    return endpoint("10.0.0.1", node="n1", topology_zone="a", topology={CLUSTER_KEY: cluster_id})


def east() -> ClusterSet:
    found = ClusterSet()
    found.take_property(cluster_property("east"))
    found.take_node(None, node("n7", {ZONE_LABEL: "a", REGION_LABEL: "us"}), lambda _key, _name: False)
    return found


@pytest.mark.parametrize(
    ("key", "of_service", "own", "foreign"),
    [
        (CLUSTER_KEY, "blue", "east", "west"),
        (ZONE_LABEL, "b", "a", "a"),
        (REGION_LABEL, "eu", "us", "us"),
        (HOSTNAME_LABEL, "host-1", "host-1", None),
        ("rack", "7", "7", None),
        ("row", None, None, None),
    ],
)
def test_of_an_import_only_labels_of_own_nodes_count_and_the_zone_is_that_of_the_slice(
    key: str, of_service: str | None, own: str | None, foreign: str | None
) -> None:
    assert label_of(OWN_NODE, on_n1(""), key) == of_service
    assert imported_label_of(east(), OWN_NODE, on_n1("east"), key) == own
    assert imported_label_of(east(), OWN_NODE, on_n1("west"), key) == foreign


def test_an_own_endpoint_without_a_node_object_has_the_name_of_its_node() -> None:
    assert imported_label_of(east(), None, on_n1("east"), HOSTNAME_LABEL) == "n1"
    assert imported_label_of(east(), None, on_n1("west"), HOSTNAME_LABEL) is None
