"""The Kubernetes objects of a cluster as small frozen values, and the changes to them. No DNS.

Addresses are packed bytes (4 or 16 octets), names are the API's own strings. A missing `ready` condition is True
(discovery.k8s.io/v1). Duplicate endpoints are still there: `backends.Backends` removes them.

`version` is the resourceVersion if that is a decimal number, else 0. It orders the versions of one object (KEP-5504)
and is not part of its equality.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import Final, Generic, Literal, NamedTuple, TypeVar

from topodns.cluster.annotations import SUPEREDGE, TOPOLOGY_KEYS, BadAnnotation

T_co = TypeVar("T_co", covariant=True)

HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
REGION_LABEL: Final = "topology.kubernetes.io/region"
CLUSTER_KEY: Final = "cluster"  # as a topology key of a ServiceImport: see `cluster.cluster_set`
ANY_KEY: Final = "*"  # as a topology key: all endpoints, wherever the client is; only the last key
OTHER: Final = "!"  # in front of a topology key: endpoints on Nodes with another value than the client's Node

Kind = Literal[
    "Namespace",
    "Node",
    "Service",
    "ServiceImport",
    "EndpointSlice",
    "Pod",
    "NodeLocator",
    "PodLocator",
    "StatefulSet",
    "ClusterProperty",
]


class ObjectKey(NamedTuple):
    """Namespace and name of an object, unique within its kind. `namespace` is "" for cluster-scoped kinds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


Placement = tuple[bytes, str]
"""(address, Node name) of a Pod."""


@dataclass(frozen=True, slots=True)
class Namespace:
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    topology_keys: str | None = None  # annotation topodns.io/topology-keys, cut as in TopologyInputs
    bad: tuple[BadAnnotation, ...] = ()  # without effect there; of a Node and an EndpointSlice likewise
    version: int = field(default=0, compare=False)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey("", self.name)


@dataclass(frozen=True, slots=True)
class Node:
    """The fields of a Node that locate clients and endpoints."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    addresses: tuple[bytes, ...] = ()  # every IP of status.addresses, both families
    tunnel_addresses: tuple[bytes, ...] = ()  # the CNI's, from annotations of flannel, Calico, Cilium
    pod_cidrs: tuple[tuple[bytes, int], ...] = ()  # (packed network address, prefix length)
    created: str = ""  # creationTimestamp, RFC 3339 in UTC, so that text order is time order
    ready: bool = True  # the Ready condition; True where it is absent
    bad: tuple[BadAnnotation, ...] = ()
    version: int = field(default=0, compare=False)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey("", self.name)


@dataclass(frozen=True, slots=True)
class ServicePort:
    name: str  # "" when unnamed
    protocol: str  # as in the API: TCP, UDP, SCTP
    number: int | None  # None only in manifests: the API server refuses it


SWITCHED_OFF: Final = "none"  # in place of a list in an annotation of topodns
MAX_KEYS_TEXT: Final = 8192
"""Characters of a list of topology keys in an annotation, which may have 256 KiB; 16 of the longest need 5,138."""


@dataclass(frozen=True, slots=True)
class TopologyInputs:
    """The topology fields and annotations of a Service, as written; None if absent. `topology.keys` parses them.

    Of a longer list than MAX_KEYS_TEXT these are its first characters, one more than that.
    """

    annotation: str | None = None  # topodns.io/topology-keys
    field: tuple[str, ...] | None = None  # spec.topologyKeys, Kubernetes 1.17-1.21
    openyurt: str | None = None  # annotation openyurt.io/topologyKeys
    superedge: str | None = None  # annotation topologyKeys
    traffic_distribution: str | None = None
    internal_traffic_policy: str | None = None
    ttl: str | None = None  # annotation topodns.io/ttl
    min_endpoints: str | None = None  # annotation topodns.io/min-endpoints; the next three likewise
    max_load: str | None = None
    max_endpoints: str | None = None
    apply_to: str | None = None
    bad: tuple[BadAnnotation, ...] = ()  # annotations without effect


@dataclass(frozen=True, slots=True)
class Service:
    namespace: str
    name: str
    cluster_ips: tuple[bytes, ...] = ()  # empty for headless and ExternalName
    headless: bool = False  # spec.clusterIP is None
    external_name: str | None = None  # of type ExternalName only; as written
    ports: tuple[ServicePort, ...] = ()
    topology: TopologyInputs = TopologyInputs()
    labels: Mapping[str, str] = field(default_factory=dict)  # of headless Services only, for `default` of `topology`
    ip_families: tuple[str, ...] = ()  # spec.ipFamilies, of headless Services with a selector only: each has a slice
    imported: bool = False  # a ServiceImport (KEP-1645): spec.ips are cluster_ips, type Headless is headless
    external_ips: tuple[bytes, ...] = ()  # spec.externalIPs, then those of status.loadBalancer
    external_hostnames: tuple[str, ...] = ()  # of load balancers without an address; as written
    left_out: int = 0  # octets of the object whose placeholder this is (`cluster.namespace_budget`); 0: it is none
    version: int = field(default=0, compare=False)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


class KeySource(Enum):
    """Sources of topology keys, in the spelling of the Corefile's option `keys`."""

    ANNOTATION = "annotation"
    FIELD = "field"
    OPENYURT = "openyurt"
    TRAFFIC_DISTRIBUTION = "traffic-distribution"
    HINTS = "hints"
    INTERNAL_TRAFFIC_POLICY = "internal-traffic-policy"
    SUPEREDGE = "superedge"
    NAMESPACE = "namespace"  # the annotation of the Service's Namespace; this one and the next two are not in `keys`
    DEFAULT = "default"  # a line of the Corefile
    NEAR = "_near"  # of no Service: the keys of the view `_near` where a Service has none

    @property
    def written(self) -> str:
        """The place of a key list that may be invalid, with its name; that of a Service's own."""
        return _WRITTEN.get(self, f"`{self.value}`")


