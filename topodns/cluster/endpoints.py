"""Endpoints that are answered together, their DNS labels, and their indexes by topology key and value.

A Service may have 5,000 endpoints in 50 slices, of which a change replaces one slice. So indexes are made per segment,
which is usually one slice, and the segments of the other slices are used again (`cluster.backends`). A lookup asks each
segment. A Group is built once and returned again, so callers may cache what they derive from it by its identity.

The first query after a change waits for what is built: loops over all endpoints are comprehensions and C functions.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from ipaddress import AddressValueError, IPv6Address
from itertools import chain
from operator import attrgetter, is_
from struct import Struct
from typing import Final

from topodns.cluster.cluster_set import ClusterSet
from topodns.cluster.label_values import (
    NodeOf,
    Pairs,
    imported_label_of,
    imported_pairs,
    label_of,
    nodes_of,
    own_nodes,
    pairs_of_nodes,
)
from topodns.cluster.model import HOSTNAME_LABEL, Alias, Endpoint
from topodns.dns.addresses import OCTETS
from topodns.dns.name import MAX_LABEL

_HEXTETS: Final = Struct("!8H")
_ZEROS: Final = tuple("-" + "0-" * run for run in range(8, 1, -1))  # zero runs, longest first, for RFC 5952's "::"


def endpoint_label(endpoint: Endpoint, pod_names: bool) -> str:
    """The label of an endpoint: hostname, else the name of its target (if `pod_names`), else dashed IP.

    The target is a Pod or, as in CoreDNS, any other object. What is not one label, as the names of static Pods on Nodes
    with dots in theirs, does not count: an endpoint's name is one label below its Service's (Kubernetes DNS schema
    1.1.0 section 2.4.1). The address is in CoreDNS's spelling: IPv6 in its shortest text (RFC 5952), with a 0 appended
    if it would end in a dash.
    """
    return _own_label(endpoint, pod_names) or _dashed(endpoint.address)


class LabelIndex:
    """Distinct endpoints of one family (`identity_of`) by label. Built on first use.

    Endpoints whose label is their dashed address are indexed by address: parsing one label is cheap, formatting the
    addresses of 5,000 endpoints is not.
    """

    __slots__ = ("_endpoints", "_labelled", "_pod_names", "_unnamed")

    def __init__(self, endpoints: Sequence[Endpoint], pod_names: bool) -> None:
        self._endpoints = endpoints
        self._pod_names = pod_names
        self._labelled: dict[str, list[Endpoint]] | None = None  # by lower-case label
        self._unnamed: dict[bytes, Endpoint | list[Endpoint]] = {}  # by address, which Pods may share

    def members(self, label: str, address: bytes) -> Sequence[Endpoint]:
        """The endpoints with this lower-case label, in order. `address` is `undashed(label)`."""
        labelled = self._labelled if self._labelled is not None else self._build()
        named, unnamed = labelled.get(label, ()), self._unnamed.get(address)
        if unnamed is None:
            return named
        if not isinstance(unnamed, list):
            unnamed = [unnamed]
        if not named:
            return unnamed
        both = set(map(id, chain(named, unnamed)))
        return [endpoint for endpoint in self._endpoints if id(endpoint) in both]

    def _build(self) -> dict[str, list[Endpoint]]:
        labelled: dict[str, list[Endpoint]] = {}
        for endpoint in self._endpoints:
            own = _own_label(endpoint, self._pod_names)
            if own:
                labelled.setdefault(own.lower(), []).append(endpoint)
                continue
            known = self._unnamed.setdefault(endpoint.address, endpoint)
            if isinstance(known, list):
                known.append(endpoint)
            elif known is not endpoint:
                self._unnamed[endpoint.address] = [known, endpoint]
        self._labelled = labelled
        return labelled


def alias_label(alias: Alias, pod_names: bool) -> str:
    """As `endpoint_label`, with dashes for the dots of the host name at last; "" if that is no label."""
    label = _own_label(alias, pod_names) or alias.target.replace(".", "-")
    return label if len(label) <= MAX_LABEL else ""


def _own_label(endpoint: Endpoint | Alias, pod_names: bool) -> str:
    """The hostname or name of the target that is the label; "" if the label is made of the address."""
    hostname = endpoint.hostname
    if hostname and "." not in hostname:
        return hostname
    if not pod_names:
        return ""
    target = endpoint.pod_name or endpoint.other_target
    return target if len(target) <= MAX_LABEL and "." not in target else ""


def _dashed(address: bytes) -> str:
    if len(address) == 4:
        first, second, third, fourth = address
        return f"{first}-{second}-{third}-{fourth}"
    text = "-{:x}-{:x}-{:x}-{:x}-{:x}-{:x}-{:x}-{:x}-".format(*_HEXTETS.unpack(address))
    zeros = next((run for run in _ZEROS if run in text), None)
    if zeros is None:
        return text[1:-1]
    before, _, after = text.partition(zeros)
    return f"{before[1:]}--{after[:-1] or '0'}"


def undashed(label: str) -> bytes:
    """The packed address for which `_dashed` gives exactly this label; b"" if there is none."""
    parts = label.split("-")
    if len(parts) == 4 and OCTETS.keys() >= set(parts):
        return bytes([OCTETS[part] for part in parts])
    try:
        address = IPv6Address(label.replace("-", ":")).packed
    except AddressValueError:
        return b""
    return address if _dashed(address) == label else b""


_Members = Endpoint | list[Endpoint]  # one is stored without a list: of most Nodes a slice has one endpoint

_MAX_OUTSIDE: Final = 8  # groups of `Pool.outside` that a pool keeps: by hostname there is one for each Node

_address: Final = attrgetter("address")
Identity = tuple[bytes, str, str, str]
identity_of: Final[Callable[[Endpoint], Identity]] = attrgetter("address", "hostname", "pod_name", "other_target")
"""Entries of slices with the same address, hostname and target are copies of one endpoint.

