"""All endpoints of one Service: merged from its slices, split by family, port and name; ready or not for each port.

Built lazily, on the first use after a change of the Service's slices or of the labels of its endpoints' Nodes, and kept
in a BackendsTable until the next one. A change of one slice leaves the members of the others to the next Backends,
except those that share an address with another slice (`cluster.slice_members`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, islice
from operator import attrgetter
from typing import Final, TypeVar

from topodns.cluster.cluster_set import ClusterSet
from topodns.cluster.endpoints import EMPTY_GROUP, Group, Pool, Segment, group_of, undashed
from topodns.cluster.label_values import NodeOf
from topodns.cluster.model import MAX_PORTS, Alias, Endpoint, EndpointPort, EndpointSlice, ObjectKey
from topodns.cluster.slice_members import Sharers, SliceMembers, distinct_endpoints, members_of_slices, split
from topodns.cluster.slices import SliceOwner, SliceTable

T = TypeVar("T")
_Part = tuple[bool, str]  # (imported, cluster id); "" is all clusters

WHOLE: Final[_Part] = (False, "")
IMPORTED: Final[_Part] = (True, "")
EVERYWHERE: Final = 0  # the number of the set of all slices in a PortIndex

_FAMILIES: Final = (4, 6)
_MANY: Final = 100  # addresses; unions of fewer are not cached but made again for each answer
_MAX_ALIASES: Final = 1000
_MAX_DERIVED: Final = 1000  # cached groups and unions that are derived from others

_ready: Final = attrgetter("ready")

_NO_PORTS: Final = (EndpointPort("", "", None),)
"""The ports of a slice that has none: its endpoints have addresses, and count in weights of SRV, as in CoreDNS."""


class PortIndex:
    """The first 1,000 distinct ports of the slices of one Service, in slice order, and the set of slices with each.

    In most Services all slices have the same. A slice without ports counts as one with a port without name, protocol
    and number.

    The owners of Pods choose names and numbers of ports: if a Service's `targetPort` is a name, each Pod that gives the
    name another number gets a slice of its own, with up to 100 ports of its own. So no step here may cost slices times
    ports, let alone its square. Ports with the same set of slices share the number of that set.
    """

    ports: tuple[EndpointPort, ...]

    def __init__(self, slices: Sequence[EndpointSlice]) -> None:
        first = slices[0].ports if slices else ()
        if len(first) <= MAX_PORTS and all([one.ports == first for one in slices]):  # as in most Services
            self._set_of = dict.fromkeys(first or (_NO_PORTS if slices else ()), EVERYWHERE)
            self.ports = tuple(self._set_of)
            self._sets: tuple[tuple[int, ...], ...] = ()
            return
        having = _slices_by_port(slices)
        self.ports = tuple(having)
        numbers = {tuple(range(len(slices))): EVERYWHERE}
        self._set_of = {port: numbers.setdefault(tuple(members), len(numbers)) for port, members in having.items()}
        self._sets = tuple(numbers)

    def set_of(self, port: EndpointPort) -> int | None:
        """The number of the set of slices with this port; None if it is not among `ports`."""
        return self._set_of.get(port)

    def places(self, number: int) -> tuple[int, ...]:
        """The positions of the slices of this set, which is not EVERYWHERE, among all slices."""
        return self._sets[number]


class Backends:
    """All endpoints of one Service: de-duplicated over slices, ready if ready in any.

    Readiness belongs to an entry of a slice, with that slice's ports (EndpointSlice API): an endpoint in several slices
    has an address if it is ready in any of them, and a port if it is ready in one with this port. Of ready copies that
    of the highest slice generation counts. With `terminating_fallback`, endpoints that serve while terminating count as
    ready if no other endpoint of any family is ready (KEP-1669). `pod_names` names endpoints by their targets, as
    CoreDNS's `endpoint_pod_names`.
    """

    pools: Mapping[int, Pool]  # the ready endpoints by family: 4 and 6
    aliases: tuple[tuple[Alias, tuple[EndpointPort, ...]], ...]  # the first 1,000 ready ones, with their slices' ports
    partial: bool  # whether a slice that counts is left out (`cluster.namespace_budget`)
    has_ready: bool  # in any family, or an alias; a headless Service without ready endpoints is NXDOMAIN
    members: tuple[SliceMembers, ...]  # of each slice that is read; empty for one slice, and by `terminating_fallback`

    def __init__(
        self,
        slices: Sequence[EndpointSlice],
        node: NodeOf,
        terminating_fallback: bool,
        pod_names: bool = False,
        kept: Mapping[str, SliceMembers] | None = None,
        sharers: Sharers | None = None,
        cluster_set: ClusterSet | None = None,
        on_index: Callable[[], object] | None = None,
    ) -> None:
        """`kept`: members of earlier Backends of this Service, by name of the slice (see `members_of_slices`).

        `cluster_set` and `on_index` are those of its pools.
        """
        self._slices = tuple(slices)
        self.partial = any([each.left_out for each in self._slices])
        self._node_of = node
        self._pod_names = pod_names
        self._cluster_set = cluster_set
        self._on_index = on_index
        self.members = members_of_slices(self._slices, kept, sharers)
        self._distinct = not any([one.shares_address for one in self.members])  # whether no address occurs twice
        self._counts: Callable[[Endpoint], bool] = _ready
        pools = {family: self._pool(_segments(self.members, family), self._distinct) for family in _FAMILIES}
        if terminating_fallback and not _any_ready(pools):
            self.members = ()
            self._counts = _serves_terminating
            pools = self._merged(self._slices)
        if len(self.members) == 1:
            self.members = ()  # no other slice could use it, nor differ in ports
        self.pools = pools
        self._port_pools: dict[int, Mapping[int, Pool]] = {}  # by number of a set in `_port_index`, then family
        self._name_pools: dict[tuple[int, str], Pool] = {}
        self.aliases = tuple(islice(_ready_aliases(self._slices), _MAX_ALIASES))
        self.has_ready = bool(self.aliases) or _any_ready(pools)

    @property
    def ports(self) -> tuple[EndpointPort, ...]:
        """The first 1,000 distinct ports of the slices, in slice order; unnamed ones too."""
        return self._port_index.ports

    @cached_property
    def cluster_ids(self) -> tuple[str, ...]:
        """Of an imported Service: the clusters its slices come from, in slice order (KEP-1645).

        Ids that differ in case alone are one name in DNS (RFC 4343): that of the first slice.
        """
        by_name: dict[str, str] = {}
        for each in self._slices:
            if each.cluster_id:
                by_name.setdefault(each.cluster_id.lower(), each.cluster_id)
        return tuple(by_name.values())

    @cached_property
    def nodes(self) -> frozenset[str]:
        """The Node names of the ready endpoints."""
        pools = self.pools.values()
        return frozenset(each.node_name for pool in pools for each in pool.everyone.endpoints if each.node_name)

    def index(self, keys: Iterable[str]) -> None:
        """Build the indexes of these topology keys, and `nodes`, now instead of on first use."""
        _ = self.nodes  # of all Services at once where a Node's labels change
        for pool in self.pools.values():
            pool.index(keys)

    def pool_for_port(self, family: int, port: EndpointPort) -> Pool:
        """The ready endpoints of a family that expose this port, for SRV and `_port._proto` names."""
        number = self._port_index.set_of(port)
        if not number:
            return self.pools[family] if number == EVERYWHERE else _EMPTY_POOL
        pools = self._port_pools.get(number) or self._port_pools.setdefault(number, self._of_slices(number))
        return pools[family]

    def named(self, endpoint_name: str) -> Mapping[int, Group]:
        """The ready endpoints with this label (`endpoint_label`), by family; never filtered by topology.

        Labels are compared without regard to case. Several endpoints may have the same (KEP-752). A family without any
        is absent.
        """
        name = endpoint_name.lower()
        groups = ((family, self._named_of(family, name)) for family in self.pools)
        return {family: group for family, group in groups if group.endpoints}

    def pool_for_name(self, family: int, endpoint_name: str) -> Pool:
        """The endpoints of `named` in one family as a pool, for the option `filter_hostnames`."""
        group = self.named(endpoint_name).get(family)
        if group is None:
            return _EMPTY_POOL
        key = (family, endpoint_name.lower())
        pool = self._name_pools.get(key)
        if pool is None:
            pool = self._name_pools[key] = self.pools[family].part(group)
        return pool

    def exposing(self, family: int, port: EndpointPort, group: Group) -> Group:
        """The endpoints of `group` that expose this port. `group` is of this family and of a pool of this object."""
        return group if self.pool_for_port(family, port) is self.pools[family] else self.common(family, port, group)

    def common(self, family: int, port: EndpointPort, group: Group) -> Group:
        """The endpoints of `group` that are among those of this object with this port: also of a group of the Backends
        of all clusters, where this object has one cluster of a ServiceImport.
        """
        pool = self.pool_for_port(family, port)
        return self._kept(self._derived, (pool, group), lambda: pool.common(group))

    def joined_addresses(self, groups: Iterable[Group]) -> tuple[bytes, ...]:
        """The distinct addresses of these groups, in order. All groups are of pools of this object."""
        distinct = tuple({id(group): group for group in groups if group.endpoints}.values())
        if len(distinct) < 2:
            return distinct[0].addresses if distinct else ()
        if sum(len(group.endpoints) for group in distinct) < _MANY:
            return _union(distinct)
        return self._kept(self._unions, distinct, lambda: _union(distinct))

    def _kept(
        self,
        derived: dict[tuple[int, ...], tuple[T, Sequence[object]]],
        sources: Sequence[object],
        make: Callable[[], T],
    ) -> T:
        """The value that `make` derives from these pools and groups, cached in `derived` by their identities.

        `derived` is cleared when it has 1,000 values.
        """
        key = tuple(map(id, sources))
        known = derived.get(key)
        if known is None:
            if len(derived) >= _MAX_DERIVED:
                derived.clear()
            known = derived[key] = make(), sources  # a reference to `sources`, so that their id()s stay theirs
        return known[0]

    # The properties below are lazy: most of up to 10,000 Services never need them.

    @cached_property
    def _port_index(self) -> PortIndex:
        return PortIndex(self._slices)

    @cached_property
    def _derived(self) -> dict[tuple[int, ...], tuple[Group, Sequence[object]]]:
        return {}

    @cached_property
    def _unions(self) -> dict[tuple[int, ...], tuple[tuple[bytes, ...], Sequence[object]]]:
        return {}

    @cached_property
    def _named(self) -> dict[tuple[int, str], Group]:
        return {}

    def _named_of(self, family: int, name: str) -> Group:
        known = self._named.get((family, name))
        if known is not None:
            return known
        pool, address, pod_names = self.pools[family], undashed(name), self._pod_names
        found = [each for one in pool.segments for each in one.labels(pod_names).members(name, address)]
        if not found:
            return EMPTY_GROUP  # not cached: clients may query any number of names that do not exist
        whole = len(found) == len(pool.everyone.endpoints)
        made = self._named[family, name] = pool.everyone if whole else group_of(found)
        return made

    def _of_slices(self, number: int) -> Mapping[int, Pool]:
        """The ready endpoints by family of the slices in the set with this number."""
        places = self._port_index.places(number)
        if not self.members or not self._distinct:
            merged = self._merged([self._slices[at] for at in places])
            return {family: _same(self.pools[family], pool) for family, pool in merged.items()}
        members = [self.members[at] for at in places]
        return {family: self._part_of(self.pools[family], _segments(members, family)) for family in _FAMILIES}

    def _merged(self, slices: Sequence[EndpointSlice]) -> dict[int, Pool]:
        """The endpoints by family that count in these slices alone."""
        split_up = split(tuple(chain.from_iterable(distinct_endpoints(slices, self._counts))))
        segments = [() if each is None else (each,) for each in split_up]
        return {family: self._pool(some) for family, some in zip(_FAMILIES, segments, strict=True)}

    def _part_of(self, whole: Pool, segments: Sequence[Segment]) -> Pool:
        return whole if len(segments) == len(whole.segments) else self._pool(segments)

    def _pool(self, segments: Sequence[Segment], distinct: bool = True) -> Pool:
        return Pool(segments, self._node_of, distinct=distinct, cluster_set=self._cluster_set, on_index=self._on_index)


class BackendsTable:
    """The Backends of Services and ServiceImports, built from `slices`; the other arguments are those of Backends.

    The caller reports each change to `invalidate`, `invalidate_slice` or `discard_kept`. After a change of a slice the
    members of the Service's other slices are kept for the next `get`: it costs what the changed slice takes, and little
    for each other one. Their indexes have read the labels of Nodes, so a change of labels discards them too.
    """

    def __init__(
        self,
        slices: SliceTable,
        node: NodeOf,
        terminating_fallback: bool,
        pod_names: bool,
        cluster_set: ClusterSet | None = None,
    ) -> None:
        self.built: dict[ObjectKey, dict[_Part, Backends]] = {}
        self.indexed: set[ObjectKey] = set()  # Services whose Backends or kept members have read labels of Nodes
        self._kept: dict[ObjectKey, dict[str, SliceMembers]] = {}  # by Service, which is not in `built`, and slice
        self._slices = slices
        self._node = node
        self._terminating_fallback = terminating_fallback
        self._pod_names = pod_names
        self._cluster_set = cluster_set
        self._none = self._build((), None, None)

    def get(self, owner: SliceOwner, cluster_id: str = "") -> Backends:
        """The Backends of a Service or ServiceImport; with `cluster_id`, of that cluster's slices only (KEP-1645).

        `cluster_id` is lower-case, and compared with the ids of slices without regard to case (RFC 4343).
        Nothing is cached without slices: names that do not exist must take no memory.
        """
        part = (owner.imported, cluster_id)
        built = self.built.get(owner.key, {}).get(part)
        if built is not None:
            return built
        slices = self._slices.owned.counted(owner)
        if cluster_id:
            slices = tuple(one for one in slices if one.cluster_id.lower() == cluster_id)
        if not slices:
            return self._none
        kept = self._kept.pop(owner.key, None) if part == WHOLE else None
        on_index = partial(self.indexed.add, owner.key)
        built = self._build(slices, self._cluster_set if owner.imported else None, on_index, kept)
        self.built.setdefault(owner.key, {})[part] = built
        return built

    def invalidate(self, key: ObjectKey) -> None:
        """The Service, its policy, or the labels of its endpoints' Nodes changed: discard its Backends and members."""
        self.built.pop(key, None)
        self._kept.pop(key, None)
        self.indexed.discard(key)

    def invalidate_slice(self, key: ObjectKey, slice_name: str) -> None:
        """A slice of the Service was added, changed or removed: discard all but the members of its other slices."""
        parts = self.built.pop(key, None)
        if parts is not None and WHOLE in parts:
            self._kept[key] = {one.slice.name: one for one in parts[WHOLE].members}
        kept = self._kept.get(key)
        if kept is not None:
            kept.pop(slice_name, None)
            if not kept:
                del self._kept[key]
        if not kept:
            self.indexed.discard(key)

    def discard_kept(self) -> None:
        """The labels of a Node changed: discard the kept members of all Services; built Backends stay."""
        self._kept.clear()

    def _build(
        self,
        slices: Sequence[EndpointSlice],
        cluster_set: ClusterSet | None,
        on_index: Callable[[], object] | None,
        kept: dict[str, SliceMembers] | None = None,
    ) -> Backends:
        fallback, sharers = self._terminating_fallback, self._slices.sharers
        return Backends(slices, self._node, fallback, self._pod_names, kept, sharers, cluster_set, on_index)


