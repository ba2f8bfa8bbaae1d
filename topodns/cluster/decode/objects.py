"""Decoders of Kubernetes API objects, from JSON bytes or parsed manifests, to the values of `cluster.model`.

Unused fields are never built (see `structs`), so an object costs microseconds and leaves no other data in memory.
Strings that repeat over objects (Nodes, namespaces, labels) are interned, since there may be 150,000 objects.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from sys import intern
from typing import Any, Final, Generic, NamedTuple

from topodns.cluster.annotations import (
    APPLY_TO,
    MAX_ENDPOINTS,
    MAX_LOAD,
    MIN_ENDPOINTS,
    OPENYURT,
    SUPEREDGE,
    TOPOLOGY_KEYS,
    TTL,
    bad_elsewhere,
    bad_on_namespace,
    bad_on_service,
    expected_text,
    meant_by,
    shown_value,
)
from topodns.cluster.decode.fields import (
    MAX_LISTED,
    interned,
    label_of,
    namespace_of,
    parse_address,
    parse_listed,
    parse_ports,
    parse_prefix,
    subdomain,
    version_of,
)
from topodns.cluster.decode.locators import LOCATOR_VERSIONS, decode_node_locator, decode_pod_locator
from topodns.cluster.decode.slices import decode_changed_slice, decode_endpoints, decode_slice
from topodns.cluster.decode.structs import (
    UNREADABLE,
    ApiClusterProperty,
    ApiEndpoints,
    ApiEndpointSlice,
    ApiIngress,
    ApiMetadata,
    ApiNode,
    ApiNodeAddress,
    ApiNodeLocator,
    ApiNodeSpec,
    ApiNodeStatus,
    ApiObject,
    ApiPod,
    ApiPodLocator,
    ApiPodSpec,
    ApiPodStatus,
    ApiPort,
    ApiService,
    ApiServiceImport,
    ApiServiceImportSpec,
    ApiServiceSpec,
    ApiStatefulSet,
    ApiStatefulSetSpec,
    ApiUnreadSlice,
    Json,
    Source,
    StructReader,
    read_identity,
)
from topodns.cluster.decode.unreadable_elements import LeftOutElements
from topodns.cluster.label_selector import Selector
from topodns.cluster.model import (
    MAX_KEYS_TEXT,
    OWN_CLUSTER,
    ClusterObject,
    ClusterProperty,
    Kind,
    MisannotatedPod,
    Namespace,
    Node,
    ObjectKey,
    Pod,
    Service,
    ServicePort,
    StatefulSet,
    T_co,
    TopologyInputs,
)

# Annotations in which CNIs write the Node's address on the pod network, the source of its packets to Pods.
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
_KEPT_KEYS: Final = 17  # of spec.topologyKeys; the API has 16 at most, and one more makes the list invalid still
_MAX_WORD: Final = 100  # characters of an annotation that is one word or number
_LONGEST_SHOWN: Final = 60  # characters of a value in JSON
# Each a copy for all Services; the API has no other lists.
_IP_FAMILIES: Final[Mapping[tuple[str, ...], tuple[str, ...]]] = {
    each: each for each in (("IPv4",), ("IPv6",), ("IPv4", "IPv6"), ("IPv6", "IPv4"))
}
_NODE_IPS: Final = frozenset(("InternalIP", "ExternalIP"))  # the other types of address are names


_UNREAD_SLICE: Final = StructReader(ApiUnreadSlice)


class DecodeError(ValueError):
    """An object of a supported kind that cannot be decoded.

    `name` is `namespace/name`, `namespace/` or "", as far as readable.
    """

    def __init__(self, kind: str, name: str, problem: str) -> None:
        unnamed = "" if name and not name.endswith("/") else "(unnamed)"
        super().__init__(f"{kind} {name}{unnamed}: {problem}")
        self.kind = kind
        self.name = name
        self.problem = problem


class Decoded(NamedTuple, Generic[T_co]):
    """A decoded API object: its metadata, and its values, such as those of `cluster.model`.

    `left_out` says in a clause which elements of its lists cannot be read and are left out; "" for none.
    """

    metadata: ApiMetadata
    objects: tuple[T_co, ...]
    left_out: str

    def summary(self, kind: str) -> str:
        """A log line about `left_out`, if that is not "", with the object's kind and name."""
        name = "/".join(filter(None, (self.metadata.namespace, self.metadata.name)))
        return f"{kind} {name}: {self.left_out}"


def decode_object(kind: str, source: Source, selector: Selector | None = None) -> tuple[ClusterObject, ...]:
    """The values of one API object: one, except that a v1 Endpoints gives a slice per subset and family.

    `source` is JSON as the API server sends it, or a parsed YAML or JSON document (timestamps left as text). The result
    is empty for an unsupported kind or apiVersion, an object whose labels `selector` does not match, and a Pod that has
    ended (Succeeded, Failed, Unknown) or has no address yet. Raises DecodeError.
    """
    decoded = decode_whole(kind, source, selector)
    return decoded.objects if decoded is not None else ()


