"""The location of an address in each cluster, with the reason."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.corefile_settings import settings
from tests.support.explained_cluster import without_topology
from topodns.inspect.documents import WhoDocument
from topodns.inspect.errors import Refused
from topodns.inspect.sources import manifest_clusters
from topodns.inspect.who import who_reply
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


def reply(served: Settings, address: str) -> WhoDocument:
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
    assert "add pods to `locate`, or podcidr-unverified" in cluster["hint"]
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
    with pytest.raises(Refused, match="is no IP address"):
        reply(served, address)


def test_a_server_without_clusters_knows_no_client() -> None:
    with pytest.raises(Refused, match="no server block has a kubernetes directive"):
        who_reply((), {"client": "10.0.0.1"})
