"""A cache, bounded in memory, of the labels of endpoints in SRV answers."""

from collections.abc import Mapping
from itertools import islice
from typing import Final
from weakref import ref

from topodns.cluster.endpoints import Group, endpoint_label
from topodns.dns.name import label_wire
from topodns.memory.bounded import LRUCache

MAX_OCTETS: Final = 1 << 20  # of all labels in one KeptLabels, about

_FEW: Final = 16  # groups of at most so many endpoints are not cached
_LABEL: Final = 110  # octets of a label: the object and its dictionary entry
_PLACE: Final = 170  # octets of a label's entry in the table of addresses, and of its tuple
_ADDRESS: Final = 45  # octets of an address and its entry in a tuple


class KeptLabels:
    """An LRU cache of the labels of groups; of a large group, as many as answers needed so far.

    Groups of up to 16 endpoints are not cached. The cache refers to a group only weakly: the next change of a Service's
    endpoints replaces it, and its labels are not used again. Over `max_octets` in all, the labels of the least recently
    used groups are evicted.
    """

    def __init__(self, pod_names: bool, max_octets: int = MAX_OCTETS) -> None:
        """`pod_names` as for `endpoint_label`."""
        self.pod_names = pod_names
        self._kept: LRUCache[int, _GroupLabels] = LRUCache(max_octets, _octets)  # by identity of the group

    @property
    def octets(self) -> float:
        """Approximate memory of all cached labels."""
        return self._kept.currsize

    def between(self, group: Group, start: int, stop: int) -> list[bytes]:
        """The labels in wire form of the group's endpoints, in order and without repeats: those from index `start` to
        before `stop`; fewer, or none, at the end.
        """
        labels = self._labels(group)
        found = labels.between(group, start, stop)
        self._keep(group, labels)
        return found

    def addresses(self, group: Group) -> Mapping[bytes, tuple[bytes, ...]]:
        """All labels of the group's endpoints in order, each with the addresses under it, without repeats."""
        labels = self._labels(group)
        found = labels.with_addresses(group)
        self._keep(group, labels)
        return found

    def _labels(self, group: Group) -> "_GroupLabels":
        if len(group.endpoints) <= _FEW:
            return _GroupLabels(group, self.pod_names)
        kept = self._kept.get(id(group))
        if kept is not None and kept.group() is group:
            return kept
        return _GroupLabels(group, self.pod_names)  # the key may belong to a group that no longer exists

    def _keep(self, group: Group, labels: "_GroupLabels") -> None:
        """Cache the labels, or count anew what they take by now."""
        if len(group.endpoints) <= _FEW:
            return
        try:
            self._kept[id(group)] = labels
        except ValueError:  # more than `max_octets`
            self._kept.pop(id(group), None)


class _GroupLabels:
    """The labels of one group that were needed so far; references the group only weakly, so each method gets it."""

    __slots__ = ("_addresses", "_looked_at", "_made", "_pod_names", "group")

    def __init__(self, group: Group, pod_names: bool) -> None:
        self.group = ref(group)
        self._pod_names = pod_names
        self._made: dict[bytes, None] = {}
        self._looked_at = 0  # endpoints whose labels were made
        self._addresses: dict[bytes, tuple[bytes, ...]] = {}

    @property
    def octets(self) -> int:
        addresses = sum(map(len, self._addresses.values()))
        return _LABEL * len(self._made) + _PLACE * len(self._addresses) + _ADDRESS * addresses

    def between(self, group: Group, start: int, stop: int) -> list[bytes]:
        made = self._made
        if len(made) < stop and self._looked_at < len(group.endpoints):
            self._make(group, stop)
        return list(islice(made, start, stop))

    def _make(self, group: Group, stop: int) -> None:
        """Make labels of further endpoints until there are `stop` in all, or no more endpoints."""
        made, before = self._made, ""
        for endpoint in islice(group.endpoints, self._looked_at, None):
            self._looked_at += 1
            label = endpoint_label(endpoint, self._pod_names)
            if label == before:
                continue
            before = label
            made[label_wire(label)] = None
            if len(made) >= stop:
                break

    def with_addresses(self, group: Group) -> Mapping[bytes, tuple[bytes, ...]]:
        if not self._addresses:
            self._addresses = self._by_label(group)
        return self._addresses

    def _by_label(self, group: Group) -> dict[bytes, tuple[bytes, ...]]:
        endpoints = group.endpoints
        labels = self.between(group, 0, len(endpoints))
        if len(labels) == 1:
            return {labels[0]: group.addresses}
        if len(labels) == len(endpoints):
            return {label: (endpoint.address,) for label, endpoint in zip(labels, endpoints, strict=True)}
        members: dict[bytes, dict[bytes, None]] = {label: {} for label in labels}
        for endpoint in endpoints:
            members[label_wire(endpoint_label(endpoint, self._pod_names))][endpoint.address] = None
        return {label: tuple(addresses) for label, addresses in members.items()}


def _octets(labels: _GroupLabels) -> int:
    return labels.octets
