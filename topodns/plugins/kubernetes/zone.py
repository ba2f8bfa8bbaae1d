"""The `kubernetes` directive of a server block as one value, its origins, and the namespaces that it exposes.

The functions of this folder get the value `KubernetesZone`, so that nothing is made or joined for a query.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from topodns.cluster.model import Kind, ObjectKey
from topodns.cluster.state import ClusterState
from topodns.dns.name import Name, is_below_any, is_reverse, name_wire
from topodns.plugins.kubernetes.label_cache import KeptLabels
from topodns.plugins.kubernetes.pod_wait import PodWait
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.cname import Chase
from topodns.query.label_limiter import LabelLimiters
from topodns.topology.client_locator import ClientLocator
from topodns.topology.guards import Domains
from topodns.topology.select import UnknownClient

_TTL_UNDER_POLICY: Final = 5  # seconds, at most, unless `topology` has a `ttl`


class Origin(NamedTuple):
    name: Name
    wire: bytes  # lower-case
    reverse: bool  # in-addr.arpa, ip6.arpa or below them
    multicluster: bool  # serves ServiceImports


class Origins:
    """`names` in the order of the Corefile, at least one. `primary`: the first forward origin, else the first one."""

    def __init__(self, names: Sequence[Name], multicluster: Sequence[Name] = ()) -> None:
        self.by_name: Final = {name: _origin(name, multicluster) for name in names}
        self.sizes: Final = sorted({len(name) for name in names}, reverse=True)  # in labels
        forward = (origin for origin in self.by_name.values() if not origin.reverse)
        self.primary: Final = next(forward, self.by_name[names[0]])

    def match(self, qname: Name) -> Origin | None:
        """The longest origin that this lower-case name is at or below; None if there is none."""
        labels = len(qname)
        for size in self.sizes:
            if size <= labels and (origin := self.by_name.get(qname[labels - size :])) is not None:
                return origin
        return None


@dataclass(frozen=True, slots=True, eq=False)
class KubernetesZone:
    """Names under the origins of one `kubernetes` directive, answered from one cluster's state.

    `topology` and `locator` are None where the block has no `topology`. `own_addresses` (packed) are those the server
    is bound to, without loopback ones. `chase` resolves the target of an ExternalName outside the origins; where it is
    None or returns None, the answer is the CNAME alone. `limiters` limit the labels of metrics. With `pod_wait` a query
    under a policy from a client without a location waits briefly before it is answered as an unknown client's.
    """

    settings: KubernetesSettings
    topology: TopologySettings | None
    state: ClusterState
    locator: ClientLocator | None
    own_addresses: tuple[bytes, ...] = ()
    chase: Chase | None = None
    limiters: LabelLimiters = field(default_factory=LabelLimiters)
    pod_wait: PodWait | None = None
    origins: Origins = field(init=False)
    labels: KeptLabels = field(init=False)
    ttl_under_policy: int = field(init=False)  # seconds, of records that a policy without a TTL of its own chose
    domains: Domains = field(init=False)
    refuses: bool = field(init=False)  # whether `unknown_client refuse` may refuse a client
    limits_namespaces: bool = field(init=False)  # whether `namespaces` or `namespace_labels` hide some

    def __post_init__(self) -> None:
        settings, topology = self.settings, self.topology
        own_ttl = topology.ttl if topology is not None else None
        derived = {
            "origins": Origins(settings.origins, settings.multicluster),
            "labels": KeptLabels(settings.endpoint_pod_names),
            "ttl_under_policy": own_ttl if own_ttl is not None else min(_TTL_UNDER_POLICY, settings.ttl),
            "domains": Domains(self.state.all_nodes, self.state.node_labels),
            "refuses": topology is not None and topology.unknown_client is UnknownClient.REFUSE,
            "limits_namespaces": bool(settings.namespaces) or settings.namespace_labels is not None,
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)


def _origin(name: Name, multicluster: Sequence[Name]) -> Origin:
    return Origin(name, name_wire(name), is_reverse(name), is_below_any(name, multicluster))


def exposes(settings: KubernetesSettings, state: ClusterState, namespace: str) -> bool:
    """Whether names in this namespace exist: it is listed (if any are), its object exists and its labels match."""
    if settings.namespaces and namespace not in settings.namespaces:
        return False
    found = state.namespaces.get(("", namespace))
    if found is None:
        return False
    return settings.namespace_labels is None or settings.namespace_labels.matches(found.labels)


def excludes(settings: KubernetesSettings, state: ClusterState, namespace: str) -> bool:
    """Whether `namespaces` or `namespace_labels` hide this namespace; without its object only the first can."""
    if (not settings.namespaces and settings.namespace_labels is None) or exposes(settings, state, namespace):
        return False
    listed = not settings.namespaces or namespace in settings.namespaces
    return not listed or ("", namespace) in state.namespaces


def exposes_reverse(settings: KubernetesSettings, state: ClusterState, namespace: str) -> bool:
    """Whether PTR records may point into this namespace: as `exposes`, but True without the option `namespaces`.

    CoreDNS ignores `namespace_labels` here.
    """
    return not settings.namespaces or exposes(settings, state, namespace)


def lacks_objects(state: ClusterState, key: ObjectKey, imported: bool = False) -> bool:
    """Whether objects are left out that answers for names of this Service may depend on, ClusterIPs apart."""
    if key.namespace not in state.left_out.namespaces:
        return False
    kind: Kind = "ServiceImport" if imported else "Service"
    return state.left_out.may_have(kind, key) or state.backends(key, imported).partial
