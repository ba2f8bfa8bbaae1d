"""The `kubernetes` directive: what part of which cluster is served, and how."""

from dataclasses import dataclass, field
from enum import Enum

from topodns.cluster.selector import Selector
from topodns.dns.names import Name


class PodMode(Enum):
    """How `<dashed-ip>.<namespace>.pod.<origin>` is answered."""

    DISABLED = "disabled"
    INSECURE = "insecure"
    VERIFIED = "verified"


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """How the API server is reached. All empty: as a Pod is, by its service account."""

    endpoint: str = ""  # URL of the server, https:// or http://, without a slash at its end
    tls: tuple[str, str, str] | None = None  # files: client certificate, its key, CA; each "" where not given
    kubeconfig: str = ""  # file
    context: str = ""  # of the kubeconfig; "" is its current one
    place: str = field(default="", compare=False)  # FILE:LINE of the Corefile, for messages


@dataclass(frozen=True, slots=True)
class KubernetesSettings:
    origins: tuple[Name, ...]  # forward and reverse ones, in the order written; the block's where none is written
    manifests: tuple[str, ...] = ()  # files and directories, resolved against the Corefile's directory
    api: ApiSettings | None = None  # None: the manifests are the source
    namespaces: frozenset[str] = frozenset()  # exposed; empty means all
    namespace_labels: Selector | None = None
    labels: Selector | None = None  # of Services, EndpointSlices and Pods that are taken in at all
    pods: PodMode = PodMode.DISABLED
    endpoint_pod_names: bool = False
    ttl: int = 5  # seconds, 0..3600
    noendpoints: bool = False
    ignore_empty_service: bool = False
    fallthrough: tuple[Name, ...] = ()  # origins below which a would-be NXDOMAIN goes to the next step; root: all
    multicluster: tuple[Name, ...] = ()  # those of `origins` that serve ServiceImports
    zonal: bool = False
    startup_timeout: float = 5.0  # seconds
