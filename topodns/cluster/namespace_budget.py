"""A budget of octets for the objects of a cluster, so that no namespace takes the memory of the others.

A user of one namespace can make any number of objects, as large as etcd takes. Where all objects together need
more octets than there are, the namespace that has the most loses its largest objects, and no other one loses any. The
octets of an object are estimated: its memory in CPython 3.11 with all indexes, and with those that queries build. The
number of octets: `memory.budget.cluster_octets`.

A placeholder, a small object of the same key, replaces an object that is left out: it changes, is copied to workers and
is removed as the object would be, and says that the object exists. Answers that may depend on what it had are SERVFAIL.
"""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple
from weakref import WeakSet, finalize

from topodns.cluster.model import (
    Alias,
    ClusterObject,
    EndpointSlice,
    Keyed,
    Kind,
    MisannotatedPod,
    Node,
    NodeLocator,
    ObjectKey,
    Pod,
    PodLocator,
    Service,
    kind_of,
)

_OTHER: Final = 800  # a Pod takes 570 to 750 octets, a PodLocator with few labels less
_SHARED_LABELS: Final = 900  # some four labels, which most PodLocators share with the others of their Node
_NODE: Final = 1700
_STAND_IN: Final = 800
_SERVICE: Final = 800
_PORT: Final = 200
_ADDRESS: Final = 110
_SLICE: Final = 5000  # of these 3,600 for the Backends of a Service, which has one slice at least
_ENDPOINT: Final = 420
_HOSTNAME: Final = 160
_NODE_NAME: Final = 300
_FEW: Final = 100  # names of Nodes that slices share; the EndpointSlice controller puts no more endpoints in a slice
_TOPOLOGY: Final = 260  # an entry of a topology map
_HINT: Final = 110
_LABEL: Final = 180  # of a Pod; of a PodLocator without its text
UNLIMITED: Final = 1 << 62
_MOST: Final = 32 << 20  # octets; no object has so many, as etcd takes 1.5 MiB and lists are cut when they are decoded
LARGE: Final = 4096
"""Octets from which on an object is large: of each that is, the budget knows the octets."""

_hostname: Final = attrgetter("hostname")
_node_name: Final = attrgetter("node_name")
_pod_name: Final = attrgetter("pod_name")
_other_target: Final = attrgetter("other_target")


def octets_of(value: ClusterObject) -> int:
    """The estimated memory of an object in a state, in octets."""
    if isinstance(value, EndpointSlice):
        return _STAND_IN if value.left_out else _slice_octets(value)
    if isinstance(value, Service):
        return _STAND_IN if value.left_out else _service_octets(value)
    if isinstance(value, Pod):
        names = sum(len(each.name) for each in value.bad) if isinstance(value, MisannotatedPod) else 0
        return _OTHER + _ADDRESS * max(0, len(value.ips) - 2) + names + _LABEL * len(value.labels)
    if isinstance(value, PodLocator):
        labels = sum(_LABEL + len(name) + len(text) for name, text in value.node_labels)
        return _OTHER + max(0, labels - _SHARED_LABELS)
    return _NODE if isinstance(value, (Node, NodeLocator)) else _OTHER


def _slice_octets(one: EndpointSlice) -> int:
    endpoints = one.endpoints
    octets = _SLICE + _PORT * len(one.ports) + _ENDPOINT * len(endpoints) + sum(map(len, map(_pod_name, endpoints)))
    octets += _HOSTNAME * sum(map(bool, map(_hostname, endpoints))) + sum(map(len, map(_other_target, endpoints)))
    octets += sum(map(_alias_octets, one.aliases))
    if len(endpoints) > _FEW:
        octets += _NODE_NAME * max(0, len(set(map(_node_name, endpoints))) - _FEW)
    for each in endpoints:
        if each.topology or each.zone_hints or each.node_hints:
            octets += _TOPOLOGY * len(each.topology) + _HINT * (len(each.zone_hints) + len(each.node_hints))
    return octets


def _alias_octets(alias: Alias) -> int:
    return _ENDPOINT + sum(map(len, (alias.target, alias.hostname, alias.other_target)))


def _service_octets(service: Service) -> int:
    addresses = len(service.cluster_ips) + len(service.external_ips)
    inputs = service.topology
    texts = [*service.external_hostnames, service.external_name or "", *(each.name for each in inputs.bad)]
    lists = (inputs.annotation or "", inputs.superedge or "", *(inputs.field or ()))
    size = sum(map(len, texts)) + 2 * sum(map(len, lists))  # as written, and parsed
    return _SERVICE + _PORT * len(service.ports) + _ADDRESS * addresses + size


