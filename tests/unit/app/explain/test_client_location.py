"""The location of an address in each cluster, as JSON and as text."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.corefile_settings import settings
from tests.support.explained_cluster import with_topology, without_topology
from topodns.app.explain.client_location import pod_text, who_reply, who_text
from topodns.app.explain.explainer import manifest_clusters
from topodns.app.explain.question import Unexplained
from topodns.plugins.block import Settings

TWO_VIEWS = """cluster.local {
 view near {
  expr incidr(client_ip(), '10.0.0.0/24')
 }
 kubernetes {
  manifests cluster.yaml
 }
 topology {
  locate nodes
 }
}
cluster.local {
 kubernetes {
  manifests cluster.yaml
 }
}
"""


def reply(served: Settings, address: str) -> dict[str, object]:
    return who_reply(manifest_clusters(served), {"client": address})


def only_cluster(served: Settings, address: str) -> dict[str, Any]:
    found: Any = reply(served, address)
    assert found["address"] == address
    (cluster,) = found["clusters"]
    assert isinstance(cluster, dict)
    return cluster


def test_a_client_has_its_node_and_the_labels_in_use(served: Settings) -> None:
    cluster = only_cluster(served, "10.0.0.3")
    assert cluster["origins"] == ["cluster.local."]
    assert (cluster["view"], cluster["hint"], cluster["zone"]) == (None, None, None)
    assert (cluster["node"], cluster["method"], cluster["because"]) == ("far", "nodes", "an address of that Node")
    assert (cluster["labels"], cluster["lacking"]) == ({"hall": "south"}, ["rack"])
    assert cluster["contradictions"] == []
    assert [each["method"] for each in cluster["methods"] if each["used"]] == ["nodes"]
    assert cluster["methods"][0] == {
        "method": "nodes",
        "used": True,
        "node": "far",
        "because": "an address of that Node",
    }


def test_an_unlocated_client_has_the_reason_and_advice(served: Settings) -> None:
    cluster = only_cluster(served, "10.3.0.9")
    assert (cluster["node"], cluster["method"], cluster["labels"]) == (None, "unknown", {})
    assert cluster["because"] == "no method of `locate` has a result: nodes"
    assert "`locate` can have podcidr-unverified or pods" in cluster["hint"]
    unverified = cluster["methods"][-1]
    assert (unverified["method"], unverified["used"], unverified["node"]) == ("podcidr-unverified", False, "far")


def test_without_topology_no_client_is_located(directory: Path) -> None:
    cluster = only_cluster(without_topology(directory), "10.0.0.3")
    assert (cluster["node"], cluster["methods"]) == (None, [])
    assert cluster["because"] == "the server block has no `topology`: clients are not located"


def test_each_kubernetes_directive_locates_for_itself(directory: Path) -> None:
    found: Any = reply(settings(TWO_VIEWS, str(directory)), "10.0.0.3")
    assert [(each["view"], each["node"]) for each in found["clusters"]] == [("near", "far"), (None, None)]


@pytest.mark.parametrize("address", ["", "one", "10.0.0.0/8"])
def test_a_text_that_is_no_address_is_refused_with_what_was_found(served: Settings, address: str) -> None:
    with pytest.raises(Unexplained, match="is no IP address"):
        reply(served, address)


def test_a_server_without_clusters_knows_no_client() -> None:
    with pytest.raises(Unexplained, match="no server block has a kubernetes directive"):
        who_reply((), {"client": "10.0.0.1"})


TEXT = """\
address  10.0.0.1
cluster  cluster.local.
node     one (an address of the node: a process there, or a masqueraded Pod)
labels   hall = north
         rack = 1
because  an address of that Node
methods  nodes: one, an address of that Node
         podcidr (not in `locate`): unknown, in no Node's pod CIDR
         pods (not in `locate`): unknown, Pods are not watched
         slices (not in `locate`): unknown, no EndpointSlice has it
         podcidr-unverified (not in `locate`): unknown, in no Node's pod CIDR"""


def test_the_text_reads_from_the_address_to_the_methods(served: Settings) -> None:
    assert who_text(reply(served, "10.0.0.1")) == TEXT


def test_the_text_has_zone_contradictions_keys_that_lack_and_advice() -> None:
    cluster: dict[str, object] = {
        "origins": ["cluster.local."],
        "view": "near",
        "node": None,
        "method": "unknown",
        "because": "no reason",
        "zone": "a",
        "labels": {},
        "lacking": ["rack"],
        "methods": [],
        "contradictions": ["one", "two"],
        "hint": "do this",
    }
    assert who_text({"address": "10.0.0.1", "clusters": [cluster]}).splitlines() == [
        "address  10.0.0.1",
        "cluster  cluster.local., view near",
        "node     unknown",
        "zone     a",
        "lacks    rack",
        "because  no reason",
        "but      one",
        "         two",
        "hint     do this",
    ]


def test_the_node_of_a_pod_is_compared_with_the_api_servers(served: Settings) -> None:
    addresses = [reply(served, "10.0.0.1")]
    right = pod_text({"pod": "shop/web-1", "node": "one", "addresses": addresses}).splitlines()
    assert right == ["pod      shop/web-1 on one, by the API server", *TEXT.splitlines()]
    wrong = pod_text({"pod": "shop/web-1", "node": "two", "addresses": addresses}).splitlines()
    assert wrong[-1] == "but      the API server says two, this server one"


def test_an_object_of_another_form_is_no_location(directory: Path) -> None:
    for found in ({}, {"address": "10.0.0.1", "clusters": [3]}, {"address": "10.0.0.1", "clusters": [{}]}):
        with pytest.raises((KeyError, TypeError)):
            who_text(found)
    assert with_topology(directory)
