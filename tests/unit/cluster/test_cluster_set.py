"""The id of this cluster, and the regions that its Nodes show."""

from tests.support.model_builders import cluster_property, endpoint, node, service
from topodns.cluster.cluster_set import ClusterSet
from topodns.cluster.model import CLUSTER_KEY, REGION_LABEL, ZONE_LABEL, KeySource, Node, ObjectKey
from topodns.topology.keys import key_reader

DB = ObjectKey("shop", "db")


def never(_key: ObjectKey, _node_name: str) -> bool:
    return False


def in_zone(name: str, topology_zone: str, region: str) -> Node:
    return node(name, {ZONE_LABEL: topology_zone, REGION_LABEL: region})


def test_the_id_is_that_of_the_property_or_of_the_option_which_wins() -> None:
    of_property, of_option = ClusterSet(), ClusterSet(cluster_id="East")
    assert (of_property.id, of_option.id) == ("", "east")
    for each in (of_property, of_option):
        each.take_property(cluster_property("West"))
    assert (of_property.id, of_option.id) == ("west", "east")
    of_property.take_property(None)
    assert of_property.id == ""


def test_an_endpoint_is_of_this_cluster_by_its_slice_and_never_while_the_id_is_unknown() -> None:
    east, west, nowhere = (endpoint("10.0.0.1", topology={CLUSTER_KEY: each}) for each in ("east", "west", ""))
    assert [ClusterSet(cluster_id="east").has(each) for each in (east, west, nowhere)] == [True, False, False]
    assert [ClusterSet().has(each) for each in (east, west, nowhere)] == [False, False, False]


def test_a_client_has_this_cluster_in_place_of_a_label_of_that_name() -> None:
    labels = {CLUSTER_KEY: "blue", ZONE_LABEL: "a"}
    assert ClusterSet(cluster_id="east").labels_of_client(labels) == {CLUSTER_KEY: "east", ZONE_LABEL: "a"}
    assert ClusterSet().labels_of_client(labels) == {ZONE_LABEL: "a"}


def test_a_zone_has_the_region_that_all_of_its_nodes_show() -> None:
    own = ClusterSet()
    one, other, torn = in_zone("n1", "a", "eu"), in_zone("n2", "a", "eu"), in_zone("n2", "a", "us")
    assert own.region_of("a") is None
    own.take_node(None, one, never)
    own.take_node(None, other, never)
    assert (own.region_of("a"), own.region_of("b"), own.region_of(None)) == ("eu", None, None)
    own.take_node(other, torn, never)
    assert own.region_of("a") is None
    own.take_node(one, None, never)
    assert own.region_of("a") == "us"
    own.take_node(torn, None, never)
    assert own.region_of("a") is None


def test_a_node_concerns_the_imports_with_endpoints_on_it_and_all_of_them_where_a_region_changes() -> None:
    own = ClusterSet(key_reader((KeySource.ANNOTATION,)))
    own.take_import(DB, service("db", "shop", imported=True, annotation="cluster"))

    def on_n1(_key: ObjectKey, node_name: str) -> bool:
        return node_name == "n1"

    assert list(own.take_node(None, in_zone("n2", "a", "eu"), on_n1)) == [DB]
    assert list(own.take_node(None, in_zone("n3", "a", "eu"), on_n1)) == []
    assert list(own.take_node(None, in_zone("n1", "a", "eu"), on_n1)) == [DB]
    assert list(own.take_node(in_zone("n3", "a", "eu"), None, on_n1)) == []
