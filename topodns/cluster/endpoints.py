"""The endpoints of one Service, merged from its slices, with an index per (topology key, value).

Built lazily, once per change of the Service's slices or of the labels of its endpoints' Nodes, and discarded whole.
A Group is built once and returned again, so callers may cache what they derive from it by its identity.

The first query after a change waits for the build, and a Service may have 5,000 endpoints: loops over all of them are
comprehensions and C functions, and the usual case (no endpoint in two slices, all slices with the same ports) is
checked first.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Final

from topodns.cluster.endpoint_names import LabelIndex
from topodns.cluster.model import HOSTNAME_LABEL, ZONE_LABEL, Endpoint, EndpointPort, EndpointSlice, Node
from topodns.cluster.port_index import EVERYWHERE, PortIndex

NodeOf = Callable[[str], Node | None]  # the Node of this name

_ADDRESS_TYPES: Final = frozenset({"IPv4", "IPv6"})  # FQDN has no addresses to answer with
_LENGTH_OF_FAMILY: Final = {4: 4, 6: 16}
_MANY: Final = 100  # addresses; unions of fewer are not cached but made again for each answer
_MAX_DERIVED: Final = 1000  # cached groups that are derived from others

_address: Final = attrgetter("address")
_identity: Final[Callable[[Endpoint], tuple[bytes, str]]] = attrgetter("address", "hostname")


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Group:
    """Endpoints that are answered together, and their distinct addresses, both in slice order."""

    endpoints: tuple[Endpoint, ...]
    addresses: tuple[bytes, ...]


EMPTY_GROUP: Final = Group((), ())


class _Index:
    """Groups by value (of a label, zone or Node name). Each is built on first use: most are never used."""

    __slots__ = ("_everyone", "_groups", "_members")

    def __init__(self, everyone: Group, members: dict[str, list[Endpoint]]) -> None:
        self._everyone = everyone
        self._members = members
        self._groups: dict[str, Group] = {}

    def group(self, value: str) -> Group | None:
        """The endpoints with this value, None if there are none; `everyone` itself if all have it."""
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

    A lookup costs one or two dictionary accesses; its index is built on first use.
    """

    everyone: Group

    def __init__(self, everyone: Group, node_of: NodeOf) -> None:
        self.everyone = everyone
        self._node_of = node_of
        self._by_label: dict[str, _Index] = {}
        self._by_host: dict[tuple[str, str], Group] = {}

    def matching(self, key: str, value: str) -> Group:
        """The endpoints on Nodes with label `key` of exactly `value`, in time independent of the pool's size.

        The Node's own label counts. Only without a Node object does the slice's copy: its zone, its topology map.
        For kubernetes.io/hostname, a Node without that label (or without an object) has its name as the value.
        """
        index = self._by_label.get(key)
        if index is None:
            index = self._indexed_by_label(key)
        return index.group(value) or EMPTY_GROUP

    def on_node(self, node_name: str) -> Group:
        """The endpoints with this nodeName, whatever the Node's labels."""
        return self._by_node.group(node_name) or EMPTY_GROUP

    def same_host(self, node_name: str, hostname: str) -> Group:
        """The endpoints that match kubernetes.io/hostname for a client on `node_name` whose label value is `hostname`.

        These are `matching` by value and all on the client's own Node: a Node matches itself, whatever its label
        (kube-proxy compared a label with a Node name here, and matched no endpoint if they differed).
        """
        known = self._by_host.get((node_name, hostname))
        if known is not None:
            return known
        labelled = self.matching(HOSTNAME_LABEL, hostname)
        own = self.on_node(node_name)
        if not own.endpoints:
            return labelled  # not cached: clients may be on any number of other Nodes
        joined = self._by_host[node_name, hostname] = self._joined(labelled, own)
        return joined

    def hinted(self, node_name: str, topology_zone: str | None) -> Group:
        """The endpoints hinted for the Node, else for the zone, else all, as in kube-proxy's CategorizeEndpoints.

        Hints of a kind (Node, zone) count only if every endpoint has one (KEP-2433, KEP-3015).
        """
        for_node = self._by_node_hint.group(node_name)
        if for_node is not None:
            return for_node
        return (self._by_zone_hint.group(topology_zone) if topology_zone else None) or self.everyone

    def by_topology_zone(self, value: str) -> Group:
        """The endpoints with this `zone` in their slice, in any case, as in names of CoreDNS's `zonal`; no Node."""
        return self._by_slice_zone.group(value.lower()) or EMPTY_GROUP

    def index(self, keys: Iterable[str]) -> None:
        """Build the indexes of these topology keys now instead of on first use; the groups in them stay lazy."""
        for key in keys:
            if key == HOSTNAME_LABEL:
                _ = self._by_node
            self._indexed_by_label(key)

    def _indexed_by_label(self, key: str) -> _Index:
        of_node: dict[str, str | None] = {}  # Node name -> label value; only Nodes that have an object
        members: dict[str, list[Endpoint]] = {}
        for endpoint in self.everyone.endpoints:
            name = endpoint.node_name
            if name in of_node:
                value = of_node[name]
            else:
                node = self._node_of(name) if name else None
                value = _label_of(node, endpoint, key)
                if node is not None:
                    of_node[name] = value
            if value is not None:
                members.setdefault(value, []).append(endpoint)
        index = self._by_label[key] = _Index(self.everyone, members)
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
        return _indexed(self.everyone, lambda endpoint: _present(endpoint.topology_zone))

    @cached_property
    def _identities(self) -> frozenset[int]:
        return frozenset(map(id, self.everyone.endpoints))

    def common(self, group: Group) -> Group:
        """The endpoints of `group`, which is of the same Backends, that are in this pool."""
        identities = self._identities
        return _group(endpoint for endpoint in group.endpoints if id(endpoint) in identities)


