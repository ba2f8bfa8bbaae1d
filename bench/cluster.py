"""The cluster of most benchmarks, as Kubernetes manifests: 30 nodes in 3 topology zones, 2,000 Services.

Half of the Services have a ClusterIP, half are headless under a topology policy. Two more share another policy and
differ in size only: MANY with 5,000 endpoints and FEW with 10. Each has exactly one endpoint on each of the first ten
nodes, so that a client there gets the same number of addresses from either; the other endpoints of MANY are elsewhere.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

NODES: Final = 30
NAMESPACES: Final = 20
SERVICES: Final = 2_000
ENDPOINTS_EACH: Final = 6
NODES_WITH_ONE: Final = 10  # of MANY's and FEW's endpoints
SLICE_SIZE: Final = 100  # endpoints in a slice, as the EndpointSlice controller fills them

MANY: Final = "many.ns0.svc.cluster.local"
MANY_ENDPOINTS: Final = 5_000
FEW: Final = "few.ns0.svc.cluster.local"

POLICY: Final = "kubernetes.io/hostname,topology.kubernetes.io/zone,*"
SIZE_POLICY: Final = "kubernetes.io/hostname"

Object = dict[str, Any]

COREFILE: Final = """\
cluster.local in-addr.arpa ip6.arpa {
    bind 127.0.0.1
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        manifests cluster.json
        pods insecure
    }
    topology
    loadbalance
    prometheus 127.0.0.1:0
}
"""


def write_cluster(directory: Path) -> Path:
    """Write the manifests and the Corefile into this directory; the Corefile's path."""
    write_list(directory / "cluster.json", cluster_objects())
    corefile = directory / "Corefile"
    corefile.write_text(COREFILE)
    return corefile


def write_list(path: Path, objects: Iterable[Object]) -> Path:
    """Write the objects as a List in JSON; its path."""
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return path


def cluster_objects() -> Iterator[Object]:
    yield from _nodes()
    yield from _namespaces()
    yield from _services()
    yield from _sized_services()


def headless_names() -> list[str]:
    return [f"headless{number}.{_namespace_of(number)}.svc.cluster.local" for number in range(SERVICES // 2)]


def cluster_ip_names() -> list[str]:
    return [f"web{number}.{_namespace_of(number)}.svc.cluster.local" for number in range(SERVICES // 2)]


def client_on(node: int) -> bytes:
    """The packed address of a Pod on this node: in its pod CIDR, and on loopback, so that any socket can bind it."""
    return bytes((127, 101 + node, 255, 1))


def _namespace_of(number: int) -> str:
    return f"ns{number % NAMESPACES}"


def _nodes() -> Iterator[Object]:
    for node in range(NODES):
        labels = {"kubernetes.io/hostname": f"node{node}", "topology.kubernetes.io/zone": f"zone{node % 3}"}
        yield {
            **_head("v1", "Node", f"node{node}", labels=labels),
            "spec": {"podCIDRs": [f"127.{101 + node}.0.0/16"]},
            "status": {"addresses": [{"type": "InternalIP", "address": f"127.100.0.{node + 1}"}]},
        }


def _namespaces() -> Iterator[Object]:
    return (_head("v1", "Namespace", f"ns{number}") for number in range(NAMESPACES))


def _services() -> Iterator[Object]:
    for number in range(SERVICES // 2):
        namespace = _namespace_of(number)
        nodes = [(number + 7 * each) % NODES for each in range(ENDPOINTS_EACH)]
        yield service(namespace, f"web{number}", f"10.96.{number >> 8}.{number & 255}")
        yield from slices(namespace, f"web{number}", nodes, 2 * number * ENDPOINTS_EACH)
        yield service(namespace, f"headless{number}", "None", POLICY)
        yield from slices(namespace, f"headless{number}", nodes, (2 * number + 1) * ENDPOINTS_EACH)


def _sized_services() -> Iterator[Object]:
    elsewhere = range(NODES_WITH_ONE, NODES)
    few = list(range(NODES_WITH_ONE))
    many = few + [elsewhere[each % len(elsewhere)] for each in range(MANY_ENDPOINTS - len(few))]
    free = SERVICES * ENDPOINTS_EACH
    for name, nodes, place in ((MANY, many, free), (FEW, few, free + MANY_ENDPOINTS)):
        label, namespace, *_ = name.split(".")
        yield service(namespace, label, "None", SIZE_POLICY)
        yield from slices(namespace, label, nodes, place)


def service(namespace: str, name: str, cluster_ip: str, policy: str = "") -> Object:
    """Headless with the `cluster_ip` "None"; `policy` are its topology keys."""
    annotations = {"topodns.io/topology-keys": policy} if policy else {}
    ports = [{"name": "http", "port": 80, "protocol": "TCP"}]
    spec = {"type": "ClusterIP", "clusterIP": cluster_ip, "clusterIPs": [cluster_ip], "ports": ports}
    return {**_head("v1", "Service", name, namespace, annotations=annotations), "spec": spec}


def slices(namespace: str, name: str, nodes: Sequence[int], place: int) -> Iterator[Object]:
    """EndpointSlices of the Service `name`, an endpoint on each of these nodes, with addresses from `place` on."""
    labels = {"kubernetes.io/service-name": name}
    for first in range(0, len(nodes), SLICE_SIZE):
        numbered = enumerate(nodes[first : first + SLICE_SIZE], first)
        yield {
            **_head("discovery.k8s.io/v1", "EndpointSlice", f"{name}-{first}", namespace, labels),
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            "endpoints": [_endpoint(namespace, node, place + number) for number, node in numbered],
        }


def _endpoint(namespace: str, node: int, place: int) -> Object:
    return {
        "addresses": [f"127.{101 + node}.{place // 250 % 250}.{place % 250 + 2}"],
        "nodeName": f"node{node}",
        "targetRef": {"kind": "Pod", "namespace": namespace, "name": f"pod-{place}"},
        "zone": f"zone{node % 3}",
        "conditions": {"ready": True, "serving": True, "terminating": False},
    }


def _head(
    version: str,
    kind: str,
    name: str,
    namespace: str = "",
    labels: Object | None = None,
    annotations: Object | None = None,
) -> Object:
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}, "annotations": annotations or {}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}
