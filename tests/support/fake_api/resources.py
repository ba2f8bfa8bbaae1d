"""Resources of the fake API server by their paths, as a Kubernetes API server lays them out."""

from dataclasses import dataclass
from typing import Any, Final

Object = dict[str, Any]
"""An API object as JSON."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One collection. `custom` is one of a CustomResourceDefinition: its lists are written differently."""

    name: str  # plural, as in paths
    kind: str
    api_version: str
    custom: bool = False

    @property
    def group(self) -> str:
        """The API group; "" is the core one."""
        group, slash, _ = self.api_version.partition("/")
        return group if slash else ""


RESOURCES: Final = {
    resource.name: resource
    for resource in (
        Resource("namespaces", "Namespace", "v1"),
        Resource("nodes", "Node", "v1"),
        Resource("services", "Service", "v1"),
        Resource("pods", "Pod", "v1"),
        Resource("events", "Event", "v1"),
        Resource("endpointslices", "EndpointSlice", "discovery.k8s.io/v1"),
        Resource("statefulsets", "StatefulSet", "apps/v1"),
        Resource("leases", "Lease", "coordination.k8s.io/v1"),
        Resource("nodelocators", "NodeLocator", "topodns.io/v1alpha1", custom=True),
        Resource("podlocators", "PodLocator", "topodns.io/v1alpha1", custom=True),
        Resource("serviceimports", "ServiceImport", "multicluster.x-k8s.io/v1alpha1", custom=True),
        Resource("clusterproperties", "ClusterProperty", "about.k8s.io/v1alpha1", custom=True),
    )
}
_NAME_OF_KIND: Final = {resource.kind: resource.name for resource in RESOURCES.values()}


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a path: a collection (of one namespace or of all), or with a `name` one object."""

    resource: Resource
    namespace: str = ""
    name: str = ""


def group_versions(group: str) -> tuple[str, ...]:
    """The versions of an API group, () where there is none."""
    return tuple({each.api_version.partition("/")[2] for each in RESOURCES.values() if group and each.group == group})


def resource_of(value: Object) -> str:
    """The name of the resource that an object belongs to."""
    return _NAME_OF_KIND[value["kind"]]


def find_target(path: str) -> Target | None:
    """The target of `/api/v1/...` or `/apis/GROUP/VERSION/...`; None for a path that nothing is at."""
    root, *parts = path.strip("/").split("/")
    width = {"api": 1, "apis": 2}.get(root, 0)
    api_version, rest = "/".join(parts[:width]), parts[width:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    if not width or not 1 <= len(rest) <= 2:
        return None
    resource = RESOURCES.get(rest[0])
    if resource is None or resource.api_version != api_version:
        return None
    return Target(resource, namespace, rest[1] if len(rest) == 2 else "")
