"""Which resources of an API server are asked for, where, and with which selectors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from topodns.cluster.locate import Method
from topodns.cluster.model import Kind
from topodns.settings.kubernetes import KubernetesSettings, PodMode
from topodns.settings.topology import TopologySettings

_LIVE_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed,status.phase!=Unknown"  # as CoreDNS
_MULTICLUSTER: Final = "multicluster.x-k8s.io"


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind, as RBAC and the URL name it.

    `paths` are tried in order where the server does not know one. An `optional` resource may be denied: what needs it
    does without then. One that is `custom` may also be not installed, and is empty then; those of the core are always
    there, so that 404 for one of them comes from something else than an API server.
    """

    kind: Kind
    name: str  # plural, with its group: `endpointslices.discovery.k8s.io`
    paths: tuple[str, ...]
    selectors: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False
    custom: bool = False


def needed_kinds(kubernetes: KubernetesSettings, topology: TopologySettings | None) -> frozenset[Kind]:
    """The kinds that answers rest on."""
    return frozenset(resource.kind for resource in resources(kubernetes, topology))


def resources(kubernetes: KubernetesSettings, topology: TopologySettings | None) -> tuple[Resource, ...]:
    """What to watch, and nothing that no answer needs. StatefulSets are never asked for: they only give warnings."""
    labels = kubernetes.labels.text if kubernetes.labels is not None else ""
    labelled = {"labelSelector": labels} if labels else {}
    wanted = [
        Resource("Namespace", "namespaces", ("/api/v1/namespaces",)),
        Resource("Service", "services", ("/api/v1/services",), labelled),
        Resource(
            "EndpointSlice",
            "endpointslices.discovery.k8s.io",
            # The latter is all that clusters up to 1.20 have, which are those with spec.topologyKeys.
            ("/apis/discovery.k8s.io/v1/endpointslices", "/apis/discovery.k8s.io/v1beta1/endpointslices"),
            labelled,
        ),
    ]
    if topology is not None:
        wanted.append(Resource("Node", "nodes", ("/api/v1/nodes",), optional=True))
    if kubernetes.pods is PodMode.VERIFIED or (topology is not None and Method.PODS in topology.locate):
        selectors = {**labelled, "fieldSelector": _LIVE_PODS}
        wanted.append(Resource("Pod", "pods", ("/api/v1/pods",), selectors, optional=True))
    if kubernetes.multicluster:
        path = f"/apis/{_MULTICLUSTER}/v1alpha1/serviceimports"
        wanted.append(Resource("ServiceImport", f"serviceimports.{_MULTICLUSTER}", (path,), optional=True, custom=True))
    return tuple(wanted)
