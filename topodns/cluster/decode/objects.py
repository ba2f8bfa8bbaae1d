"""Kubernetes API objects, as JSON bytes or as parsed manifests, to the values of `model`: what their fields mean.

Fields that nobody asked for are never built (see `api_objects`), so an object costs microseconds and keeps nothing.
Strings that repeat over objects (nodes, namespaces, labels) are interned, for there may be 150,000 of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from sys import intern
from typing import Any, Final, NamedTuple

from topodns.cluster.api_objects import (
    UNREADABLE,
    ApiEndpoints,
    ApiEndpointSlice,
    ApiIngress,
    ApiMetadata,
    ApiNode,
    ApiNodeSpec,
    ApiNodeStatus,
    ApiObject,
    ApiPod,
    ApiPodSpec,
    ApiPodStatus,
    ApiPort,
    ApiService,
    ApiServiceImport,
    ApiServiceImportSpec,
    ApiServiceSpec,
    ApiStatefulSet,
    ApiStatefulSetSpec,
    Reader,
    Source,
    read_identity,
)
from topodns.cluster.decode_fields import (
    interned,
    namespace_of,
    numbered_ports,
    parse_address,
    parse_each,
    parse_prefix,
    version_of,
)
from topodns.cluster.decode_slices import decode_endpoints, decode_slice
from topodns.cluster.model import (
    ClusterObject,
    Namespace,
    Node,
    Pod,
    Service,
    ServicePort,
    StatefulSet,
    TopologyInputs,
)
from topodns.cluster.selector import Selector

# Where CNIs write the host's own address on the pod network: it is the source of what the host sends to pods.
_TUNNEL_ANNOTATIONS: Final = (
    "flannel.alpha.coreos.com/public-ip",
    "flannel.alpha.coreos.com/public-ipv6",
    "projectcalico.org/IPv4IPIPTunnelAddr",
    "projectcalico.org/IPv4VXLANTunnelAddr",
    "projectcalico.org/IPv6VXLANTunnelAddr",
    "projectcalico.org/IPv4WireguardInterfaceAddr",
    "projectcalico.org/IPv6WireguardInterfaceAddr",
    "network.cilium.io/ipv4-cilium-host",
    "network.cilium.io/ipv6-cilium-host",
    "io.cilium.network.ipv4-cilium-host",
    "io.cilium.network.ipv6-cilium-host",
)
_NODE_IPS: Final = frozenset(("InternalIP", "ExternalIP"))  # the other types of address are names


class DecodeError(ValueError):
    """An object of our kinds that cannot be read. `name` is `namespace/name` as far as it is legible, else ""."""

    def __init__(self, kind: str, name: str, problem: str) -> None:
        super().__init__(f"{kind} {name or '(unnamed)'}: {problem}")
        self.kind = kind
        self.name = name
        self.problem = problem


class Decoded(NamedTuple):
    """What one API object says: its metadata, and the values it stands for."""

    metadata: ApiMetadata
    objects: tuple[ClusterObject, ...]


def decode_object(kind: str, source: Source, selector: Selector | None = None) -> tuple[ClusterObject, ...]:
    """The values that one API object stands for: one, except that a v1 Endpoints gives a slice per subset and family.

    `source` is JSON as the API server sends it, or the mapping that a YAML or JSON document was parsed to (timestamps
    left as text). Empty for what is not there: a kind or API group that is not ours, an object whose labels `selector`
    does not match, a Pod that is over (Succeeded, Failed, Unknown) or has no address yet. Raises DecodeError.
    """
    decoded = decode_whole(kind, source, selector)
    return decoded.objects if decoded is not None else ()


def decode_whole(kind: str, source: Source, selector: Selector | None = None) -> Decoded | None:
    """As `decode_object`, with the metadata; None for a kind or API group that is not ours. Raises DecodeError."""
    rule = _RULES.get(kind)
    if rule is None:
        return None
    try:
        read = rule.reader.read(source)
        if read.api_version and read.api_version not in rule.api_versions:
            return None
        return Decoded(read.metadata, tuple(rule.decode(read)) if _selected(read, selector) else ())
    except (*UNREADABLE, ValueError) as error:
        api_version, name = read_identity(source)
        if api_version and api_version not in rule.api_versions:
            return None
        raise DecodeError(kind, name, str(error)) from error


def _selected(read: ApiObject, selector: Selector | None) -> bool:
    return selector is None or selector.matches(read.metadata.labels or {})


def _decode_namespace(source: ApiObject) -> Iterator[Namespace]:
    yield Namespace(intern(source.metadata.name), interned(source.metadata.labels), version_of(source.metadata))


def _decode_node(source: ApiNode) -> Iterator[Node]:
    spec, status = source.spec or ApiNodeSpec(), source.status or ApiNodeStatus()
    annotations = source.metadata.annotations or {}
    cidrs = spec.pod_cidrs or ([spec.pod_cidr] if spec.pod_cidr else [])
    yield Node(
        name=intern(source.metadata.name),
        labels=interned(source.metadata.labels),
        addresses=_legible(entry.address for entry in status.addresses or () if entry.type in _NODE_IPS),
        tunnel_addresses=_legible(annotations.get(annotation) for annotation in _TUNNEL_ANNOTATIONS),
        pod_cidrs=parse_each(parse_prefix, cidrs, "spec.podCIDRs"),
        created=source.metadata.creation_timestamp or "",
        ready=all(entry.status == "True" for entry in status.conditions or () if entry.type == "Ready"),
        version=version_of(source.metadata),
    )


def _legible(texts: Iterable[str | None]) -> tuple[bytes, ...]:
    """The addresses among texts that the API server does not check: a CNI's slip must not cost the Node its labels."""
    found: dict[bytes, None] = {}
    for text in texts:
        try:
            found[parse_address((text or "").partition("/")[0])] = None
        except ValueError:
            continue
    return tuple(found)