_EMPTY_POOL: Final = Pool((), lambda _name: None)


def _segments(members: Sequence[SliceMembers], family: int) -> tuple[Segment, ...]:
    some = [one.ipv4 for one in members] if family == 4 else [one.ipv6 for one in members]
    return tuple([each for each in some if each is not None])


def _ready_aliases(slices: Sequence[EndpointSlice]) -> Iterator[tuple[Alias, tuple[EndpointPort, ...]]]:
    return ((alias, one.ports) for one in slices if one.aliases for alias in one.aliases if alias.ready)


def _any_ready(pools: Mapping[int, Pool]) -> bool:
    return any(pool.everyone.endpoints for pool in pools.values())


def _same(known: Pool, pool: Pool) -> Pool:
    """The known pool, which may have indexes and groups, if the other one has the same endpoints."""
    return known if known.everyone.endpoints == pool.everyone.endpoints else pool


def _serves_terminating(endpoint: Endpoint) -> bool:
    return endpoint.serving and endpoint.terminating


def _union(groups: Iterable[Group]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(group.addresses for group in groups)))


def _slices_by_port(slices: Sequence[EndpointSlice]) -> dict[EndpointPort, list[int]]:
    """The positions of the slices with each of the first MAX_PORTS distinct ports, both in slice order."""
    having: dict[EndpointPort, list[int]] = {}
    for at, one in enumerate(slices):
        for port in one.ports or _NO_PORTS:
            members = having.get(port)
            if members is None:
                if len(having) < MAX_PORTS:
                    having[port] = [at]
            elif members[-1] != at:  # a slice may have a port twice
                members.append(at)
    return having