class Entry(NamedTuple):
    """An object of a holder."""

    kind: Kind
    key: ObjectKey


class _Account:
    """The objects of one namespace that one holder has; the large ones by the binary logarithm of their octets."""

    __slots__ = ("large", "octets")

    def __init__(self) -> None:
        self.octets = 0
        self.large: dict[int, dict[Entry, int]] = {}

    def add(self, one: Entry, octets: int) -> None:
        self.octets += octets
        if octets >= LARGE:
            self.large.setdefault(octets.bit_length(), {})[one] = octets

    def remove(self, one: Entry, value: ClusterObject) -> int:
        """Remove this object, which was added; its octets. Those of a large one need not be estimated again."""
        for size, of_size in self.large.items():
            octets = of_size.pop(one, 0)
            if octets:
                if not of_size:
                    del self.large[size]
                break
        else:
            octets = octets_of(value)
        self.octets -= octets
        return octets

    @property
    def largest_size(self) -> int:
        return max(self.large, default=0)


class ObjectHolder(ABC):
    """A holder of objects that count in a budget: a state, or a list that is being read.

    One that has been garbage-collected holds none.
    """

    def __init__(self, budget: "NamespaceBudget") -> None:
        self.accounts: defaultdict[str, _Account] = defaultdict(_Account)
        self.budget = budget
        self._sum = budget.sum_for(self)

    @property
    def octets(self) -> int:
        return self._sum.octets

    def charge(self, kind: Kind, key: ObjectKey, old: ClusterObject | None, new: ClusterObject | None) -> None:
        """Count a change of an object of the holder; None: there is none."""
        one, account = Entry(kind, key), self.accounts[key.namespace]
        before = account.remove(one, old) if old is not None else 0
        after = octets_of(new) if new is not None else 0
        if after:
            account.add(one, after)
        self._sum.octets += after - before
        if before and not account.octets:
            del self.accounts[key.namespace]

    def follow(self, kind: Kind, changes: Iterable[Keyed]) -> None:
        """Count changes of objects of one kind."""
        for change in changes:
            self.charge(kind, *change)

    @abstractmethod
    def leave_out(self, kind: Kind, key: ObjectKey) -> None:
        """Replace this large object by its placeholder."""

    @abstractmethod
    def drop(self, namespace: str, octets: int) -> bool:
        """Remove small objects of a namespace with so many octets; False if there are none to remove."""


class _Sum:
    """The octets of one holder."""

    __slots__ = ("octets",)

    def __init__(self) -> None:
        self.octets = 0


