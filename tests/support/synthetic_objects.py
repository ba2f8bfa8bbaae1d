"""One object of each kind as an API server sends it, with managed fields and status, and `%(name)s` for values."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

Object = dict[str, Any]

_CREATED: Final = "2024-05-01T10:00:00Z"
_KEYED_BY: Final = ("name", "type", "ip", "key", "uid", "containerPort", "port", "mountPath")


def _fields(value: object) -> Object:
    """The fieldsV1 of a value: a tree of its field names, lists by what keys their entries."""
    if isinstance(value, Mapping):
        return {f"f:{key}": _fields(part) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        entries = {_entry(part): {".": {}, **_fields(part)} for part in value if isinstance(part, Mapping)}
        return {".": {}, **entries} if entries else {}
    return {}


def _entry(part: Mapping[str, object]) -> str:
    key = next((key for key in _KEYED_BY if key in part), "")
    return "k:" + json.dumps({key: part.get(key, "")}, separators=(",", ":"))


def _managed(api_version: str, manager: str, value: Mapping[str, object], subresource: str = "") -> Object:
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": api_version,
        "time": _CREATED,
        "fieldsType": "FieldsV1",
        "fieldsV1": _fields(value),
        **({"subresource": subresource} if subresource else {}),
    }


def _whole(kind: str, api_version: str, managers: Mapping[str, str], metadata: Object, **parts: object) -> Object:
    """The object with its metadata completed; `managers` are the writers of the object and of its status."""
    writer, status_writer = managers["all"], managers.get("status", "")
    written = {key: part for key, part in parts.items() if not status_writer or key != "status"}
    about = {key: metadata[key] for key in ("annotations", "labels", "ownerReferences") if key in metadata}
    managed = [_managed(api_version, writer, {"metadata": about, **written})]
    if status_writer:
        managed.append(_managed(api_version, status_writer, {"status": parts["status"]}, "status"))
    added = {"uid": "%(uid)s", "resourceVersion": "%(revision)s", "creationTimestamp": _CREATED}
    return {
        "kind": kind,
        "apiVersion": api_version,
        "metadata": {"name": "%(name)s", **added, **metadata, "managedFields": managed},
        **parts,
    }


def _owner(api_version: str, kind: str, name: str) -> list[Object]:
    owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": "%(owner_uid)s"}
    return [{**owner, "controller": True, "blockOwnerDeletion": True}]


def _condition(kind: str, **more: object) -> Object:
    return {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": _CREATED, **more}


def _probe(path: str) -> Object:
    target = {"path": path, "port": "http", "scheme": "HTTP"}
    return {"httpGet": target, "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


NAMESPACE: Final = _whole(
    "Namespace",
    "v1",
    {"all": "kubectl-create"},
    {"labels": {"kubernetes.io/metadata.name": "%(name)s"}},
    spec={"finalizers": ["kubernetes"]},
    status={"phase": "Active"},
)

NODE: Final = _whole(
    "Node",
    "v1",
    {"all": "kubelet", "status": "kubelet"},
    {
        "labels": {
            "beta.kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/instance-type": "m6i.4xlarge",
            "beta.kubernetes.io/os": "linux",
            "failure-domain.beta.kubernetes.io/region": "%(region)s",
            "failure-domain.beta.kubernetes.io/zone": "%(topology_zone)s",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": "%(name)s",
            "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": "m6i.4xlarge",
            "topology.kubernetes.io/region": "%(region)s",
            "topology.kubernetes.io/zone": "%(topology_zone)s",
        },
        "annotations": {
            "kubeadm.alpha.kubernetes.io/cri-socket": "unix:///run/containerd/containerd.sock",
            "node.alpha.kubernetes.io/ttl": "30",
            "volumes.kubernetes.io/controller-managed-attach-detach": "true",
        },
    },
    spec={"podCIDR": "%(pod_cidr)s", "podCIDRs": ["%(pod_cidr)s"], "providerID": "aws:///%(topology_zone)s/i-%(name)s"},
    status={
        "capacity": {"cpu": "16", "ephemeral-storage": "101430960Ki", "memory": "64989676Ki", "pods": "250"},
        "allocatable": {"cpu": "15890m", "ephemeral-storage": "93478772582", "memory": "62108140Ki", "pods": "250"},
        "conditions": [
            _condition(kind, reason=f"Kubelet{kind}", message=f"kubelet has no news of {kind}")
            for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
        ],
        "addresses": [
            {"type": "InternalIP", "address": "%(address)s"},
            {"type": "Hostname", "address": "%(name)s"},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "machineID": "%(uid)s",
            "systemUUID": "%(uid)s",
            "bootID": "%(uid)s",
            "kernelVersion": "6.8.0-1021-aws",
            "osImage": "Ubuntu 24.04.2 LTS",
            "containerRuntimeVersion": "containerd://2.1.3",
            "kubeletVersion": "v1.36.0",
            "operatingSystem": "linux",
            "architecture": "amd64",
        },
        "images": [
            {
                "names": [
                    f"registry.example.com/platform/image-{number}@sha256:{number:064x}",
                    f"registry.example.com/platform/image-{number}:v1.{number}.0",
                ],
                "sizeBytes": 40_000_000 + number,
            }
            for number in range(30)
        ],
    },
)

SERVICE: Final = _whole(
    "Service",
    "v1",
    {"all": "helm"},
    {
        "namespace": "%(namespace)s",
        "labels": {
            "app.kubernetes.io/instance": "%(name)s",
            "app.kubernetes.io/managed-by": "Helm",
            "app.kubernetes.io/name": "%(name)s",
            "app.kubernetes.io/version": "1.14.2",
            "helm.sh/chart": "backend-3.2.1",
        },
        "annotations": {"meta.helm.sh/release-name": "%(name)s", "%(annotation)s": "%(keys)s"},
    },
    spec={
        "ports": [
            {"name": "http", "protocol": "TCP", "port": 80, "targetPort": "http"},
            {"name": "metrics", "protocol": "TCP", "port": 9100, "targetPort": "metrics"},
        ],
        "selector": {"app.kubernetes.io/instance": "%(name)s", "app.kubernetes.io/name": "%(name)s"},
        "clusterIP": "%(cluster_ip)s",
        "clusterIPs": ["%(cluster_ip)s"],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    },
    status={"loadBalancer": {}},
)

SLICE: Final = _whole(
    "EndpointSlice",
    "discovery.k8s.io/v1",
    {"all": "kube-controller-manager"},
    {
        "namespace": "%(namespace)s",
        "generateName": "%(service)s-",
        "generation": 7,
        "labels": {
            "app.kubernetes.io/instance": "%(service)s",
            "app.kubernetes.io/name": "%(service)s",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            "kubernetes.io/service-name": "%(service)s",
            "%(headless_label)s": "",
        },
        "annotations": {"endpoints.kubernetes.io/last-change-trigger-time": _CREATED},
        "ownerReferences": _owner("v1", "Service", "%(service)s"),
    },
    addressType="IPv4",
    endpoints=["%(endpoints)s"],
    ports=[
        {"name": "http", "port": 8080, "protocol": "TCP"},
        {"name": "metrics", "port": 9100, "protocol": "TCP"},
    ],
)

ENDPOINT: Final[Object] = {
    "addresses": ["%(address)s"],
    "conditions": {"ready": True, "serving": True, "terminating": False},
    "targetRef": {
        "kind": "Pod",
        "namespace": "%(namespace)s",
        "name": "%(pod)s",
        "uid": "%(uid)s",
    },
    "nodeName": "%(node)s",
    "zone": "%(topology_zone)s",
}

POD: Final = _whole(
    "Pod",
    "v1",
    {"all": "kube-controller-manager", "status": "kubelet"},
    {
        "namespace": "%(namespace)s",
        "generateName": "%(backend)s-7d4b9c6f5d-",
        "labels": {
            "app.kubernetes.io/instance": "%(backend)s",
            "app.kubernetes.io/name": "%(backend)s",
            "pod-template-hash": "7d4b9c6f5d",
        },
        "annotations": {"checksum/config": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
        "ownerReferences": _owner("apps/v1", "ReplicaSet", "%(backend)s-7d4b9c6f5d"),
    },
    spec={
        "volumes": [
            {
                "name": "kube-api-access-x7k2p",
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                        {
                            "downwardAPI": {
                                "items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]
                            }
                        },
                    ],
                    "defaultMode": 420,
                },
            }
        ],
        "containers": [
            {
                "name": "main",
                "image": "registry.example.com/team/%(backend)s:1.14.2",
                "ports": [
                    {"name": "http", "containerPort": 8080, "protocol": "TCP"},
                    {"name": "metrics", "containerPort": 9100, "protocol": "TCP"},
                ],
                "env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "PORT", "value": "8080"}],
                "resources": {"limits": {"memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "512Mi"}},
                "volumeMounts": [
                    {
                        "name": "kube-api-access-x7k2p",
                        "readOnly": True,
                        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                    }
                ],
                "livenessProbe": _probe("/healthz"),
                "readinessProbe": _probe("/readyz"),
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "%(backend)s",
        "serviceAccount": "%(backend)s",
        "nodeName": "%(node)s",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for what in ("not-ready", "unreachable")
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    },
    status={
        "observedGeneration": 1,
        "phase": "Running",
        "conditions": [
            _condition(kind, observedGeneration=1)
            for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "hostIP": "%(host_address)s",
        "hostIPs": [{"ip": "%(host_address)s"}],
        "podIP": "%(address)s",
        "podIPs": [{"ip": "%(address)s"}],
        "startTime": _CREATED,
        "containerStatuses": [
            {
                "name": "main",
                "state": {"running": {"startedAt": _CREATED}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": "registry.example.com/team/%(backend)s:1.14.2",
                "imageID": "registry.example.com/team/%(backend)s@sha256:" + "5f" * 32,
                "containerID": "containerd://" + "3c" * 32,
                "started": True,
            }
        ],
        "qosClass": "Burstable",
    },
)