Pods in their node's network share an address, and are endpoints of their own.
"""


@dataclass(slots=True, weakref_slot=True)
class Group:
    """Endpoints that are answered together, in slice order.

    Never changed, but not frozen: `object.__setattr__` for each field would double what making one costs.
    """

    endpoints: tuple[Endpoint, ...]
    distinct: bool = field(default=False, compare=False)  # whether the addresses are known to be distinct
    _addresses: tuple[bytes, ...] | None = field(default=None, init=False, repr=False, compare=False)
    # For `topology.guards.bounded`: by (number of endpoints at most, client), and what identifies each endpoint.
    subsets: "dict[tuple[int, str], Group] | None" = field(default=None, init=False, repr=False, compare=False)
    members: tuple[bytes, ...] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def addresses(self) -> tuple[bytes, ...]:
        """The distinct addresses of the endpoints, in order; made on first use, as SRV answers over UDP need none."""
        addresses = self._addresses
        if addresses is None:
            found = map(_address, self.endpoints)
            addresses = tuple(found) if self.distinct else tuple(dict.fromkeys(found))
            self._addresses = addresses
        return addresses


EMPTY_GROUP: Final = Group(())


class Segment:
    """Ready endpoints of one family and, usually, of one slice.

    Its indexes are built on first use and valid until a label of its endpoints' Nodes changes.
    """

    __slots__ = ("_indexes", "_labels", "endpoints")

    def __init__(self, endpoints: tuple[Endpoint, ...]) -> None:
        self.endpoints = endpoints
        self._indexes: dict[Hashable, dict[str | None, _Members]] | None = None
        self._labels: LabelIndex | None = None

    def index(self, name: Hashable, pairs_of: Callable[[Sequence[Endpoint]], Pairs]) -> Mapping[str | None, _Members]:
        """The endpoints by value, in order; those without one are under None if `pairs_of` yields them so.

        The first call for `name` builds the index by `pairs_of`; later ones ignore that argument.
        """
        if self._indexes is None:
            self._indexes = {}
        members = self._indexes.get(name)
        if members is not None:
            return members
        members = {}
        for value, endpoint in pairs_of(self.endpoints):
            some = members.setdefault(value, endpoint)
            if some is endpoint:
                continue  # the first with this value, or a slice has the same hint twice
            if not isinstance(some, list):
                members[value] = [some, endpoint]
            elif some[-1] is not endpoint:
                some.append(endpoint)
        # Most Nodes have their name as hostname: one index serves both.
        kept = self._indexes[name] = next((each for each in self._indexes.values() if each == members), members)
        return kept

    def labels(self, pod_names: bool) -> LabelIndex:
        """The endpoints by their DNS label (`endpoint_label`); `pod_names` must be the same in each call."""
        if self._labels is None:
            self._labels = LabelIndex(self.endpoints, pod_names)
        return self._labels


class _Index:
    """The endpoints by the value of one label or hint, by zone or by Node name.

    A value's Group is built on its first lookup: most never have one.
    """

    __slots__ = ("_counts", "_everyone", "_groups", "segments")

    def __init__(self, everyone: Group, segments: Sequence[Mapping[str | None, _Members]]) -> None:
        self._everyone = everyone
        self.segments = segments
        self._groups: dict[str, Group] = {}
        self._counts: Counter[str] | None = None

    @property
    def complete(self) -> bool:
        """Whether every endpoint has a value. Only for hints: other indexes leave out endpoints without one."""
        return not any(None in members for members in self.segments)

    def group(self, value: str) -> Group | None:
        """The endpoints with this value, None if there are none; `everyone` itself if all have it."""
        known = self._groups.get(value)
        if known is not None:
            return known
        found: list[Endpoint] = []
        for members in self.segments:
            some = members.get(value)
            if some is None:
                continue
            if isinstance(some, list):
                found += some
            else:
                found.append(some)
        if not found:
            return None  # not cached: clients may have any number of other values
        whole = len(found) == len(self._everyone.endpoints)
        made = self._groups[value] = self._everyone if whole else group_of(found)
        return made

    def counts(self) -> Mapping[str, int]:
        """The number of endpoints with each value."""
        counts = self._counts
        if counts is None:
            counts = self._counts = Counter()
            for members in self.segments:
                for value, some in members.items():
                    if value is not None:
                        counts[value] += len(some) if isinstance(some, list) else 1
        return counts


class Pool:
    """The ready endpoints of one family (and, for SRV, of one port) of a Service, indexed by topology key and value.

    The first lookup of a value costs a dictionary access per segment, each later one one or two in all. An index is
    built on first use.
    """

    everyone: Group

    def __init__(
        self,
        segments: Sequence[Segment],
        node_of: NodeOf,
        everyone: Group | None = None,
        distinct: bool = True,
        cluster_set: ClusterSet | None = None,
        on_index: Callable[[], object] | None = None,
    ) -> None:
        """No endpoint is in two segments. `everyone`: the group of all of them, if the caller has it.

        `distinct`: whether no address is in two segments either. `cluster_set`: only of a ServiceImport. `on_index` is
        called before an index of labels of Nodes is built.
        """
        self.cluster_set = cluster_set
        self._on_index = on_index
        self.everyone = everyone if everyone is not None else _everyone(segments, distinct)
        self.segments = segments
        self._node_of = node_of
        self._indexes: list[_Index] = []
        self._by_label: dict[str, _Index] = {}
        self._by_host: dict[tuple[str, str], Group] = {}
        self._by_presence: dict[str, Group] = {}
        self._outside: dict[tuple[str, int], tuple[Group, Group]] = {}

    def matching(self, key: str, value: str) -> Group:
        """The endpoints on Nodes with label `key` of exactly `value`; in constant time after a first match.

        The Node's own label counts. Only without a Node object does the slice's copy: its zone, its topology map.
        For kubernetes.io/hostname, a Node without that label (or without an object) has its name as the value.
        """
        index = self._by_label.get(key)
        if index is None:
            index = self._indexed_by_label(key)
        return index.group(value) or EMPTY_GROUP

    def value_of(self, endpoint: Endpoint, key: str) -> str | None:
        """The value of a topology key at an endpoint of this pool, by which `matching` finds it; None: absent."""
        node = self._node_of(endpoint.node_name)
        if self.cluster_set is not None:
            return imported_label_of(self.cluster_set, node, endpoint, key)
        return label_of(node, endpoint, key)

    def counts(self, key: str) -> Mapping[str, int]:
        """The number of endpoints that `matching` finds by each value of this topology key; values without any are
        absent.
        """
        index = self._by_label.get(key)
        return (index if index is not None else self._indexed_by_label(key)).counts()

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

    def outside(self, key: str, own: Group) -> Group:
        """The endpoints on Nodes with label `key`, as of `matching`, without those of `own`, a group of this pool."""
        if own is self.everyone:
            return EMPTY_GROUP
        labelled = self._labelled(key)
        if not own.endpoints:
            return labelled
        if len(own.endpoints) == len(labelled.endpoints):
            return EMPTY_GROUP
        known = self._outside.get((key, id(own)))
        if known is not None:
            return known[1]
        members = set(map(id, own.endpoints))
        found = group_of(endpoint for endpoint in labelled.endpoints if id(endpoint) not in members)
        if len(self._outside) < _MAX_OUTSIDE:
            self._outside[key, id(own)] = own, found  # with `own`, so that no other group gets its id()
        return found

    def _labelled(self, key: str) -> Group:
        """The endpoints on Nodes with this label, whatever its value."""
        known = self._by_presence.get(key)
        if known is None:
            if sum(self.counts(key).values()) == len(self.everyone.endpoints):
                known = self.everyone
            else:
                known = group_of(endpoint for _, endpoint in self._pairs_of(key)(self.everyone.endpoints))
            self._by_presence[key] = known
        return known

    def part(self, group: Group) -> "Pool":
        """A pool of the endpoints of this group of the pool alone."""
        return Pool(
            (Segment(group.endpoints),), self._node_of, group, cluster_set=self.cluster_set, on_index=self._on_index
        )

    def hinted_for_node(self, node_name: str) -> Group | None:
        """The endpoints hinted for this Node; None if there are none, or if not every endpoint has a hint for Nodes."""
        hints = self._by_node_hint
        return hints.group(node_name) if hints is not None else None

    def hinted_for_zone(self, topology_zone: str) -> Group | None:
        """The endpoints hinted for this zone; None if there are none, or if not every endpoint has a hint for zones."""
        hints = self._by_zone_hint
        return hints.group(topology_zone) if hints is not None else None

    @property
    def has_zone_hints(self) -> bool:
        """Whether every endpoint has a hint for zones."""
        return self._by_zone_hint is not None

    def by_topology_zone(self, value: str) -> Group:
        """The endpoints with this `zone` in their slice, compared case-insensitively; labels of Nodes do not count.

        For names of CoreDNS's option `zonal`.
        """
        return self._by_slice_zone.group(value.lower()) or EMPTY_GROUP

    def index(self, keys: Iterable[str]) -> None:
        """Build the indexes of these topology keys now instead of on first use; groups are still built on first use."""
        for key in keys:
            if key == HOSTNAME_LABEL:
                _ = self._by_node
            self._indexed_by_label(key)

    def _indexed_by_label(self, key: str) -> _Index:
        if self._on_index is not None:
            self._on_index()
        index = self._by_label[key] = self._index(key, self._pairs_of(key))
        return index

    def _pairs_of(self, key: str) -> Callable[[Sequence[Endpoint]], Pairs]:
        """The function that pairs endpoints with their values of a topology key, without those that have none."""
        if self.cluster_set is not None:
            return partial(imported_pairs, self.cluster_set, self._node_of, key)
        return partial(pairs_of_nodes, {}, self._node_of, key)

    def _index(self, name: Hashable, pairs_of: Callable[[Sequence[Endpoint]], Pairs]) -> _Index:
        members = [segment.index(name, pairs_of) for segment in self.segments]
        for known in self._indexes:
            if all(map(is_, known.segments, members)):
                return known  # as the hostname's is the Nodes': a value then has one Group
        made = _Index(self.everyone, members)
        self._indexes.append(made)
        return made

    def _joined(self, labelled: Group, own: Group) -> Group:
        if labelled is own or labelled.endpoints == own.endpoints:
            return labelled
        members = {identity_of(endpoint) for group in (labelled, own) for endpoint in group.endpoints}
        if len(members) == len(labelled.endpoints):
            return labelled
        return group_of(endpoint for endpoint in self.everyone.endpoints if identity_of(endpoint) in members)

    @cached_property
    def _by_node(self) -> _Index:
        return self._index(nodes_of, nodes_of if self.cluster_set is None else partial(own_nodes, self.cluster_set))

    @cached_property
    def _by_node_hint(self) -> _Index | None:
        index = self._index(_node_hints, _node_hints)
        return index if index.complete else None

    @cached_property
    def _by_zone_hint(self) -> _Index | None:
        index = self._index(_zone_hints, _zone_hints)
        return index if index.complete else None

    @cached_property
    def _by_slice_zone(self) -> _Index:
        return self._index(_slice_zones, _slice_zones)

    @cached_property
    def _identities(self) -> frozenset[Identity]:
        return frozenset(map(identity_of, self.everyone.endpoints))

    def common(self, group: Group) -> Group:
        """The endpoints of `group`, which is of the same Backends, that are in this pool, as these or other copies."""
        identities = self._identities
        return group_of(endpoint for endpoint in group.endpoints if identity_of(endpoint) in identities)


def group_of(endpoints: Iterable[Endpoint]) -> Group:
    """A group of these endpoints; EMPTY_GROUP itself if there are none."""
    members = tuple(endpoints)
    return Group(members) if members else EMPTY_GROUP


def _everyone(segments: Sequence[Segment], distinct: bool) -> Group:
    if len(segments) == 1:
        return group_of(segments[0].endpoints)
    endpoints: list[Endpoint] = []
    for segment in segments:
        endpoints += segment.endpoints
    return Group(tuple(endpoints), distinct) if endpoints else EMPTY_GROUP


def _node_hints(endpoints: Sequence[Endpoint]) -> Iterator[tuple[str | None, Endpoint]]:
    return ((hint, endpoint) for endpoint in endpoints for hint in endpoint.node_hints or (None,))


def _zone_hints(endpoints: Sequence[Endpoint]) -> Iterator[tuple[str | None, Endpoint]]:
    return ((hint, endpoint) for endpoint in endpoints for hint in endpoint.zone_hints or (None,))


def _slice_zones(endpoints: Sequence[Endpoint]) -> Iterator[tuple[str, Endpoint]]:
    zones = ((endpoint.topology_zone, endpoint) for endpoint in endpoints)
    return ((topology_zone.lower(), endpoint) for topology_zone, endpoint in zones if topology_zone is not None)
