"""A cluster as `kubectl get ns,nodes,svc,endpointslices,pods -A -o yaml` prints it: one List, with all its noise.

Three topology zones and NODES nodes: node number N has the address 127.20.0.N, and its pods are 127.20.N.P. In each
namespace `team-T` there are, each with a pod on every node:

- `front`, with a ClusterIP,
- `near`, headless, whose keys are the node, then the topology zone, then any,
- `zonal`, headless, whose only key is the topology zone,
- `plain`, headless, without keys.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

NODES: Final = 12
TEAMS: Final = 8
SERVICES: Final = ("front", "near", "zonal", "plain")
DOMAINS: Final = ("eu-1a", "eu-1b", "eu-1c")

_KEYS: Final = {
    "near": "kubernetes.io/hostname,topology.kubernetes.io/zone,*",
    "zonal": "topology.kubernetes.io/zone",
}
_CREATED: Final = "2024-05-01T10:00:00Z"

Object = dict[str, Any]


def dump() -> str:
    """The text of the whole cluster."""
    items = [*map(_namespace, namespaces()), *map(_node, range(1, NODES + 1))]
    for team in range(1, TEAMS + 1):
        for service in SERVICES:
            items += [_service(team, service), _slice(team, service)]
            items += [_pod(team, service, node) for node in range(1, NODES + 1)]
    listed = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
    return str(yaml.dump(listed, Dumper=yaml.CSafeDumper))


def namespaces() -> Iterator[str]:
    yield from ("default", "kube-node-lease", "kube-public", "kube-system")
    yield from (f"team-{team}" for team in range(1, TEAMS + 1))


def node_name(node: int) -> str:
    return f"node-{node}"


def topology_zone(node: int) -> str:
    return DOMAINS[node % len(DOMAINS)]


def pod_address(team: int, service: str, node: int) -> str:
    return f"127.20.{node}.{team * 10 + SERVICES.index(service)}"


def pod_addresses(team: int, service: str, zone_of: int | None = None) -> list[str]:
    """The addresses of a Service's pods, sorted as text: all, or those in the topology zone of a node."""
    return sorted(
        pod_address(team, service, node)
        for node in range(1, NODES + 1)
        if zone_of is None or topology_zone(node) == topology_zone(zone_of)
    )


def cluster_ip(team: int) -> str:
    return f"10.96.{team}.1"


def _metadata(name: str, namespace: str = "", **more: object) -> Object:
    """The metadata that an API server adds to every object, and no reader needs."""
    noise = {
        "creationTimestamp": _CREATED,
        "managedFields": [
            {
                "apiVersion": "v1",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:selector": {}}},
                "manager": "kube-controller-manager",
                "operation": "Update",
                "time": _CREATED,
            }
        ],
        "resourceVersion": "48151623",
        "uid": "6f1c7d0e-3a52-4c1b-9d3f-5b7f7c6f1a20",
    }
    return {**noise, "name": name, **({"namespace": namespace} if namespace else {}), **more}


def _namespace(name: str) -> Object:
    metadata = _metadata(name, labels={"kubernetes.io/metadata.name": name})
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": metadata,
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _node(node: int) -> Object:
    labels = {
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/hostname": node_name(node),
        "topology.kubernetes.io/zone": topology_zone(node),
    }
    annotations = {
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _metadata(node_name(node), labels=labels, annotations=annotations),
        "spec": {"podCIDR": f"127.20.{node}.0/24", "podCIDRs": [f"127.20.{node}.0/24"]},
        "status": {
            "addresses": [
                {"address": f"127.20.0.{node}", "type": "InternalIP"},
                {"address": node_name(node), "type": "Hostname"},
            ],
            "allocatable": {"cpu": "8", "memory": "32625108Ki", "pods": "110"},
            "conditions": [
                {"lastHeartbeatTime": _CREATED, "reason": "KubeletReady", "status": "True", "type": "Ready"}
            ],
            "images": [{"names": ["registry.k8s.io/pause:3.10"], "sizeBytes": 320368}],
            "nodeInfo": {"architecture": "amd64", "kubeletVersion": "v1.33.1"},
        },
    }


def _service(team: int, service: str) -> Object:
    address = cluster_ip(team) if service == "front" else "None"
    annotations = {"topodns.io/topology-keys": _KEYS[service]} if service in _KEYS else {}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(service, f"team-{team}", annotations=annotations, labels={"app": service}),
        "spec": {
            "clusterIP": address,
            "clusterIPs": [address],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}],
            "selector": {"app": service},
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
        "status": {"loadBalancer": {}},
    }


def _slice(team: int, service: str) -> Object:
    labels = {
        "app": service,
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        "kubernetes.io/service-name": service,
    }
    return {
        "addressType": "IPv4",
        "apiVersion": "discovery.k8s.io/v1",
        "endpoints": [_endpoint(team, service, node) for node in range(1, NODES + 1)],
        "kind": "EndpointSlice",
        "metadata": _metadata(f"{service}-x7k2p", f"team-{team}", generateName=f"{service}-", labels=labels),
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    }


def _endpoint(team: int, service: str, node: int) -> Mapping[str, object]:
    return {
        "addresses": [pod_address(team, service, node)],
        "conditions": {"ready": True, "serving": True, "terminating": False},
        "nodeName": node_name(node),
        "targetRef": {"kind": "Pod", "name": f"{service}-{node}", "namespace": f"team-{team}"},
        "zone": topology_zone(node),
    }


def _pod(team: int, service: str, node: int) -> Object:
    address = pod_address(team, service, node)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(f"{service}-{node}", f"team-{team}", labels={"app": service}),
        "spec": {
            "containers": [{"image": "registry.k8s.io/pause:3.10", "name": "main", "resources": {}}],
            "nodeName": node_name(node),
            "tolerations": [{"effect": "NoExecute", "key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
        },
        "status": {
            "conditions": [{"lastTransitionTime": _CREATED, "status": "True", "type": "Ready"}],
            "hostIP": f"127.20.0.{node}",
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": _CREATED,
        },
    }