_WRITTEN: Final[Mapping[KeySource, str]] = {
    KeySource.ANNOTATION: f"annotation {TOPOLOGY_KEYS!r}",
    KeySource.FIELD: "spec.topologyKeys",
    KeySource.SUPEREDGE: f"annotation {SUPEREDGE!r}",
}


def label_name(key: str) -> str:
    """The name of the label that a topology key other than `*` compares."""
    return key.removeprefix(OTHER)


class MaxLoad(NamedTuple):
    """The load of a topology domain at most: see `topology.guards`."""

    factor: Fraction  # of its fair share, 1..100
    service: ObjectKey  # it begins the hash that orders the domain's Nodes


@dataclass(frozen=True, slots=True)
class Policy:
    """Valid topology keys, in order of preference, `*` only last. Empty `keys` with source HINTS: follow the hints.

    A key is the name of a label of Nodes, or one with OTHER in front (anti-affinity).
    """

    keys: tuple[str, ...]
    source: KeySource
    keys_if_unlabelled: tuple[str, ...] | None = None  # OpenYurt: replace `keys` if the client's Node lacks keys[0]
    ttl: int | None = None  # seconds, 1..300, from the annotation topodns.io/ttl
    min_endpoints: int = 1  # that a key must match to win, 1..1000: annotation topodns.io/min-endpoints
    max_load: MaxLoad | None = None  # of the values of a key: annotation topodns.io/max-load
    near_only: bool = False  # for the name `_near.SERVICE` alone: annotation topodns.io/apply-to
    warnings: tuple[
        str, ...
    ] = ()  # ignored parts: keys after "*", repeated keys, a bad ttl, idle guards; of a Service with the place

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels that `select` may compare for any client."""
        keys = (*self.keys, *(self.keys_if_unlabelled or ()))
        return tuple(dict.fromkeys(label_name(key) for key in keys if key != ANY_KEY))

    @property
    def is_empty(self) -> bool:
        """Whether the policy has no keys (not even `*`) and follows no hints: every client gets all endpoints.

        `policy_of` returns None instead of such a policy.
        """
        return not self.keys and self.source is not KeySource.HINTS


@dataclass(frozen=True, slots=True)
class InvalidPolicy:
    """Topology keys that break a rule. The Service stays unfiltered, or empty with `on_invalid deny`."""

    source: KeySource
    problem: str  # the rule, and the value found
    near_only: bool = False  # as of a Policy


class Notice(NamedTuple):
    """A problem of a Service's annotations that is no part of its policy: a finding of this kind and severity."""

    kind: str
    severity: Literal["error", "warning", "info"]
    text: str