class NamespaceBudget:
    """The octets of the objects of one cluster, which `limit` bounds.

    Objects of no namespace are the operator's: they count, and none is left out.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.holders: WeakSet[ObjectHolder] = WeakSet()
        self._sums: list[_Sum] = []  # of the holders: each change of an object reads them
        self.times: Counter[Kind] = Counter()  # that an object was left out, with a placeholder or without
        self.cut: set[tuple[Kind, str]] = set()  # (kind, namespace) with objects left out that have no placeholder

    @property
    def octets(self) -> int:
        return sum([each.octets for each in self._sums])

    def sum_for(self, holder: ObjectHolder) -> _Sum:
        """The sum of a new holder, which counts until the holder is garbage-collected."""
        self.holders.add(holder)
        self._sums.append(one := _Sum())
        finalize(holder, self._sums.remove, one).atexit = False
        return one

    def admits(self, value: ClusterObject, held: ClusterObject | None = None) -> bool:
        """Whether an object may be taken in the place of `held`: there is room, or `make_room` finds larger ones.

        So it is not only taken to be left out at once.
        """
        free = self.limit - self.octets
        if free >= _MOST:
            return True
        octets = octets_of(value)
        if octets <= free:  # of most objects; those in whose place they are taken need not be looked at
            return True
        namespace, more = value.key.namespace, octets - (octets_of(held) if held is not None else 0)
        if more <= 0 or not namespace or more <= free:
            return True
        own = self._of(namespace) + more
        if 2 * own < self.limit and own < self._most()[1]:
            return True
        size = max((holder.accounts[namespace].largest_size for holder in self._with(namespace)), default=0)
        return size > (octets.bit_length() if octets >= LARGE else 0)

    def fitting(self, value: ClusterObject, held: ClusterObject | None) -> ClusterObject | None:
        """The object if there is room for it instead of `held`, else its placeholder; None if there is none for that.

        Of an object without a placeholder only its namespace is remembered.
        """
        if self.admits(value, held):
            return value
        other = self.instead(value)
        if other is not None and not self.admits(other, held):
            self.cut.add((kind_of(value), value.key.namespace))
            return None
        return other

    def instead(self, value: ClusterObject) -> ClusterObject | None:
        """The placeholder of an object that is left out; None, and the namespace is cut, where its kind has none."""
        octets = octets_of(value)
        self.times[kind_of(value)] += 1
        other = placeholder(value, octets) if octets >= LARGE else None
        if other is None:
            self.cut.add((kind_of(value), value.key.namespace))
        return other

    def make_room(self) -> None:
        """Have the largest objects of the largest namespace left out, until the others fit."""
        while (excess := self.octets - self.limit) > 0:
            namespace, _ = self._most()
            holders = list(self._with(namespace))
            largest = max(holders, key=lambda holder: holder.accounts[namespace].largest_size, default=None)
            if largest is None:
                return
            if size := largest.accounts[namespace].largest_size:
                largest.leave_out(*next(reversed(largest.accounts[namespace].large[size])))
            elif not any([holder.drop(namespace, excess + self.limit // 64) for holder in holders]):
                return

    def room_for(self, octets: int) -> bool:
        """Whether there is room for an object of so many octets, and a little more: so that it does not come and go."""
        return self.octets + octets <= self.limit - self.limit // 32

    def _of(self, namespace: str) -> int:
        return sum([holder.accounts[namespace].octets for holder in self._with(namespace)])

    def _with(self, namespace: str) -> Iterator[ObjectHolder]:
        return (holder for holder in self.holders if namespace in holder.accounts)

    def _most(self) -> tuple[str, int]:
        """The namespace that has the most octets, and these."""
        sums: Counter[str] = Counter()
        for holder in self.holders:
            for name, account in holder.accounts.items():
                if name:
                    sums[name] += account.octets
        return max(sums.items(), key=itemgetter(1), default=("", 0))


FURTHER: Final = "*"  # no object has this name
"""The name of the placeholder of all objects of a namespace that have none of their own: they are too many."""


def placeholder(value: ClusterObject, octets: int) -> ClusterObject | None:
    """The placeholder of an object of so many octets; None for a kind of small objects."""
    match value:
        case Service(namespace, name) if name != FURTHER:
            return Service(
                namespace, name, headless=True, imported=value.imported, left_out=octets, version=value.version
            )
        case EndpointSlice(namespace, name):
            return EndpointSlice(
                namespace,
                name,
                value.service_name,
                value.address_type,
                generation=value.generation,
                imported=value.imported,
                cluster_id=value.cluster_id,
                mirrored=value.mirrored,
                left_out=octets,
                version=value.version,
            )
    return None


def further(namespace: str) -> Service:
    """The placeholder of all objects of the namespace that have none of their own."""
    return Service(namespace, FURTHER, headless=True, left_out=1)


def octets_left_out(value: ClusterObject | None) -> int:
    """The octets of the object of which this one is the placeholder; 0 if it is none."""
    return value.left_out if isinstance(value, (Service, EndpointSlice)) else 0


class LeftOut:
    """The objects that are left out of one state. `octets`: their estimated memory, by kind and key.

    `namespaces`: the number of placeholders in each namespace that has some.
    """

    def __init__(self) -> None:
        self.octets: dict[tuple[Kind, ObjectKey], int] = {}
        self.namespaces: Counter[str] = Counter()  # no zeros

    def take(self, kind: Kind, changes: Iterable[Keyed]) -> None:
        """Take changes of objects of one kind."""
        for key, old, new in changes:
            before, octets = octets_left_out(old), octets_left_out(new)
            if octets:
                self.octets[kind, key] = octets
            elif before:
                del self.octets[kind, key]
            if bool(octets) is not bool(before):
                self._count(key.namespace, 1 if octets else -1)

    def _count(self, namespace: str, sign: int) -> None:
        self.namespaces[namespace] += sign
        if not self.namespaces[namespace]:
            del self.namespaces[namespace]

    def may_have(self, kind: Kind, key: ObjectKey) -> bool:
        """Whether an object of this key is left out, or may be, as some of its namespace have no placeholder."""
        return (kind, key) in self.octets or self.cuts(key.namespace)

    def cuts(self, namespace: str) -> bool:
        """Whether objects of this namespace are left out that have no placeholder."""
        return ("Service", ObjectKey(namespace, FURTHER)) in self.octets