def decode_whole(
    kind: str, source: Source, selector: Selector | None = None, pod_labels: Collection[str] = ()
) -> Decoded[ClusterObject] | None:
    """As `decode_object`, with the metadata; None for an unsupported kind or apiVersion. Raises DecodeError.

    A missing apiVersion is accepted: items of lists have none. `pod_labels`: the keys of the labels that Pods keep.
    """
    rule = RULES.get(kind)
    if rule is None:
        return None
    left_out = LeftOutElements()
    try:
        read = rule.reader.read_leaving_out(source, left_out)
        if read.api_version and read.api_version not in rule.api_versions:
            return None
        objects = tuple(rule.decode(read, left_out)) if _selected(read, selector) else ()
        if pod_labels and kind == "Pod":
            labels = _kept(read.metadata.labels, pod_labels)
            objects = tuple(replace(each, labels=labels) for each in objects if isinstance(each, Pod))
        if isinstance(source, Mapping):
            _leave_out_values(kind, read.metadata.annotations or {}, left_out)
        return Decoded(read.metadata, objects, str(left_out) if left_out.number else "")
    except (*UNREADABLE, ValueError) as error:
        api_version, name = read_identity(source)
        if api_version and api_version not in rule.api_versions:
            return None
        raise DecodeError(kind, name, str(error)) from error


Held = Callable[[Kind, ObjectKey], ClusterObject | None]
"""The last decoded object of this kind and key; None if there is none."""


def decode_again(
    held: Held, kind: Kind, source: Json, pod_labels: Collection[str] = ()
) -> Decoded[ClusterObject] | None:
    """As `decode_whole`. Endpoints that a held slice has, too, are the same objects, and not decoded again.

    An event of a watch has all endpoints of a slice, though one or two have changed, and a list all slices. So a change
    of one of 100 endpoints costs a quarter, here and where the two slices are compared.
    """
    if kind == "EndpointSlice":
        left_out = LeftOutElements()
        with suppress(*UNREADABLE, ValueError):  # `decode_whole` says what is wrong, or leaves out what it can
            read = _UNREAD_SLICE.read_json(source)
            if not read.api_version or read.api_version in RULES[kind].api_versions:
                key = ObjectKey(read.metadata.namespace or "", read.metadata.name)
                decoded = decode_changed_slice(read, held(kind, key), left_out)
                return Decoded(read.metadata, (decoded,), str(left_out) if left_out.number else "")
    return decode_whole(kind, source, pod_labels=pod_labels)


def _leave_out_values(kind: str, annotations: Mapping[str, Any], left_out: LeftOutElements) -> None:
    """An API server has texts alone, and refuses a manifest with other values, such as a number without quotes.

    Those of a Service that look like one of topodns are in its `TopologyInputs.bad`.
    """
    bad_on_it = kind in ("Service", "ServiceImport")
    for name, value in annotations.items():
        if not isinstance(value, str) and not (bad_on_it and meant_by(name) is not None):
            left_out.add(f"metadata.annotations.{name}", expected_text(shown_value(value, _LONGEST_SHOWN)))


def _selected(read: ApiObject, selector: Selector | None) -> bool:
    return selector is None or selector.matches(read.metadata.labels or {})


def _kept(labels: Mapping[str, str] | None, keys: Collection[str]) -> tuple[tuple[str, str], ...]:
    return tuple((intern(key), intern(value)) for key, value in sorted((labels or {}).items()) if key in keys)


def _decode_namespace(source: ApiObject, _left_out: LeftOutElements) -> Iterator[Namespace]:
    metadata, annotations = source.metadata, source.metadata.annotations or {}
    yield Namespace(
        name=intern(metadata.name),
        labels=interned(metadata.labels),
        topology_keys=_list_text(annotations.get(TOPOLOGY_KEYS)),
        bad=bad_on_namespace(annotations, metadata.labels or {}),
        version=version_of(metadata),
    )


def _decode_node(source: ApiNode, left_out: LeftOutElements) -> Iterator[Node]:
    spec, status = source.spec or ApiNodeSpec(), source.status or ApiNodeStatus()
    annotations = source.metadata.annotations or {}
    yield Node(
        name=intern(source.metadata.name),
        labels=interned(source.metadata.labels),
        addresses=_foreign_addresses(_node_addresses(status.addresses or ()), left_out),
        tunnel_addresses=_foreign_addresses(
            ((f"metadata.annotations.{name}", annotations.get(name)) for name in _TUNNEL_ANNOTATIONS), left_out
        ),
        pod_cidrs=parse_listed(parse_prefix, spec.pod_cidrs, spec.pod_cidr, left_out, "spec.podCIDRs"),
        created=source.metadata.creation_timestamp or "",
        ready=all(entry.status == "True" for entry in status.conditions or () if entry.type == "Ready"),
        bad=bad_elsewhere(annotations),
        version=version_of(source.metadata),
    )