class ServiceKeys(NamedTuple):
    """The topology annotations and fields of one Service, read.

    `policy` None: no filtering. `max_endpoints`: those of an answer at most, 1..1000; None: no bound. `without_own`: it
    is a headless Service without keys of its own, so that it may inherit some; `without_effect`: notices that hold
    unless it does.
    """

    policy: Policy | InvalidPolicy | None
    notices: tuple[Notice, ...]
    max_endpoints: int | None = None
    without_own: bool = False
    without_effect: tuple[Notice, ...] = ()


NO_KEYS: Final = ServiceKeys(None, ())


class KeyReader(NamedTuple):
    """The rules for topology keys: see `topology.keys.key_reader`."""

    read: Callable[[Service], ServiceKeys]
    """The keys that a Service has itself."""

    inherited: Callable[[Service, Namespace | None], Policy | None]
    """The policy that a Service in this Namespace has without keys of its own, unless it governs a StatefulSet."""

    problem_of: Callable[[Namespace], str]
    """What is wrong with the keys of a Namespace; "" for nothing."""

    has_defaults: bool = False  # whether a Service may have keys that neither it nor its Namespace has


MAX_PORTS: Final = 1000  # distinct ports served of one Service's endpoints


class EndpointPort(NamedTuple):
    """A port of a slice.

    A named tuple, because a slice may have 20,000: made, hashed and compared in a third of a dataclass's time.
    """

    name: str  # "" when unnamed
    protocol: str
    number: int | None  # None: every port (discovery.k8s.io/v1); the name exists, without SRV record


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address of one endpoint of a slice (the API allows several addresses, with a meaning only for the first)."""

    address: bytes
    hostname: str = ""
    node_name: str = ""
    topology_zone: str | None = None  # `zone` of the slice; a fallback for the Node's label, it may be stale
    topology: Mapping[str, str] = field(default_factory=dict)  # deprecatedTopology, likewise; CLUSTER_KEY: of an import
    ready: bool = True
    serving: bool = True
    terminating: bool = False
    pod_name: str = ""  # targetRef.name if the target is a Pod of the slice's namespace
    other_target: str = ""  # targetRef.name of any other target: it may name the endpoint, but locates no client
    zone_hints: tuple[str, ...] = ()
    node_hints: tuple[str, ...] = ()


class Alias(NamedTuple):
    """An endpoint of a slice of addressType FQDN: a host name in place of an address."""

    target: str  # as written, at most 255 characters; it may be no name
    hostname: str = ""
    topology_zone: str | None = None
    ready: bool = True
    pod_name: str = ""  # this and the next one as of an Endpoint
    other_target: str = ""


@dataclass(frozen=True, slots=True)
class EndpointSlice:
    namespace: str
    name: str
    service_name: str  # label kubernetes.io/service-name; "": the slice belongs to no Service
    address_type: str  # IPv4, IPv6 or FQDN
    ports: tuple[EndpointPort, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    aliases: tuple[Alias, ...] = ()  # in place of `endpoints`, of address type FQDN
    generation: int = 0
    imported: bool = False  # of a ServiceImport: label multicluster.kubernetes.io/service-name
    cluster_id: str = ""  # of an imported one: one or more labels, from multicluster.kubernetes.io/source-cluster
    mirrored: bool = False  # made from a v1 Endpoints; counts only if its Service has no other slice
    left_out: int = 0  # as of a Service
    bad: tuple[BadAnnotation, ...] = ()
    # 8 octets for each endpoint, of its JSON, for the next version (`decode.slices`); none of a slice read otherwise.
    digests: bytes = field(default=b"", compare=False, repr=False)
    version: int = field(default=0, compare=False)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class Pod:
    """A Pod with an address. A Pod in the phase Succeeded, Failed or Unknown counts as deleted."""

    namespace: str
    name: str
    ips: tuple[bytes, ...] = ()  # status.podIPs, both families
    node_name: str = ""
    host_network: bool = False
    terminating: bool = False
    started: str = ""  # status.startTime, RFC 3339 in UTC
    labels: tuple[tuple[str, str], ...] = ()  # (key, value), of those that the configuration names
    version: int = field(default=0, compare=False)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class MisannotatedPod(Pod):
    """A Pod with annotations that only a Service can have: of 150,000 Pods only these have room for them."""

    bad: tuple[BadAnnotation, ...] = ()


class RefusedAddresses(NamedTuple):
    """Addresses in a field of a locator that no Pod or Node can have, or that exceed the limit of the field."""

    reason: str  # malformed, loopback, link_local, multicast, unspecified, broadcast, too_many
    number: int
    first: str  # the place and text of the first one, for the log


LOCATOR_GROUP: Final = "topodns.io"  # the API group of NodeLocators and PodLocators
LOCATOR_VERSION: Final = "v1alpha1"


@dataclass(frozen=True, slots=True)
class NodeLocator:
    """The addresses at one Node and its labels (topodns.io/v1alpha1), as `topodns locator` writes them."""

    name: str  # of the Node
    pod_ips: tuple[bytes, ...] = ()  # of Pods on the Node, both families
    addresses: tuple[bytes, ...] = ()  # of the Node itself and of its network plugin's tunnels
    labels: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[RefusedAddresses, ...] = ()
    version: int = field(default=0, compare=False)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey("", self.name)


LabelPairs = tuple[tuple[str, str], ...]
"""Labels as (name, value), in order of name. Hashable, so that 150,000 PodLocators can share those of 5,000 Nodes."""


@dataclass(frozen=True, slots=True)
class PodLocator:
    """One Pod's addresses, and the name and labels of its Node (topodns.io/v1alpha1).

    It has the namespace and name of the Pod.
    """

    namespace: str
    name: str
    addresses: tuple[bytes, ...]
    node_name: str
    node_labels: LabelPairs = ()
    refused: tuple[RefusedAddresses, ...] = ()
    version: int = field(default=0, compare=False)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class StatefulSet:
    """Only for the warning about a topology policy on its governing Service, which is `service_name`."""

    namespace: str
    name: str
    service_name: str
    version: int = field(default=0, compare=False)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


OWN_CLUSTER: Final = "cluster.clusterset.k8s.io"


@dataclass(frozen=True, slots=True)
class ClusterProperty:
    """The one that is named OWN_CLUSTER (about.k8s.io/v1alpha1, KEP-2149), with this cluster's id."""

    name: str
    value: str  # the id: one or more labels, "" for another text
    version: int = field(default=0, compare=False)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey("", self.name)