class Backends:
    """All endpoints of one Service: de-duplicated over slices, ready if ready in any.

    An endpoint (address and hostname) may be in several slices for a while; of its copies a ready one counts before
    others, then that of the highest slice generation. Only slices of address type IPv4 and IPv6 are read. With
    `terminating_fallback`, endpoints that serve while terminating count as ready if no other endpoint of any
    family is ready (KEP-1669). `pod_names` names endpoints by their Pods, as CoreDNS's `endpoint_pod_names`.
    """

    has_ready: bool  # in any family; a headless Service without ready endpoints is NXDOMAIN
    ports: tuple[EndpointPort, ...]  # the first 1,000 distinct ports of the slices, in slice order; unnamed ones too
    cluster_ids: tuple[str, ...]  # of an imported Service: the clusters its slices come from, in slice order (KEP-1645)

    def __init__(
        self,
        slices: Sequence[EndpointSlice],
        node: NodeOf,
        terminating_fallback: bool,
        pod_names: bool = False,
    ) -> None:
        self._slices = tuple(each for each in slices if each.address_type in _ADDRESS_TYPES)
        self._node_of = node
        self._pod_names = pod_names
        ready = _ready(_merged(self._slices), terminating_fallback)
        self._pools = {family: self._pool(group) for family, group in _by_family(ready).items()}
        self._port_index = PortIndex(self._slices)
        self._port_pools: dict[tuple[int, int], Pool] = {}  # by family, and number of a set in `_port_index`
        self._name_pools: dict[tuple[int, str], Pool] = {}
        self.has_ready = bool(ready)
        self.ports = self._port_index.ports
        self.cluster_ids = tuple(dict.fromkeys(each.cluster_id for each in self._slices if each.cluster_id))

    @cached_property
    def nodes(self) -> frozenset[str]:
        """The Node names of the ready endpoints."""
        pools = self._pools.values()
        return frozenset(each.node_name for pool in pools for each in pool.everyone.endpoints if each.node_name)

    def pool(self, family: int) -> Pool:
        """The ready endpoints of a family: 4 or 6."""
        return self._pools[family]

    def index(self, keys: Iterable[str]) -> None:
        """Build the indexes of these topology keys now instead of on first use."""
        for pool in self._pools.values():
            pool.index(keys)

    def pool_for_port(self, family: int, port: EndpointPort) -> Pool:
        """The ready endpoints of a family that expose this port, for SRV and `_port._proto` names."""
        number = self._port_index.set_of(port)
        if not number:
            return self._pools[family] if number == EVERYWHERE else _EMPTY_POOL
        key = family, number
        return self._port_pools.get(key) or self._port_pools.setdefault(key, self._of_slices(family, number))

    def named(self, endpoint_name: str) -> Mapping[int, Group]:
        """The ready endpoints with this label (`endpoint_label`), in any case, by family; never filtered by topology.

        Several endpoints may have the same label (KEP-752). A family without any is absent.
        """
        name = endpoint_name.lower()
        groups = ((family, self._named_of(family, name)) for family in self._pools)
        return {family: group for family, group in groups if group.endpoints}

    def pool_for_name(self, family: int, endpoint_name: str) -> Pool:
        """The endpoints of `named` in one family as a pool, for the option `filter_hostnames`."""
        group = self.named(endpoint_name).get(family)
        if group is None:
            return _EMPTY_POOL
        key = (family, endpoint_name.lower())
        pool = self._name_pools.get(key)
        if pool is None:
            pool = self._name_pools[key] = self._pool(group)
        return pool

    def exposing(self, family: int, port: EndpointPort, group: Group) -> Group:
        """The endpoints of `group` that expose this port. `group` is of this family and of a pool of this object."""
        pool = self.pool_for_port(family, port)
        if pool is self._pools[family]:
            return group
        return self._kept((pool, group), lambda: pool.common(group))

    def joined_addresses(self, groups: Iterable[Group]) -> tuple[bytes, ...]:
        """The distinct addresses of these groups, in order. All groups are of pools of this object."""
        distinct = tuple({id(group): group for group in groups if group.endpoints}.values())
        if len(distinct) < 2:
            return distinct[0].addresses if distinct else ()
        if sum(len(group.addresses) for group in distinct) < _MANY:
            return _union(distinct)
        return self._kept(distinct, lambda: Group((), _union(distinct))).addresses

    def _kept(self, sources: Sequence[object], make: Callable[[], Group]) -> Group:
        """The group that `make` derives from these pools and groups, cached by their identities (at most 1,000)."""
        key = tuple(map(id, sources))
        known = self._derived.get(key)
        if known is None:
            if len(self._derived) >= _MAX_DERIVED:
                self._derived.clear()
            known = self._derived[key] = make(), sources  # a reference to `sources`, so that their id()s stay theirs
        return known[0]

    # The properties below are lazy: most of up to 10,000 Services never need them.

    @cached_property
    def _derived(self) -> dict[tuple[int, ...], tuple[Group, Sequence[object]]]:
        return {}

    @cached_property
    def _places(self) -> dict[int, dict[tuple[bytes, str], int]]:
        endpoints = {family: pool.everyone.endpoints for family, pool in self._pools.items()}
        return {family: {_identity(each): at for at, each in enumerate(some)} for family, some in endpoints.items()}

    @cached_property
    def _by_name(self) -> dict[int, LabelIndex]:
        pod_names = self._pod_names
        return {family: LabelIndex(pool.everyone.endpoints, pod_names) for family, pool in self._pools.items()}

    @cached_property
    def _named(self) -> dict[tuple[int, str], Group]:
        return {}

    def _named_of(self, family: int, name: str) -> Group:
        known = self._named.get((family, name))
        if known is not None:
            return known
        everyone = self._pools[family].everyone
        members = self._by_name[family].members(name)
        if not members:
            return EMPTY_GROUP  # not cached: clients may query any number of names that do not exist
        whole = len(members) == len(everyone.endpoints)
        made = self._named[family, name] = everyone if whole else _group(members)
        return made

    def _of_slices(self, family: int, number: int) -> Pool:
        """The ready endpoints of a family in the slices of the set with this number."""
        pool, places = self._pools[family], self._places[family]
        members = sorted([places[each] for each in self._port_index.identities(number) if each in places])
        endpoints = pool.everyone.endpoints
        return pool if len(members) == len(endpoints) else self._pool(_group(endpoints[at] for at in members))

    def _pool(self, everyone: Group) -> Pool:
        return Pool(everyone, self._node_of)


