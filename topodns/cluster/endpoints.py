"""The endpoints of one Service, merged from its slices, with an index per (topology key, value).

Built once per change of the Service's slices or of the labels of nodes under it, lazily, and thrown away whole.
Groups are built once and handed out again, so a caller may key what it derives from one by its identity.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from ipaddress import ip_address
from typing import Final

from topodns.cluster.model import HOSTNAME_LABEL, ZONE_LABEL, Endpoint, EndpointPort, EndpointSlice, Node

LabelOf = Callable[[Endpoint, str], str | None]  # the value of a topology key at an endpoint's node; None: absent

_ADDRESS_TYPES: Final = frozenset({"IPv4", "IPv6"})  # FQDN has no addresses to answer with
_LENGTH_OF_FAMILY: Final = {4: 4, 6: 16}
_MAX_LABEL: Final = 63  # octets, RFC 1035 2.3.4


@dataclass(frozen=True, slots=True)
class Group:
    """Endpoints that go out together, and their addresses without duplicates, in slice order."""

    endpoints: tuple[Endpoint, ...]
    addresses: tuple[bytes, ...]


EMPTY_GROUP: Final = Group((), ())


class _Index:
    """Groups by value. Each is made when it is first asked for: most clients ask for few of them."""

    __slots__ = ("_everyone", "_groups", "_members")

    def __init__(self, everyone: Group, members: dict[str, list[Endpoint]]) -> None:
        self._everyone = everyone
        self._members = members
        self._groups: dict[str, Group] = {}

    def group(self, value: str) -> Group | None:
        """The endpoints under this value; `everyone` itself where all share it."""
        known = self._groups.get(value)
        if known is not None:
            return known
        some = self._members.get(value)
        if some is None:
            return None
        whole = len(some) == len(self._everyone.endpoints)
        made = self._groups[value] = self._everyone if whole else _group(some)
        return made


class Pool:
    """The ready endpoints of one family (and, for SRV, of one port) of a Service, indexed by topology key and value.

    Every question costs one or two dictionary lookups; the index behind it is built when it is first asked.
    """

    everyone: Group

    def __init__(self, everyone: Group, label_of: LabelOf) -> None:
        self.everyone = everyone
        self._label_of = label_of
        self._by_label: dict[str, _Index] = {}
        self._by_host: dict[tuple[str, str], Group] = {}

    def matching(self, key: str, value: str) -> Group:
        """Those whose node carries label `key` with exactly `value`; cost does not grow with size.

        The live label of the Node counts. Only without a Node does the slice's own copy: its zone, its topology map.
        At kubernetes.io/hostname a node without that label (or without an object) has its name for a value.
        """
        index = self._by_label.get(key)
        if index is None:
            index = self._indexed_by_label(key)
        return index.group(value) or EMPTY_GROUP

    def on_node(self, node_name: str) -> Group:
        """Those on the node of this name, whatever its labels."""
        return self._by_node.group(node_name) or EMPTY_GROUP

    def same_host(self, node_name: str, hostname: str) -> Group:
        """Those that kubernetes.io/hostname puts with a client on `node_name` whose node has the value `hostname`.

        `matching` by value, joined by all on the client's own node: a node is itself, whatever its label says
        (kube-proxy compared a label with a node name here, and found nobody where they differ).
        """
        known = self._by_host.get((node_name, hostname))
        if known is not None:
            return known
        labelled = self.matching(HOSTNAME_LABEL, hostname)
        own = self.on_node(node_name)
        if not own.endpoints:
            return labelled  # and not remembered: clients may be on any number of other nodes
        joined = self._by_host[node_name, hostname] = self._joined(labelled, own)
        return joined

    def hinted(self, node_name: str, topology_zone: str | None) -> Group:
        """What kube-proxy's CategorizeEndpoints keeps: those hinted for the node, else for the zone, else everyone.

        A level counts only where every endpoint has a hint of it (KEP-2433, KEP-3015).
        """
        for_node = self._by_node_hint.group(node_name)
        if for_node is not None:
            return for_node
        return (self._by_zone_hint.group(topology_zone) if topology_zone else None) or self.everyone

    def by_topology_zone(self, value: str) -> Group:
        """Those whose slice says this zone, ignoring case, as the names of CoreDNS's `zonal` do: no Node is asked."""
        return self._by_slice_zone.group(value.lower()) or EMPTY_GROUP

    def index(self, keys: Iterable[str]) -> None:
        """Build what the first questions about these topology keys would build; the groups are left to them."""
        for key in keys:
            if key == HOSTNAME_LABEL:
                _ = self._by_node
            self._indexed_by_label(key)

    def _indexed_by_label(self, key: str) -> _Index:
        index = _indexed(self.everyone, lambda endpoint: _present(self._label_of(endpoint, key)))
        self._by_label[key] = index
        return index

    def _joined(self, labelled: Group, own: Group) -> Group:
        if labelled.endpoints == own.endpoints:
            return labelled
        members = {_identity(endpoint) for group in (labelled, own) for endpoint in group.endpoints}
        if len(members) == len(labelled.endpoints):
            return labelled
        return _group(endpoint for endpoint in self.everyone.endpoints if _identity(endpoint) in members)

    @cached_property
    def _by_node(self) -> _Index:
        return _indexed(self.everyone, lambda endpoint: (endpoint.node_name,) if endpoint.node_name else ())

    @cached_property
    def _by_node_hint(self) -> _Index:
        complete = all(endpoint.node_hints for endpoint in self.everyone.endpoints)
        return _indexed(self.everyone, lambda endpoint: endpoint.node_hints) if complete else _Index(self.everyone, {})

    @cached_property
    def _by_zone_hint(self) -> _Index:
        complete = all(endpoint.zone_hints for endpoint in self.everyone.endpoints)
        return _indexed(self.everyone, lambda endpoint: endpoint.zone_hints) if complete else _Index(self.everyone, {})

    @cached_property
    def _by_slice_zone(self) -> _Index:
        return _indexed(self.everyone, lambda endpoint: (value.lower() for value in _present(endpoint.topology_zone)))