ClusterObject = (
    Namespace | Node | Service | EndpointSlice | Pod | NodeLocator | PodLocator | StatefulSet | ClusterProperty
)

Keyed = tuple[ObjectKey, ClusterObject | None, ClusterObject | None]
"""(key, held object, new object) of a change; None: there is none."""


def kind_of(value: ClusterObject) -> Kind:
    """The kind of this object."""
    match value:
        case Namespace():
            return "Namespace"
        case Node():
            return "Node"
        case Service():
            return "ServiceImport" if value.imported else "Service"
        case EndpointSlice():
            return "EndpointSlice"
        case Pod():
            return "Pod"
        case NodeLocator():
            return "NodeLocator"
        case PodLocator():
            return "PodLocator"
        case StatefulSet():
            return "StatefulSet"
        case ClusterProperty():
            return "ClusterProperty"


@dataclass(frozen=True, slots=True)
class Upserted(Generic[T_co]):
    """An object was added or modified."""

    object: T_co


@dataclass(frozen=True, slots=True)
class Deleted:
    kind: Kind
    key: ObjectKey
    version: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Replaced:
    """A list of all objects of one kind; others of that kind are deleted. The first one makes the kind synced."""

    kind: Kind
    objects: tuple[ClusterObject, ...]


Change = Upserted[ClusterObject] | Deleted | Replaced
