"""The kinds of objects that a cluster needs watched, by its directives."""

from typing import Final

from topodns.cluster.model import LOCATOR_GROUP, LOCATOR_VERSION, OWN_CLUSTER, Kind
from topodns.kube.informer.resources import Resource
from topodns.plugins.kubernetes.settings import KubernetesSettings, PodMode
from topodns.plugins.topology.settings import TopologySettings

_LIVE_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed,status.phase!=Unknown"  # as CoreDNS


_MULTICLUSTER: Final = "multicluster.x-k8s.io"
_CLUSTER_PROPERTY: Final = Resource(
    "ClusterProperty",
    "clusterproperties.about.k8s.io",
    ("/apis/about.k8s.io/v1alpha1/clusterproperties",),
    {"fieldSelector": f"metadata.name={OWN_CLUSTER}"},
    optional=True,
    custom=True,
)


def _locator(kind: Kind, plural: str) -> Resource:
    paths = (f"/apis/{LOCATOR_GROUP}/{LOCATOR_VERSION}/{plural}",)
    return Resource(kind, f"{plural}.{LOCATOR_GROUP}", paths, optional=True, custom=True)


_LOCATORS: Final = (_locator("NodeLocator", "nodelocators"), _locator("PodLocator", "podlocators"))


def needed_kinds(
    kubernetes: KubernetesSettings, topology: TopologySettings | None, client_pods: bool = False
) -> frozenset[Kind]:
    """The kinds that answers depend on."""
    return frozenset(resource.kind for resource in resources(kubernetes, topology, client_pods))


def resources(
    kubernetes: KubernetesSettings, topology: TopologySettings | None, client_pods: bool = False
) -> tuple[Resource, ...]:
    """The resources that answers need, and no others. StatefulSets, needed only for warnings, are not watched.

    `client_pods`: whether metadata of clients' Pods is read.
    """
    labels = kubernetes.labels.text if kubernetes.labels is not None else ""
    labelled = {"labelSelector": labels} if labels else {}
    wanted = [
        Resource("Namespace", "namespaces", ("/api/v1/namespaces",)),
        Resource("Service", "services", ("/api/v1/services",), labelled),
        Resource(
            "EndpointSlice",
            "endpointslices.discovery.k8s.io",
            # v1beta1 is all that clusters up to 1.20 have, which are those with spec.topologyKeys.
            ("/apis/discovery.k8s.io/v1/endpointslices", "/apis/discovery.k8s.io/v1beta1/endpointslices"),
            labelled,
        ),
    ]
    placing = topology.placing_kinds if topology is not None else frozenset[Kind]()
    if "Node" in placing:
        wanted.append(Resource("Node", "nodes", ("/api/v1/nodes",), optional=True))
    wanted += [resource for resource in _LOCATORS if resource.kind in placing]
    if client_pods or kubernetes.pods is PodMode.VERIFIED or "Pod" in placing:
        selectors = {**labelled, "fieldSelector": _LIVE_PODS}
        wanted.append(Resource("Pod", "pods", ("/api/v1/pods",), selectors, optional=True))
    if kubernetes.multicluster:
        path = f"/apis/{_MULTICLUSTER}/v1alpha1/serviceimports"
        wanted.append(Resource("ServiceImport", f"serviceimports.{_MULTICLUSTER}", (path,), optional=True, custom=True))
        if topology is not None and not kubernetes.cluster_id:
            wanted.append(_CLUSTER_PROPERTY)
    return tuple(wanted)
