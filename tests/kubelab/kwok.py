"""Nodes with no machine behind them: kwok, a service of the control plane, plays their kubelets. Their pods get
addresses and are Ready at once, but no process listens at these addresses. The nodes of machines it leaves alone.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.kubelab.cache import CACHE
from tests.kubelab.machine import IN, LabError, Machine
from tests.kubelab.programs import KWOK

if TYPE_CHECKING:
    from tests.kubelab.lab import Lab

SERVICE: Final = "kwok"
MARK: Final = {"kubelab/played-by": "kwok"}  # label of every such node
TAINT: Final = {"key": "kubelab/played-by", "value": "kwok", "effect": "NoSchedule"}

_SELECTOR: Final = "kubelab/played-by=kwok"
_NODES: Final = "/api/v1/nodes"
_LEASE: Final = 28  # seconds; kwok renews after a quarter of it, which must be well below NODE_GRACE
_AT_ONCE: Final = 8  # requests
_PATIENCE: Final = 180.0  # seconds until all are Ready
_READY: Final = '.status.conditions.[] | select( .type == "Ready" ) | .status'

_NODE_STATUS: Final = """
conditions:
- {type: Ready, status: "True", reason: Played, lastHeartbeatTime: {{ Now | Quote }}, \
lastTransitionTime: {{ Now | Quote }}}
"""
# Also for a pod that was Ready once, and is not since its node was silent for a while: that has an address already, and
# is refused a second one.
_POD_STATUS: Final = """
phase: Running
startTime: {{ Now | Quote }}
conditions:
{{ range $type := list "Initialized" "PodScheduled" "ContainersReady" "Ready" }}
- {type: {{ $type }}, status: "True", lastTransitionTime: {{ Now | Quote }}}
{{ end }}
{{ if not .status.podIP }}
{{ $ips := PodIPsWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace }}
podIP: {{ index $ips 0 | Quote }}
podIPs:
{{ range $ips }}
- ip: {{ . | Quote }}
{{ end }}
{{ end }}
"""


@dataclass(frozen=True, slots=True)
class FakeNode:
    """`index` counts from 0, up to 16,000. `labels` come beside kubernetes.io/hostname."""

    index: int
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"fake{self.index}"

    @property
    def ip(self) -> str:
        return f"10.202.{self.index // 250}.{1 + self.index % 250}"

    @property
    def pod_cidr(self) -> str:
        return f"10.{128 + self.index // 256}.{self.index % 256}.0/24"


def define_kwok(machine: Machine) -> None:
    stages = (
        _stage("node-ready", "Node", _NODE_STATUS, _not_in(_READY, "True")),
        _stage("pod-ready", "Pod", _POD_STATUS, _absent(".metadata.deletionTimestamp"), _not_in(_READY, "True")),
        _stage("pod-gone", "Pod", None, {"key": ".metadata.deletionTimestamp", "operator": "Exists"}),
    )
    machine.write("kwok.yaml", "\n---\n".join(map(json.dumps, stages)))
    command = [
        "kwok",
        f"--config={IN}/kwok.yaml",
        f"--kubeconfig={IN}/kwok.kubeconfig",
        f"--manage-nodes-with-label-selector={_SELECTOR}",
        f"--node-lease-duration-seconds={_LEASE}",
        "--v=warn",
    ]
    machine.define(SERVICE, command)


def _stage(name: str, kind: str, status: str | None, *conditions: Mapping[str, Any]) -> dict[str, Any]:
    """The new status of an object that meets the conditions; with None it is deleted."""
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": conditions},
            "next": {"delete": True} if status is None else {"statusTemplate": status},
        },
    }


def _not_in(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "NotIn", "values": values}


def _absent(key: str) -> dict[str, Any]:
    return {"key": key, "operator": "DoesNotExist"}


def _node_object(node: FakeNode) -> dict[str, Any]:
    """Only pods that tolerate it are put there, so that no DaemonSet or Deployment goes astray."""
    room = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    addresses = [{"type": "InternalIP", "address": node.ip}, {"type": "Hostname", "address": node.name}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": {"kubernetes.io/hostname": node.name, **MARK, **node.labels}},
        "spec": {"podCIDR": node.pod_cidr, "podCIDRs": [node.pod_cidr], "taints": [TAINT]},
        "status": {"addresses": addresses, "capacity": room, "allocatable": room},
    }


def add_fake_nodes(lab: "Lab", nodes: Sequence[FakeNode]) -> None:
    """Returns when they are Ready: a pod that is put on a node before kwok has taken it over may stay Pending for good.
    Raises LabError.
    """
    if KWOK.missing:
        raise LabError(f"{CACHE} lacks kwok: run kubelab prepare")
    if not _runs(lab):
        lab.control.start(SERVICE)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(lambda node: lab.api.call("POST", _NODES, _node_object(node)), nodes))
    for answer in answers:
        if not answer.ok:
            raise LabError(f"no fake node: {answer.status} {answer.body}")
    deadline = time.monotonic() + _PATIENCE
    while not {node.name for node in nodes} <= {name for name, ready in lab.ready().items() if ready}:
        if time.monotonic() > deadline:
            raise LabError(f"fake nodes are not Ready after {_PATIENCE:g} s: {lab.control.dir}/log/{SERVICE}.log")
        time.sleep(0.5)


def remove_fake_nodes(lab: "Lab") -> None:
    """All of them, and kwok; safe to repeat. Pods still there are left to Kubernetes, which takes about a minute."""
    answer = lab.api.call("DELETE", f"{_NODES}?labelSelector={_SELECTOR}")
    if _runs(lab):
        lab.control.stop(SERVICE)
    if not answer.ok:
        raise LabError(f"fake nodes are left: {answer.status} {answer.body}")


@contextmanager
def fake_nodes(lab: "Lab", nodes: Sequence[FakeNode]) -> Iterator[None]:
    """They are there and Ready; in the end they are not."""
    try:
        add_fake_nodes(lab, nodes)
        yield
    finally:
        remove_fake_nodes(lab)


def _runs(lab: "Lab") -> bool:
    return (lab.control.dir / "pids" / SERVICE).exists()
