"""The grammar of names below a forward origin: Kubernetes DNS schema 1.1.0 as CoreDNS reads it.

Pure syntax: knows labels, not what exists. Reverse names are `reverse_zone`'s.
"""

from enum import Enum
from typing import Final, NamedTuple

from topodns.dns.names import Name

SCHEMA_VERSION: Final = "1.1.0"

_SERVICE_LABELS: Final = 3  # <service>.<namespace>.svc
_ZONAL_ANCHOR: Final = "_zone"


class Fixed(Enum):
    """Names that exist under every origin, whatever the cluster holds."""

    APEX = "apex"
    NS_DNS = "ns.dns"  # the primary server that the SOA names
    DNS_VERSION = "dns-version"
    SVC = "svc"
    POD = "pod"


class NamespaceNode(NamedTuple):
    """`<namespace>.svc` or `<namespace>.pod`: holds no records, exists with its namespace."""

    namespace: str
    pods: bool


class ServiceName(NamedTuple):
    """A Service, or what stands left of it: an endpoint, a port with its protocol, an endpoint of one cluster.

    `port` and `protocol` are without their underscores; "" matches any.
    """

    namespace: str
    service: str
    endpoint: str = ""
    port: str = ""
    protocol: str = ""
    cluster: str = ""


class ZonalName(NamedTuple):
    """`<topology zone>.pin|prefer._zone.<service>.<namespace>.svc` (CoreDNS 1.14.7, option `zonal`)."""

    namespace: str
    service: str
    topology_zone: str  # may span labels, since a label value may hold dots; lower-case
    prefer: bool  # an empty topology zone falls back to all endpoints; otherwise it is NODATA


class PodName(NamedTuple):
    """`<dashed address>.<namespace>.pod`; CoreDNS ignores up to two labels left of it."""

    namespace: str
    label: str


SchemaName = Fixed | NamespaceNode | ServiceName | ZonalName | PodName

_FIXED: Final[dict[Name, Fixed]] = {
    (): Fixed.APEX,
    ("ns", "dns"): Fixed.NS_DNS,
    ("dns-version",): Fixed.DNS_VERSION,
    ("svc",): Fixed.SVC,
    ("pod",): Fixed.POD,
}


def parse(labels: Name, multicluster: bool = False, zonal: bool = False) -> SchemaName | None:
    """What these lower-case labels, leaf first and without the origin, stand for; None: no name of the schema.

    `multicluster`: under an origin of ServiceImports, where two plain labels left of a Service are an endpoint and its
    cluster (KEP-1645). `zonal`: whether zone-scoped names are served.
    """
    if len(labels) == _SERVICE_LABELS and labels[2] == "svc":
        return ServiceName(labels[1], labels[0])
    if labels in _FIXED:
        return _FIXED[labels]
    if labels[-1] == "svc":
        return _parse_service(labels, multicluster, zonal)
    return _parse_pod(labels) if labels[-1] == "pod" else None


def _parse_service(labels: Name, multicluster: bool, zonal: bool) -> SchemaName | None:
    namespace = labels[-2]
    match len(labels) - _SERVICE_LABELS:
        case -1:
            return NamespaceNode(namespace, pods=False)
        case 1:
            return ServiceName(namespace, labels[1], endpoint=labels[0])
        case 2:
            return _parse_port_or_cluster(labels, multicluster)
        case _:
            return _parse_zonal(labels) if zonal and not multicluster else None


def _parse_port_or_cluster(labels: Name, multicluster: bool) -> ServiceName:
    left, right, service, namespace, _ = labels
    if multicluster and not left.startswith("_") and not right.startswith("_"):
        return ServiceName(namespace, service, endpoint=left, cluster=right)
    return ServiceName(namespace, service, port=left.removeprefix("_"), protocol=right.removeprefix("_"))


def _parse_zonal(labels: Name) -> ZonalName | None:
    *topology_zone, directive, anchor, service, namespace, _ = labels
    if anchor != _ZONAL_ANCHOR or directive not in ("pin", "prefer"):
        return None
    return ZonalName(namespace, service, ".".join(topology_zone), prefer=directive == "prefer")


def _parse_pod(labels: Name) -> SchemaName | None:
    match len(labels):
        case 2:
            return NamespaceNode(labels[0], pods=True)
        case 3 | 4 | 5:
            return PodName(labels[-2], labels[-3])
        case _:
            return None
