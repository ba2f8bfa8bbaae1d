"""Pods that come one after the other with one address, on two Nodes in turn that nothing plays: the test writes the
status of each Pod. And where NodeLocators have an address.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.objects import HOSTNAME, pause_container, pod

PLAIN: Final = ("node91", "node92")
MOVING: Final = "10.99.0.7"


@contextmanager
def unplayed_nodes(cluster: Cluster) -> Iterator[None]:
    """The Nodes in PLAIN, without a kubelet."""
    for name in PLAIN:
        cluster.create("", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {HOSTNAME: name}}})
    try:
        yield
    finally:
        for name in PLAIN:
            cluster.delete("Node", "", name)


def move(place: Place, number: int) -> str:
    """The Pod with the address goes, and another one on the other Node gets it; the name of that Node."""
    if number:
        place.delete("Pod", f"mover-{number - 1}", grace=0)
    node = PLAIN[number % 2]
    run_unplayed(place, f"mover-{number}", node, MOVING)
    return node


def run_unplayed(place: Place, name: str, node: str, address: str, **spec: Any) -> None:
    """A Pod on one of PLAIN, or on no Node (""), that the API server has as running with this address.

    No kubelet ends it: it is there until it is deleted without grace.
    """
    place.create(pod(name, name, pause_container(), node, tolerations=[{"operator": "Exists"}], **spec))
    path = f"/api/v1/namespaces/{place.name}/pods/{name}/status"
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "startTime": "2026-01-01T00:00:00Z"}
    answer = place.cluster.lab.api.call("PATCH", path, {"status": status}, "application/merge-patch+json")
    assert answer.ok, answer


def located(cluster: Cluster, nodes: Sequence[str] = ()) -> Mapping[str, str]:
    """The node by each address of the NodeLocators, of these nodes or of the fake ones; no address is in two."""
    found: dict[str, str] = {}
    for each in cluster.list("NodeLocator", ""):
        name = each["metadata"]["name"]
        if name in nodes or (not nodes and name.startswith("fake")):
            for ip in each["spec"]["podIPs"]:
                assert ip not in found, f"{ip} is at {found[ip]} and at {name}"
                found[ip] = name
    return found
