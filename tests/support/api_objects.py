"""API objects as JSON, as small as an API server would accept them, from readable arguments."""

from collections.abc import Mapping, Sequence
from typing import Any

Object = dict[str, Any]


def namespace(name: str) -> Object:
    return {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name, "labels": _own_name(name)}}


def node(name: str, topology_zone: str, address: str, pod_cidr: str = "") -> Object:
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": topology_zone}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": labels},
        "spec": {"podCIDR": pod_cidr, "podCIDRs": [pod_cidr]} if pod_cidr else {},
        "status": {
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def service(name: str, namespace: str = "default", cluster_ip: str = "None", keys: str = "") -> Object:
    """Headless unless it has a `cluster_ip`; `keys` are its topology keys. One port, http 80/TCP."""
    annotations = {"topodns.io/topology-keys": keys} if keys else {}
    return {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {
            "clusterIP": cluster_ip,
            "clusterIPs": [cluster_ip],
            "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
            "type": "ClusterIP",
        },
    }


def external_name(name: str, target: str, namespace: str = "default") -> Object:
    metadata = {"name": name, "namespace": namespace}
    spec = {"type": "ExternalName", "externalName": target}
    return {"kind": "Service", "apiVersion": "v1", "metadata": metadata, "spec": spec}


def endpoint_slice(
    service: str, endpoints: Mapping[str, str], namespace: str = "default", name: str = "", ready: bool = True
) -> Object:
    """A slice of this Service, `<service>-1` unless it has a `name`: each endpoint's address and the node it is on."""
    return {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {
            "name": name or f"{service}-1",
            "namespace": namespace,
            "labels": {"kubernetes.io/service-name": service},
        },
        "addressType": "IPv4",
        "endpoints": [
            {
                "addresses": [address],
                "nodeName": node,
                "conditions": {"ready": ready, "serving": ready},
                "targetRef": {"kind": "Pod", "namespace": namespace, "name": f"pod-{address.replace('.', '-')}"},
            }
            for address, node in endpoints.items()
        ],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    }


def pod(name: str, address: str, node: str, namespace: str = "default", phase: str = "Running") -> Object:
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"nodeName": node, "containers": []},
        "status": {"phase": phase, "podIP": address, "podIPs": [{"ip": address}]},
    }


def service_import(name: str, ips: Sequence[str], namespace: str = "default") -> Object:
    return {
        "kind": "ServiceImport",
        "apiVersion": "multicluster.x-k8s.io/v1alpha1",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"type": "ClusterSetIP", "ips": list(ips), "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
    }


def node_locator(
    name: str, pod_ips: Sequence[str] = (), addresses: Sequence[str] = (), topology_zone: str = ""
) -> Object:
    return {
        "kind": "NodeLocator",
        "apiVersion": "topodns.io/v1alpha1",
        "metadata": {"name": name},
        "spec": {"podIPs": list(pod_ips), "addresses": list(addresses), "labels": _labels(name, topology_zone)},
    }


def pod_locator(
    name: str, addresses: Sequence[str], node: str, namespace: str = "default", topology_zone: str = ""
) -> Object:
    return {
        "kind": "PodLocator",
        "apiVersion": "topodns.io/v1alpha1",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"addresses": list(addresses), "nodeName": node, "nodeLabels": _labels(node, topology_zone)},
    }


def _labels(node: str, topology_zone: str) -> Mapping[str, str]:
    if not topology_zone:
        return {}
    return {"kubernetes.io/hostname": node, "topology.kubernetes.io/zone": topology_zone}


def _own_name(name: str) -> Mapping[str, str]:
    return {"kubernetes.io/metadata.name": name}
