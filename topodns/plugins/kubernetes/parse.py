"""The grammar of names below a forward origin: Kubernetes DNS schema 1.1.0 as CoreDNS reads it.

Pure syntax, without cluster state. Reverse names are in `reverse`.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Final, NamedTuple, TypeVar

from topodns.cluster.model import EndpointPort, ServicePort
from topodns.dns.name import Name

SCHEMA_VERSION: Final = "1.1.0"

SERVICE_LABELS: Final = 3  # <service>.<namespace>.svc
_ZONAL_ANCHOR: Final = "_zone"
_ZONAL_DIRECTIVES: Final = frozenset({"pin", "prefer"})
_ABOVE_ZONES: Final = frozenset({(_ZONAL_ANCHOR,), *((each, _ZONAL_ANCHOR) for each in _ZONAL_DIRECTIVES)})


_Port = TypeVar("_Port", ServicePort, EndpointPort)


class Fixed(Enum):
    """Names that exist under every origin, in any cluster."""

    APEX = "apex"
    DNS = "dns"  # an empty non-terminal, above ns.dns
    NS_DNS = "ns.dns"  # the primary server in the SOA
    DNS_VERSION = "dns-version"
    SVC = "svc"
    POD = "pod"


class NamespaceNode(NamedTuple):
    """`<namespace>.svc` or `<namespace>.pod`: holds no records, exists with its namespace."""

    namespace: str
    pods: bool


class ServiceName(NamedTuple):
    """A Service, or a name below it: an endpoint, a port with its protocol, an endpoint of one cluster.

    `port` and `protocol` are without their underscores; "" matches any. A `cluster` of several labels has dots.
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
    prefer: bool  # without endpoints in the topology zone: True is all endpoints, False is NODATA


class PodName(NamedTuple):
    """`<dashed address>.<namespace>.pod`; up to two labels in front of it are ignored, as in CoreDNS."""

    namespace: str
    label: str


SchemaName = Fixed | NamespaceNode | ServiceName | ZonalName | PodName

_FIXED: Final[dict[Name, Fixed]] = {
    (): Fixed.APEX,
    ("dns",): Fixed.DNS,
    ("ns", "dns"): Fixed.NS_DNS,
    ("dns-version",): Fixed.DNS_VERSION,
    ("svc",): Fixed.SVC,
    ("pod",): Fixed.POD,
}


def parse(labels: Name, multicluster: bool = False, zonal: bool = False) -> SchemaName | None:
    """The name that these lower-case labels, leaf first and without the origin, are; None: not a name of the schema.

    `multicluster`: under an origin of ServiceImports, where two or more plain labels in front of a Service are an
    endpoint and its cluster (KEP-1645). `zonal`: whether zone-scoped names are served.
    """
    if len(labels) == SERVICE_LABELS and labels[2] == "svc":
        return ServiceName(labels[1], labels[0])
    if labels in _FIXED:
        return _FIXED[labels]
    if labels[-1] == "svc":
        return _parse_service(labels, multicluster, zonal)
    return _parse_pod(labels) if labels[-1] == "pod" else None


def is_above_zones(labels: Name) -> bool:
    """Whether the labels of a ServiceName are `_zone` or `pin|prefer._zone` in front of the Service.

    By labels, as `parse` takes them: a ServiceName lacks the underscores, and `pin.zone` has no names below it.
    """
    return labels[:-SERVICE_LABELS] in _ABOVE_ZONES


def _parse_service(labels: Name, multicluster: bool, zonal: bool) -> SchemaName | None:
    namespace = labels[-2]
    match len(labels) - SERVICE_LABELS:
        case -1:
            return NamespaceNode(namespace, pods=False)
        case 1:
            return ServiceName(namespace, labels[1], endpoint=labels[0])
        case 2 if not multicluster or labels[0].startswith("_") or labels[1].startswith("_"):
            port, protocol = (label.removeprefix("_") for label in labels[:2])
            return ServiceName(namespace, labels[2], port=port, protocol=protocol)
        case _ if multicluster:
            return _parse_cluster(labels)
        case _:
            return _parse_zonal(labels) if zonal else None


def _parse_cluster(labels: Name) -> ServiceName | None:
    """An endpoint of one cluster, whose id is a subdomain (KEP-2149); a dot within a label is in no id."""
    endpoint, *cluster, service, namespace, _ = labels
    if any("." in label for label in cluster):
        return None
    return ServiceName(namespace, service, endpoint=endpoint, cluster=".".join(cluster))


def _parse_zonal(labels: Name) -> ZonalName | None:
    *topology_zone, directive, anchor, service, namespace, _ = labels
    if anchor != _ZONAL_ANCHOR or directive not in _ZONAL_DIRECTIVES:
        return None
    text = ".".join(label.replace(".", "\\.") for label in topology_zone)  # a dot within a label is in no zone
    return ZonalName(namespace, service, text, prefer=directive == "prefer")


def _parse_pod(labels: Name) -> SchemaName | None:
    match len(labels):
        case 2:
            return NamespaceNode(labels[0], pods=True)
        case 3 | 4 | 5:
            return PodName(labels[-2], labels[-3])
        case _:
            return None


def matching(ports: Iterable[_Port], name: ServiceName) -> list[_Port]:
    """The ports that the name selects; case is ignored, because the name is lower-case."""
    return [
        port
        for port in ports
        if (not name.port or port.name.lower() == name.port)
        and (not name.protocol or port.protocol.lower() == name.protocol)
    ]