def _node_addresses(entries: Sequence[ApiNodeAddress]) -> Iterator[tuple[str, str | None]]:
    for at, entry in enumerate(entries):
        if entry.type in _NODE_IPS:
            yield f"status.addresses[{at}]", entry.address


def _foreign_addresses(texts: Iterable[tuple[str, Any]], left_out: LeftOutElements) -> tuple[bytes, ...]:
    """The distinct addresses of (path, text) that a CNI, a cloud or a load balancer writes; empty texts are skipped.

    A `/LENGTH` after an address is cut off.
    """
    found: dict[bytes, None] = {}
    for place, text in texts:
        try:
            if text:
                found[parse_address(str(text).partition("/")[0])] = None
        except ValueError as error:
            left_out.add(place, error)
    return tuple(found)


def _decode_service(source: ApiService, left_out: LeftOutElements) -> Iterator[Service]:
    spec = source.spec or ApiServiceSpec()
    external = spec.type == "ExternalName"
    ingress = _ingress(source)
    ips = [ip for ip in spec.cluster_ips or () if ip]
    headless = not external and (ips[0] if ips else spec.cluster_ip) == "None"
    yield Service(
        namespace=namespace_of(source.metadata),
        name=label_of(source.metadata),
        cluster_ips=()
        if external or headless
        else parse_listed(parse_address, ips, spec.cluster_ip, left_out, "spec.clusterIPs"),
        headless=headless,
        external_name=(spec.external_name or "") if external else None,
        ports=_service_ports(spec.ports, left_out),
        topology=_topology_inputs(spec, source.metadata),
        labels=interned(source.metadata.labels) if headless else interned(None),
        ip_families=_ip_families(spec) if headless else (),
        external_ips=_foreign_addresses(islice(_external_addresses(spec, ingress), MAX_LISTED), left_out),
        external_hostnames=tuple(each.hostname for each in ingress if each.hostname and not each.ip)[:MAX_LISTED],
        version=version_of(source.metadata),
    )


def _ip_families(spec: ApiServiceSpec) -> tuple[str, ...]:
    """spec.ipFamilies, of which the controller makes a slice each; () of a Service without a selector.

    The API server gives such a headless Service both families even in a cluster of one, and its slices are made by
    hand.
    """
    return _IP_FAMILIES.get(tuple(spec.ip_families or ()), ()) if spec.selector else ()


def _ingress(source: ApiService) -> Sequence[ApiIngress]:
    """status.loadBalancer.ingress, () if absent."""
    balancer = source.status.load_balancer if source.status is not None else None
    return (balancer.ingress if balancer is not None else None) or ()


def _external_addresses(spec: ApiServiceSpec, ingress: Sequence[ApiIngress]) -> Iterator[tuple[str, str | None]]:
    for at, text in enumerate(spec.external_ips or ()):
        yield f"spec.externalIPs[{at}]", text
    for at, entry in enumerate(ingress):
        yield f"status.loadBalancer.ingress[{at}].ip", entry.ip


def _topology_inputs(spec: ApiServiceSpec, metadata: ApiMetadata) -> TopologyInputs:
    """The topology fields as written. An empty topologyKeys counts as absent: the API does not distinguish the two.

    Annotations, which may have 256 KiB each, are cut where they are too long to be valid, so as to be invalid still.
    """
    annotations, labels = metadata.annotations or {}, metadata.labels or {}
    return replace(
        _import_inputs(annotations),
        field=tuple(spec.topology_keys[:_KEPT_KEYS]) if spec.topology_keys else None,
        openyurt=_word(annotations.get(OPENYURT)),
        superedge=_list_text(annotations.get(SUPEREDGE)),
        traffic_distribution=spec.traffic_distribution,
        internal_traffic_policy=spec.internal_traffic_policy,
        bad=bad_on_service(annotations, labels) if annotations or labels else (),
    )


def _import_inputs(annotations: Mapping[str, Any]) -> TopologyInputs:
    """Those of a ServiceImport: topodns' own annotations, which a Service has as well."""
    return TopologyInputs(
        annotation=_list_text(annotations.get(TOPOLOGY_KEYS)),
        ttl=_word(annotations.get(TTL)),
        min_endpoints=_word(annotations.get(MIN_ENDPOINTS)),
        max_load=_word(annotations.get(MAX_LOAD)),
        max_endpoints=_word(annotations.get(MAX_ENDPOINTS)),
        apply_to=_word(annotations.get(APPLY_TO)),
        bad=bad_on_service(annotations) if annotations else (),
    )