class Backends:
    """All endpoints of one Service: de-duplicated over slices, ready if ready in any.

    The same endpoint may stand in several slices for a while. Its copies, told by address and hostname, become the
    ready one of the newest slice generation. Slices of other address types than IPv4 and IPv6 are left out. With
    `terminating_fallback`, endpoints that serve while terminating count as ready where no other endpoint of any
    family is ready (KEP-1669). `pod_names` names endpoints by their pods, as CoreDNS's `endpoint_pod_names`.
    """

    nodes: frozenset[str]  # names of the nodes under the ready endpoints
    has_ready: bool  # of any family: a headless Service without is NXDOMAIN
    ports: tuple[EndpointPort, ...]  # every distinct port of the slices, in slice order; unnamed ones too
    cluster_ids: tuple[str, ...]  # of an imported Service: the clusters its slices come from, in slice order (KEP-1645)

    def __init__(
        self,
        slices: Sequence[EndpointSlice],
        node: Callable[[str], Node | None],
        terminating_fallback: bool,
        pod_names: bool = False,
    ) -> None:
        self._slices = tuple(each for each in slices if each.address_type in _ADDRESS_TYPES)
        self._label_of = partial(_label_of, node)
        self._pod_names = pod_names
        ready = _ready(_merged(self._slices), terminating_fallback)
        self._pools = {family: self._pool(_of_family(ready, family)) for family in (4, 6)}
        self._port_pools: dict[tuple[int, EndpointPort], Pool] = {}
        self._name_pools: dict[tuple[int, str], Pool] = {}
        self.nodes = frozenset(endpoint.node_name for endpoint in ready if endpoint.node_name)
        self.has_ready = bool(ready)
        self.ports = tuple(dict.fromkeys(port for each in self._slices for port in each.ports))
        self.cluster_ids = tuple(dict.fromkeys(each.cluster_id for each in self._slices if each.cluster_id))

    def pool(self, family: int) -> Pool:
        """The ready endpoints of a family: 4 or 6."""
        return self._pools[family]

    def index(self, keys: Iterable[str]) -> None:
        """Have the indexes of these topology keys ready, instead of building each when it is first asked."""
        for pool in self._pools.values():
            pool.index(keys)

    def pool_for_port(self, family: int, port: EndpointPort) -> Pool:
        """The ready endpoints of a family that expose this port: what SRV and `_port._proto` names are chosen from."""
        pool = self._port_pools.get((family, port))
        if pool is not None:
            return pool
        if port not in self.ports:
            return _EMPTY_POOL
        pool = self._port_pools[family, port] = self._exposing(family, port)
        return pool

    def named(self, endpoint_name: str) -> Mapping[int, Group]:
        """Ready endpoints by family whose DNS label (`endpoint_label`) is this one; never filtered by topology.

        Case does not matter. Several endpoints may share a name (KEP-752). A family without any is absent.
        """
        name = endpoint_name.lower()
        groups = ((family, index.group(name)) for family, index in self._by_name.items())
        return {family: group for family, group in groups if group is not None}

    def pool_for_name(self, family: int, endpoint_name: str) -> Pool:
        """The same endpoints of one family as a pool, for `filter_hostnames` to choose among."""
        group = self.named(endpoint_name).get(family)
        if group is None:
            return _EMPTY_POOL
        key = (family, endpoint_name.lower())
        pool = self._name_pools.get(key)
        if pool is None:
            pool = self._name_pools[key] = self._pool(group)
        return pool

    def _exposing(self, family: int, port: EndpointPort) -> Pool:
        exposing = {_identity(each) for one in self._slices if port in one.ports for each in one.endpoints}
        pool = self.pool(family)
        members = _group(endpoint for endpoint in pool.everyone.endpoints if _identity(endpoint) in exposing)
        return pool if len(members.endpoints) == len(pool.everyone.endpoints) else self._pool(members)

    @cached_property
    def _by_name(self) -> dict[int, _Index]:
        return {
            family: _indexed(pool.everyone, lambda endpoint: (endpoint_label(endpoint, self._pod_names).lower(),))
            for family, pool in self._pools.items()
        }

    def _pool(self, everyone: Group) -> Pool:
        return Pool(everyone, self._label_of)


