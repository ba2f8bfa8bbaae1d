"""API objects as the API takes them, with readable arguments."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

Object = dict[str, Any]

TOPOLOGY_KEYS: Final = "topodns.io/topology-keys"
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

PAUSE_IMAGE: Final = "localhost/pause:1"
PYTHON_IMAGE: Final = "localhost/python:3.11"

# Ready while /tmp/ready is there; ends at once at SIGTERM, or never with `DEAF`.
_SWITCHED: Final = "touch /tmp/ready; exec sleep 1000000"
_DEAF: Final = "touch /tmp/ready; trap : TERM; while :; do sleep 1 & wait; done"


def metadata(name: str, labels: Mapping[str, str] | None = None, keys: str | None = None) -> Object:
    """`keys` is the annotation with the topology keys."""
    annotations = {} if keys is None else {TOPOLOGY_KEYS: keys}
    return {"name": name, "labels": dict(labels or {}), "annotations": annotations}


def headless(name: str, keys: str | None = None, app: str | None = None, port: int = 80, **spec: Any) -> Object:
    """A headless Service with the port `http`, of the pods with label `app` (default: its name; "": no selector)."""
    chosen = name if app is None else app
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(name, keys=keys),
        "spec": {"clusterIP": "None", "ports": [{"name": "http", "port": port}]}
        | ({"selector": {"app": chosen}} if chosen else {})
        | spec,
    }


def pause_container() -> Object:
    return {"name": "main", "image": PAUSE_IMAGE}


def switched_container(deaf: bool = False) -> Object:
    """Its pod is ready while /tmp/ready is there; a deaf one does not end at SIGTERM."""
    return {
        "name": "main",
        "image": PYTHON_IMAGE,
        "command": ["sh", "-c", _DEAF if deaf else _SWITCHED],
        "readinessProbe": {"exec": {"command": ["test", "-f", "/tmp/ready"]}, "periodSeconds": 1}
        | {"failureThreshold": 1},
    }


def sleeping_container(image: str = PYTHON_IMAGE) -> Object:
    """Python and busybox, and what else the image has, to run commands in."""
    return {"name": "main", "image": image, "command": ["sleep", "1000000"]}


def pod_spec(container: Object, grace: int = 1, **spec: Any) -> Object:
    """No test waits for a pod to end, and none speaks to the API from a pod unless it says so."""
    own = {"containers": [container], "terminationGracePeriodSeconds": grace, "automountServiceAccountToken": False}
    return own | spec


def pod(name: str, app: str, container: Object, node: str = "", grace: int = 1, **spec: Any) -> Object:
    """`node`: put there without asking the scheduler."""
    placed = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, {"app": app}),
        "spec": pod_spec(container, grace, **placed, **spec),
    }


def spread(app: str, key: str = HOSTNAME) -> Object:
    """Pod spec: at most one more of these pods in one place than in another, of the places that take any."""
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "nodeTaintsPolicy": "Honor"}
    return {"topologySpreadConstraints": [constraint | {"labelSelector": {"matchLabels": {"app": app}}}]}


def workload(kind: str, name: str, spec: Object, pods: Object) -> Object:
    """A Deployment, StatefulSet or DaemonSet of pods labelled `app: NAME`."""
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": metadata(name, {"app": name}),
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pods},
        }
        | spec,
    }


def manual_slice(
    service: str, name: str, endpoints: Sequence[tuple[str, str]], family: str = "IPv4", **conditions: bool
) -> Object:
    """An EndpointSlice as an administrator writes it: (address, node) pairs, no node where that is ""."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata(name, {"kubernetes.io/service-name": service}),
        "addressType": family,
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
        "endpoints": [
            {"addresses": [address], "conditions": conditions} | ({"nodeName": node} if node else {})
            for address, node in endpoints
        ],
    }