def _list_text(value: object) -> str | None:
    return value[: MAX_KEYS_TEXT + 1] if isinstance(value, str) else None


def _word(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    return value if len(value) <= _MAX_WORD else f"{value[:_MAX_WORD]}..."


def _decode_service_import(source: ApiServiceImport, left_out: LeftOutElements) -> Iterator[Service]:
    spec = source.spec or ApiServiceImportSpec()
    yield Service(
        namespace=namespace_of(source.metadata),
        name=label_of(source.metadata),
        cluster_ips=parse_listed(parse_address, spec.ips, None, left_out, "spec.ips"),
        headless=spec.type == "Headless",
        ports=_service_ports(spec.ports, left_out),
        topology=_import_inputs(source.metadata.annotations or {}),
        imported=True,
        version=version_of(source.metadata),
    )


def _decode_cluster_property(source: ApiClusterProperty, _left_out: LeftOutElements) -> Iterator[ClusterProperty]:
    """No value for any other property than this cluster's id."""
    if source.metadata.name == OWN_CLUSTER:
        value = subdomain(source.spec.value if source.spec is not None else None)
        yield ClusterProperty(source.metadata.name, value, version_of(source.metadata))


def _decode_pod(source: ApiPod, left_out: LeftOutElements) -> Iterator[Pod]:
    """No value for a phase that CoreDNS's field selector excludes, and for a Pod without an address."""
    spec, status = source.spec or ApiPodSpec(), source.status or ApiPodStatus()
    if status.phase in ("Succeeded", "Failed", "Unknown"):
        return
    texts = [entry.ip for entry in status.pod_ips or () if entry.ip]
    if ips := parse_listed(parse_address, texts, status.pod_ip, left_out, "status.podIPs"):
        bad = bad_elsewhere(source.metadata.annotations) if source.metadata.annotations else ()
        yield (partial(MisannotatedPod, bad=bad) if bad else Pod)(
            namespace=namespace_of(source.metadata),
            name=source.metadata.name,
            ips=ips,
            node_name=intern(spec.node_name or ""),
            host_network=bool(spec.host_network),
            terminating=source.metadata.deletion_timestamp is not None,
            started=status.start_time or "",
            version=version_of(source.metadata),
        )


def _decode_stateful_set(source: ApiStatefulSet, _left_out: LeftOutElements) -> Iterator[StatefulSet]:
    spec = source.spec or ApiStatefulSetSpec()
    namespace, version = namespace_of(source.metadata), version_of(source.metadata)
    yield StatefulSet(namespace, source.metadata.name, spec.service_name or "", version)


def _service_ports(ports: Sequence[ApiPort] | None, left_out: LeftOutElements) -> tuple[ServicePort, ...]:
    return tuple(ServicePort(*port) for port in parse_ports(ports, "spec.ports", left_out))


class _Rule(NamedTuple):
    """The decoder of one kind: `decode` makes the values of a struct that `reader` has read, and says what it leaves
    out.
    """

    reader: StructReader[Any]
    decode: Callable[[Any, LeftOutElements], Iterable[ClusterObject]]
    api_versions: frozenset[str] = frozenset(("v1",))


RULES: Final[Mapping[str, _Rule]] = {
    "Namespace": _Rule(StructReader(ApiObject), _decode_namespace),
    "Node": _Rule(StructReader(ApiNode), _decode_node),
    "Service": _Rule(StructReader(ApiService), _decode_service),
    "Endpoints": _Rule(StructReader(ApiEndpoints), decode_endpoints),
    "Pod": _Rule(StructReader(ApiPod), _decode_pod),
    # Clusters with spec.topologyKeys (1.17-1.21) serve slices as v1beta1; the two versions differ in names only.
    "EndpointSlice": _Rule(
        StructReader(ApiEndpointSlice), decode_slice, frozenset(("discovery.k8s.io/v1", "discovery.k8s.io/v1beta1"))
    ),
    "ServiceImport": _Rule(
        StructReader(ApiServiceImport), _decode_service_import, frozenset(("multicluster.x-k8s.io/v1alpha1",))
    ),
    "ClusterProperty": _Rule(
        StructReader(ApiClusterProperty), _decode_cluster_property, frozenset(("about.k8s.io/v1alpha1",))
    ),
    "NodeLocator": _Rule(StructReader(ApiNodeLocator), decode_node_locator, LOCATOR_VERSIONS),
    "PodLocator": _Rule(StructReader(ApiPodLocator), decode_pod_locator, LOCATOR_VERSIONS),
    "StatefulSet": _Rule(StructReader(ApiStatefulSet), _decode_stateful_set, frozenset(("apps/v1",))),
}