_EMPTY_POOL: Final = Pool(EMPTY_GROUP, lambda _endpoint, _key: None)


def endpoint_label(endpoint: Endpoint, pod_names: bool) -> str:
    """The label that names an endpoint: hostname, else the pod's name (if asked for and under 64), else dashed IP.

    As CoreDNS spells it: IPv6 in its shortest text (RFC 5952), with a 0 appended where it would end in a dash.
    """
    if endpoint.hostname:
        return endpoint.hostname
    if pod_names and 0 < len(endpoint.pod_name) <= _MAX_LABEL:
        return endpoint.pod_name
    return _dashed(endpoint.address)


@lru_cache(maxsize=16_384)  # 3 us each, and an SRV answer names every endpoint of its Service
def _dashed(address: bytes) -> str:
    dashed = str(ip_address(address)).replace(".", "-").replace(":", "-")
    return f"{dashed}0" if dashed.endswith("-") else dashed


def _identity(endpoint: Endpoint) -> tuple[bytes, str]:
    return endpoint.address, endpoint.hostname


def _merged(slices: Iterable[EndpointSlice]) -> list[Endpoint]:
    """Each endpoint once, where it is first seen, as its best copy: a ready one, then the newest."""
    best: dict[tuple[bytes, str], tuple[bool, int, Endpoint]] = {}
    for one in slices:
        for endpoint in one.endpoints:
            identity = _identity(endpoint)
            rival = best.get(identity)
            if rival is None or (endpoint.ready, one.generation) > rival[:2]:
                best[identity] = (endpoint.ready, one.generation, endpoint)
    return [endpoint for _, _, endpoint in best.values()]


def _ready(endpoints: Sequence[Endpoint], terminating_fallback: bool) -> list[Endpoint]:
    ready = [endpoint for endpoint in endpoints if endpoint.ready]
    if ready or not terminating_fallback:
        return ready
    return [endpoint for endpoint in endpoints if endpoint.serving and endpoint.terminating]


def _of_family(endpoints: Iterable[Endpoint], family: int) -> Group:
    length = _LENGTH_OF_FAMILY[family]
    return _group(endpoint for endpoint in endpoints if len(endpoint.address) == length)


def _label_of(node_of: Callable[[str], Node | None], endpoint: Endpoint, key: str) -> str | None:
    """Where a Node object exists its live label alone counts: the slice's copies may be stale for good."""
    name = endpoint.node_name
    node = node_of(name) if name else None
    if node is not None:
        return node.labels.get(key, name if key == HOSTNAME_LABEL else None)
    return name if name and key == HOSTNAME_LABEL else _label_of_slice(endpoint, key)


def _label_of_slice(endpoint: Endpoint, key: str) -> str | None:
    if key == ZONE_LABEL and endpoint.topology_zone is not None:
        return endpoint.topology_zone
    return endpoint.topology.get(key)


def _group(endpoints: Iterable[Endpoint]) -> Group:
    members = tuple(endpoints)
    return Group(members, tuple(dict.fromkeys(endpoint.address for endpoint in members))) if members else EMPTY_GROUP


def _indexed(everyone: Group, values_of: Callable[[Endpoint], Iterable[str]]) -> _Index:
    """The endpoints under each of their values, in order."""
    members: dict[str, list[Endpoint]] = {}
    for endpoint in everyone.endpoints:
        for value in values_of(endpoint):
            some = members.setdefault(value, [])
            if not some or some[-1] is not endpoint:  # a hint may be there twice
                some.append(endpoint)
    return _Index(everyone, members)


def _present(value: str | None) -> tuple[str, ...]:
    return () if value is None else (value,)
