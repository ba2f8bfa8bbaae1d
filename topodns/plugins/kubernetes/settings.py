"""The settings of a `kubernetes` directive."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from topodns.cluster.label_selector import Selector
from topodns.corefile.parser import Directive
from topodns.dns.name import Name
from topodns.kube.client.contract import ApiSettings


class PodMode(Enum):
    """The answers to `<dashed-ip>.<namespace>.pod.<origin>`: the option `pods`."""

    DISABLED = "disabled"  # NXDOMAIN
    INSECURE = "insecure"  # the address in the name, in an existing namespace
    VERIFIED = "verified"  # the same, if a Pod of the namespace has that address


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """The option `snapshot`."""

    path: str
    option: Directive = field(compare=False)  # its line of the Corefile, for errors
    interval: float = 30.0  # seconds between two writes of a state that changes
    max_age: float = 86400.0  # seconds; an older one is not used at the start


@dataclass(frozen=True, slots=True)
class KubernetesSettings:
    origins: tuple[Name, ...]  # forward and reverse ones, as written; without any, the server block's
    manifests: tuple[str, ...] = ()  # files and directories, resolved against the Corefile's directory
    api: ApiSettings | None = None  # None: the manifests are the source
    namespaces: frozenset[str] = frozenset()  # exposed; empty: all
    namespace_labels: Selector | None = None
    labels: Selector | None = None  # of the Services, EndpointSlices and Pods to use
    pods: PodMode = PodMode.DISABLED
    endpoint_pod_names: bool = False
    ttl: int = 5  # seconds, 0..3600
    noendpoints: bool = False
    ignore_empty_service: bool = False
    fallthrough: tuple[Name, ...] = ()  # origins below which NXDOMAIN falls through to the next plugin; root: all
    multicluster: tuple[Name, ...] = ()  # those of `origins` that serve ServiceImports
    cluster_id: str = ""  # of this cluster in its cluster set; "": by its ClusterProperty
    zonal: bool = False
    startup_timeout: float = 5.0  # seconds
    snapshot: SnapshotSettings | None = None
    places: Mapping[str, str] = field(default_factory=dict, compare=False)
    """FILE:LINE of `namespace_labels` and `labels`, and of each name of `namespaces` (`namespaces NAME`)."""