_EMPTY_POOL: Final = Pool(EMPTY_GROUP, lambda _name: None)


def _merged(slices: Iterable[EndpointSlice]) -> list[Endpoint]:
    """The distinct endpoints, at their first position; of copies a ready one, then that of the highest generation."""
    endpoints = [endpoint for one in slices for endpoint in one.endpoints]
    if len(set(map(_address, endpoints))) == len(endpoints):
        return endpoints
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


def _by_family(endpoints: Sequence[Endpoint]) -> dict[int, Group]:
    lengths = set(map(len, map(_address, endpoints)))
    groups = dict.fromkeys(_LENGTH_OF_FAMILY, EMPTY_GROUP)
    for family, length in _LENGTH_OF_FAMILY.items():
        if length in lengths:
            whole = len(lengths) == 1
            groups[family] = _group(endpoints if whole else [each for each in endpoints if len(each.address) == length])
    return groups


def _label_of(node: Node | None, endpoint: Endpoint, key: str) -> str | None:
    """The value of a topology key at an endpoint's Node; None: absent.

    If there is a Node object only its label counts: the slice's copies may stay stale forever.
    """
    name = endpoint.node_name
    if node is not None:
        return node.labels.get(key, name if key == HOSTNAME_LABEL else None)
    if name and key == HOSTNAME_LABEL:
        return name
    of_slice = endpoint.topology_zone if key == ZONE_LABEL else None
    return endpoint.topology.get(key) if of_slice is None else of_slice


def _group(endpoints: Iterable[Endpoint]) -> Group:
    members = tuple(endpoints)
    return Group(members, tuple(dict.fromkeys(map(_address, members)))) if members else EMPTY_GROUP


def _union(groups: Iterable[Group]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(group.addresses for group in groups)))


def _indexed(everyone: Group, values_of: Callable[[Endpoint], Iterable[str]]) -> _Index:
    """An index of the endpoints by each of their values, in order."""
    members: dict[str, list[Endpoint]] = {}
    for endpoint in everyone.endpoints:
        for value in values_of(endpoint):
            some = members.setdefault(value, [])
            if not some or some[-1] is not endpoint:  # a slice may have the same hint twice
                some.append(endpoint)
    return _Index(everyone, members)


def _present(topology_zone: str | None) -> tuple[str, ...]:
    return () if topology_zone is None else (topology_zone.lower(),)