def _decode_service(source: ApiService) -> Iterator[Service]:
    spec = source.spec or ApiServiceSpec()
    external = spec.type == "ExternalName"
    ingress = _ingress(source)
    ips = [] if external else [ip for ip in spec.cluster_ips or (spec.cluster_ip,) if ip]
    headless = ips[:1] == ["None"]
    yield Service(
        namespace=namespace_of(source.metadata),
        name=intern(source.metadata.name),
        cluster_ips=() if headless else parse_each(parse_address, ips, "spec.clusterIPs"),
        headless=headless,
        external_name=(spec.external_name or "") if external else None,
        ports=_service_ports(spec.ports),
        topology=_topology_inputs(spec, source.metadata.annotations or {}),
        external_ips=_legible((*(spec.external_ips or ()), *(each.ip for each in ingress))),
        external_hostnames=tuple(each.hostname for each in ingress if each.hostname and not each.ip),
        version=version_of(source.metadata),
    )


def _ingress(source: ApiService) -> Sequence[ApiIngress]:
    """Where the Service's load balancer takes traffic."""
    balancer = source.status.load_balancer if source.status is not None else None
    return (balancer.ingress if balancer is not None else None) or ()


def _topology_inputs(spec: ApiServiceSpec, annotations: Mapping[str, str]) -> TopologyInputs:
    """An empty topologyKeys says nothing, as in the API, where it cannot be told from an absent one."""
    return TopologyInputs(
        annotation=annotations.get("topodns.io/topology-keys"),
        field=tuple(spec.topology_keys) if spec.topology_keys else None,
        openyurt=annotations.get("openyurt.io/topologyKeys"),
        superedge=annotations.get("topologyKeys"),
        traffic_distribution=spec.traffic_distribution,
        internal_traffic_policy=spec.internal_traffic_policy,
        ttl=annotations.get("topodns.io/ttl"),
    )


def _decode_service_import(source: ApiServiceImport) -> Iterator[Service]:
    spec = source.spec or ApiServiceImportSpec()
    yield Service(
        namespace=namespace_of(source.metadata),
        name=intern(source.metadata.name),
        cluster_ips=parse_each(parse_address, spec.ips or (), "spec.ips"),
        headless=spec.type == "Headless",
        ports=_service_ports(spec.ports),
        imported=True,
        version=version_of(source.metadata),
    )


def _decode_pod(source: ApiPod) -> Iterator[Pod]:
    """Nothing for a phase that CoreDNS's field selector leaves out, and for a Pod whose address is not known yet."""
    spec, status = source.spec or ApiPodSpec(), source.status or ApiPodStatus()
    if status.phase in ("Succeeded", "Failed", "Unknown"):
        return
    texts = [entry.ip for entry in status.pod_ips or () if entry.ip] or ([status.pod_ip] if status.pod_ip else [])
    if texts:
        yield Pod(
            namespace=namespace_of(source.metadata),
            name=source.metadata.name,
            ips=parse_each(parse_address, texts, "status.podIPs"),
            node_name=intern(spec.node_name or ""),
            host_network=bool(spec.host_network),
            terminating=source.metadata.deletion_timestamp is not None,
            started=status.start_time or "",
            version=version_of(source.metadata),
        )


def _decode_stateful_set(source: ApiStatefulSet) -> Iterator[StatefulSet]:
    spec = source.spec or ApiStatefulSetSpec()
    namespace, version = namespace_of(source.metadata), version_of(source.metadata)
    yield StatefulSet(namespace, source.metadata.name, spec.service_name or "", version)


def _service_ports(ports: Sequence[ApiPort] | None) -> tuple[ServicePort, ...]:
    return tuple(ServicePort(*port) for port in numbered_ports(ports, "spec.ports"))


class _Rule(NamedTuple):
    """How one kind is read: `decode` yields the values that its `reader`'s struct stands for."""

    reader: Reader[Any]
    decode: Callable[[Any], Iterator[ClusterObject]]
    api_versions: frozenset[str] = frozenset(("v1",))


_RULES: Final[Mapping[str, _Rule]] = {
    "Namespace": _Rule(Reader(ApiObject), _decode_namespace),
    "Node": _Rule(Reader(ApiNode), _decode_node),
    "Service": _Rule(Reader(ApiService), _decode_service),
    "Endpoints": _Rule(Reader(ApiEndpoints), decode_endpoints),
    "Pod": _Rule(Reader(ApiPod), _decode_pod),
    # Clusters that have spec.topologyKeys (1.17-1.21) serve slices as v1beta1; the two differ in names only.
    "EndpointSlice": _Rule(
        Reader(ApiEndpointSlice), decode_slice, frozenset(("discovery.k8s.io/v1", "discovery.k8s.io/v1beta1"))
    ),
    "ServiceImport": _Rule(
        Reader(ApiServiceImport), _decode_service_import, frozenset(("multicluster.x-k8s.io/v1alpha1",))
    ),
    "StatefulSet": _Rule(Reader(ApiStatefulSet), _decode_stateful_set, frozenset(("apps/v1",))),
}
