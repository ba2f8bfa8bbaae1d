"""A lab's cluster in the words of the tests: objects made, changed, read, and namespaces to make them in."""

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

from tests.kubelab.api import Answer
from tests.kubelab.lab import Lab
from tests.support.kube.objects import Object
from tests.support.kube.waiting import eventually

_PATHS: Final[Mapping[str, tuple[str, str]]] = {
    "Namespace": ("/api/v1", "namespaces"),
    "Node": ("/api/v1", "nodes"),
    "Pod": ("/api/v1", "pods"),
    "Service": ("/api/v1", "services"),
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "ConfigMap": ("/api/v1", "configmaps"),
    "Event": ("/api/v1", "events"),
    "EndpointSlice": ("/apis/discovery.k8s.io/v1", "endpointslices"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets"),
    "DaemonSet": ("/apis/apps/v1", "daemonsets"),
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "NodeLocator": ("/apis/topodns.io/v1alpha1", "nodelocators"),
    "PodLocator": ("/apis/topodns.io/v1alpha1", "podlocators"),
    "Lease": ("/apis/coordination.k8s.io/v1", "leases"),
    "Role": ("/apis/rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "ClusterRole": ("/apis/rbac.authorization.k8s.io/v1", "clusterroles"),
    "ClusterRoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"),
}
_MERGE: Final = "application/merge-patch+json"  # RFC 7396
_TRIES: Final = 3
_END: Final = ":end:"
_ENDED: Final = f'"$@"; status=$?; echo; echo {_END}; exit $status'
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class PodView:
    """The fields of a pod that tests read."""

    name: str
    node: str
    ips: tuple[str, ...]
    ready: bool
    terminating: bool
    container: str  # containerd's id of its one container

    @property
    def ip(self) -> str:
        return self.ips[0]


def view(pod: Object) -> PodView:
    status = pod.get("status", {})
    conditions = {each["type"]: each["status"] for each in status.get("conditions", ())}
    containers = status.get("containerStatuses") or [{}]
    return PodView(
        name=pod["metadata"]["name"],
        node=pod["spec"].get("nodeName", ""),
        ips=tuple(each["ip"] for each in status.get("podIPs", ())),
        ready=conditions.get("Ready") == "True",
        terminating="deletionTimestamp" in pod["metadata"],
        container=containers[0].get("containerID", "").removeprefix("containerd://"),
    )


class Cluster:
    """Everything in the namespace "" is of the cluster."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.topology_zones = {node.name: node.topology_zone for node in lab.options.nodes}

    @property
    def nodes(self) -> list[str]:
        return list(self.topology_zones)

    def create(self, namespace: str, *objects: Object) -> None:
        for each in objects:
            _succeed(self.lab.api.call("POST", _path(each["kind"], namespace), each), each)

    def read(self, kind: str, namespace: str, name: str) -> Object | None:
        """None: there is none."""
        answer = self.lab.api.call("GET", _path(kind, namespace, name))
        if answer.status == 404:
            return None
        found: Object = _succeed(answer, (kind, namespace, name))
        return found

    def list(self, kind: str, namespace: str, selector: str = "") -> Iterable[Object]:
        path = f"{_path(kind, namespace)}?labelSelector={selector}"
        items: Iterable[Object] = _succeed(self.lab.api.call("GET", path), path)["items"]
        return items

    def patch(self, kind: str, namespace: str, name: str, change: Object) -> None:
        """RFC 7396: None removes."""
        _succeed(self.lab.api.call("PATCH", _path(kind, namespace, name), change, _MERGE), (kind, name, change))

    def delete(self, kind: str, namespace: str, name: str, grace: int | None = None) -> None:
        """Returns before it is gone; it need not be there."""
        body = {} if grace is None else {"gracePeriodSeconds": grace}
        answer = self.lab.api.call("DELETE", _path(kind, namespace, name), body)
        if answer.status != 404:
            _succeed(answer, (kind, name))

    def logs(self, namespace: str, pod: str) -> str:
        answer = self.lab.api.call("GET", f"{_path('Pod', namespace, pod)}/log")
        return str(_succeed(answer, pod))

    def http(self, namespace: str, pod: str, port: int, path: str) -> Answer:
        """The pod's response to a GET, through the API server."""
        return self.lab.api.call("GET", f"{_path('Pod', namespace, f'{pod}:{port}')}/proxy{path}")

    def kubectl(self, *words: str, objects: Iterable[Object] = ()) -> "subprocess.CompletedProcess[str]":
        """A run of kubectl as administrator, with these objects at its stdin."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        return subprocess.run(self.lab.kubectl(*words), input=text, capture_output=True, text=True, check=False)

    def apply(self, *objects: Object) -> None:
        run = self.kubectl("apply", "-f", "-", objects=objects)
        assert run.returncode == 0, run.stderr

    @contextmanager
    def namespace(self, name: str = "") -> Iterator["Place"]:
        """A namespace of its own, which is deleted in the end, without a wait until it is gone."""
        chosen = name or f"test-{next(_numbers)}"
        self.create("", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": chosen}})
        account = f"{_path('ServiceAccount', chosen)}/default"
        eventually(lambda: self.lab.api.call("GET", account).ok, f"the service account of {chosen}")
        try:
            yield Place(self, chosen)
        finally:
            self.delete("Namespace", "", chosen)


class Place:
    """One namespace."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster, self.name = cluster, name

    def create(self, *objects: Object) -> None:
        self.cluster.create(self.name, *objects)

    def read(self, kind: str, name: str) -> Object | None:
        return self.cluster.read(kind, self.name, name)

    def patch(self, kind: str, name: str, change: Object) -> None:
        self.cluster.patch(kind, self.name, name, change)

    def delete(self, kind: str, name: str, grace: int | None = None) -> None:
        self.cluster.delete(kind, self.name, name, grace)

    def scale(self, kind: str, name: str, replicas: int) -> None:
        self.patch(kind, name, {"spec": {"replicas": replicas}})

    def pods(self, app: str) -> list[PodView]:
        return [view(pod) for pod in self.cluster.list("Pod", self.name, f"app={app}")]

    def ready_pods(self, app: str) -> list[PodView]:
        return [pod for pod in self.pods(app) if pod.ready and not pod.terminating]

    def pods_once_ready(self, app: str, number: int) -> list[PodView]:
        """Wait for exactly so many ready ones, and none that is going."""

        def settled() -> bool:
            pods = self.pods(app)
            return len(pods) == number and all(pod.ready and not pod.terminating for pod in pods)

        eventually(settled, f"{number} ready pods of {app}")
        return self.pods(app)

    def run(self, pod: PodView, *command: str) -> str:
        """A command that changes nothing, in the pod's container, to its end; its output. Asks containerd, not the API,
        and once more where that has lost the output, as it does once in a while of a command that ends soon.
        """
        machine = self.cluster.lab.machine(pod.node)
        for _ in range(_TRIES):
            output = machine.run(*exec_command(pod, "sh", "-c", _ENDED, "sh", *command))
            if output.endswith(_END):
                return output.removesuffix(_END).strip()
        raise AssertionError(f"{pod.name}: no output of {command}")

    def fqdn(self, name: str) -> str:
        return f"{name}.{self.name}.svc.cluster.local"


def exec_command(pod: PodView, *command: str) -> list[str]:
    """For the pod's machine."""
    return ["ctr", "task", "exec", "--exec-id", f"test-{next(_numbers)}", pod.container, *command]


def kill_container(lab: Lab, pod: PodView) -> None:
    """By SIGKILL, as the kernel does for its memory; the kubelet starts it anew, also without the API server."""
    lab.machine(pod.node).run("ctr", "task", "kill", "--signal", "SIGKILL", pod.container)


def starts_on_node(lab: Lab, pod: PodView, container: str) -> list[Path]:
    """The log of each start of the pod's container that the kubelet keeps: a file on the node, for any API server."""
    return sorted((lab.machine(pod.node).dir / "var/log/pods").glob(f"*_{pod.name}_*/{container}/*.log"))


def _path(kind: str, namespace: str, name: str = "") -> str:
    version, plural = _PATHS[kind]
    parts = [version, "namespaces", namespace, plural] if namespace else [version, plural]
    return "/".join([*parts, name] if name else parts)


def _succeed(answer: Answer, what: object) -> Any:
    assert answer.ok, f"{answer.status} {answer.body}\nfor {what}"
    return answer.body
