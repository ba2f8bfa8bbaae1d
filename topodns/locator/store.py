"""The objects that a controller lists and watches: the store of its reflectors.

Of each object only what locators need is held. A change puts the keys of the locators that it affects in the queue of
`pending`.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Set
from sys import intern
from typing import Any, Final, NamedTuple

from topodns.cluster.decode.objects import Decoded, DecodeError
from topodns.cluster.decode.stream import Event
from topodns.cluster.decode.structs import UNREADABLE, ApiOwned, ApiOwnedMetadata, Json, StructReader, read_identity
from topodns.cluster.model import LOCATOR_GROUP, Kind, ObjectKey, Upserted
from topodns.kube.informer.resources import Resource
from topodns.kube.informer.store import Store
from topodns.locator.objects import LocatorKind, StoredLocator, is_older, read_locator
from topodns.locator.pending import PendingWrites
from topodns.locator.projection import (
    KEYED,
    MAX_NAMED,
    PlacedNode,
    PlacedPod,
    Projection,
    named_labels,
    placed_node,
    placed_pod,
)

log = logging.getLogger(__name__)

_PLACED: Final = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="}
_OWNED: Final = StructReader(ApiOwned)

Held = PlacedPod | PlacedNode | StoredLocator | tuple[str, ...]


class KeyedValue(NamedTuple):
    """A held value with its key."""

    key: ObjectKey
    value: Held


def resources(kind: LocatorKind) -> Iterator[Resource]:
    """The resources to list and watch for locators of this kind."""
    yield Resource("Node", "nodes", ("/api/v1/nodes",))
    yield Resource("Service", "services", ("/api/v1/services",))
    yield Resource("Namespace", "namespaces", ("/api/v1/namespaces",), optional=True)
    path = "/apis/multicluster.x-k8s.io/v1alpha1/serviceimports"
    yield Resource("ServiceImport", "serviceimports.multicluster.x-k8s.io", (path,), optional=True, custom=True)
    yield Resource("Pod", "pods", ("/api/v1/pods",), _PLACED)
    yield Resource(kind.kind, f"{kind.plural}.{LOCATOR_GROUP}", (kind.collection,))


class LocatorStore(Store):
    """Pods, Nodes and objects with keys, held by `projection`, and the locators of `kind`, held by `pending`.

    `clock` is that of `pending`, in seconds. `changed` is called after each event, and `listed` after each list, with
    its number of objects.
    """

    def __init__(
        self,
        kind: LocatorKind,
        projection: Projection,
        pending: PendingWrites,
        clock: Callable[[], float],
        changed: Callable[[], None],
        listed: Callable[[Kind, int], None],
    ) -> None:
        self._kind, self._projection = kind, projection
        self.pending, self.clock = pending, clock
        self._changed, self.listed = changed, listed
        self._reported: set[str] = set()  # namespaces whose keys name too many labels

    def decode(self, kind: Kind, source: Json, /) -> Decoded[KeyedValue]:
        """The place of a Pod or Node, the labels that keys name, or a locator as it is stored.

        An object that has none of these is not held. Raises DecodeError.
        """
        try:
            metadata = _OWNED.read(source).metadata
            value = self._read(kind, metadata, source)
        except UNREADABLE as error:
            raise DecodeError(kind, read_identity(source)[1], str(error)) from error
        key = ObjectKey(intern(metadata.namespace or ""), metadata.name)
        return Decoded(metadata, (KeyedValue(key, value),) if value is not None else (), "")

    def count(self, kind: Kind) -> int:
        """The objects of the last list; before the first one, the locators show how many Pods and Nodes there were."""
        return len(self.values(kind)) or self._count_before(kind)

    def _count_before(self, kind: Kind) -> int:
        if kind in KEYED:
            return 0
        if kind == "Pod" and not self._kind.namespaced:
            return self.pending.stored_addresses
        stored = self.pending.stored
        if kind == "Node" and self._kind.namespaced:
            return len({each.content.node for each in stored.values() if each.content is not None})
        return len(stored)

    def new_listing(self, kind: Kind) -> "LocatorListing":
        return LocatorListing(kind, self, self.pending.newest if kind == self._kind.kind else 0)

    def apply(self, kind: Kind, event: Event[KeyedValue]) -> None:
        change = event.change
        key, value = change.object if isinstance(change, Upserted) else (change.key, None)
        self.take(kind, key, value, event.version)
        self._changed()

    def take(self, kind: Kind, key: ObjectKey, value: Any, version: str) -> None:
        """Hold this value; None: the object was deleted, at this resourceVersion."""
        now = self.clock()
        if kind == self._kind.kind:
            self.pending.see(key, value, value.version if value is not None else version, now)
        else:
            self.pending.touch(self._put(kind, key, value), now)

    def _put(self, kind: Kind, key: ObjectKey, value: Any) -> set[ObjectKey]:
        match kind:
            case "Pod":
                return self._projection.set_pod(key, value)
            case "Node":
                return self._projection.set_node(key, value)
        return self._projection.set_keyed(kind, key, value)

    def do_without_steps(self, kind: Kind, seconds: float) -> Iterator[None]:
        """Write locators without the labels that keys of this kind name: its role may be of an older release."""
        self.listed(kind, 0)
        yield

    def values(self, kind: Kind) -> Mapping[ObjectKey, Held]:
        """The held values of a kind."""
        if kind == self._kind.kind:
            return self.pending.stored
        match kind:
            case "Pod":
                return self._projection.pods
            case "Node":
                return self._projection.nodes
        return self._projection.keyed[kind]

    def _read(self, kind: Kind, metadata: ApiOwnedMetadata, source: Json) -> Held | None:
        if kind == self._kind.kind:
            return read_locator(self._kind, source)
        uid = metadata.uid or ""
        match kind:
            case "Pod":
                return placed_pod(uid, source, host_network=self._kind.namespaced)
            case "Node":
                return placed_node(uid, source)
        return self._labels_named(metadata.namespace or metadata.name, named_labels(kind, source)) or None

    def _labels_named(self, namespace: str, names: frozenset[str]) -> tuple[str, ...]:
        admitted = self._projection.admitted(namespace, names)
        if len(admitted) < len(names) and namespace not in self._reported:
            self._reported.add(namespace)
            log.warning("locator: the keys in namespace %s name more than %d labels", namespace, MAX_NAMED)
        return admitted


class LocatorListing:
    """The values of a list that is being read. A list of locators that is older than `newest` is of a restored etcd."""

    def __init__(self, kind: Kind, store: LocatorStore, newest: int) -> None:
        self.version = ""
        self._kind, self._store, self._newest = kind, store, newest
        self._values: dict[ObjectKey, Held | None] = {}

    def __len__(self) -> int:
        return len(self._values)

    def add(self, value: KeyedValue) -> None:
        self._values[value.key] = value.value

    def keep(self, key: ObjectKey) -> None:
        held = self._store.values(self._kind).get(key)
        if held is not None:
            self._values[key] = held

    def remove(self, key: ObjectKey) -> None:
        self._values.pop(key, None)

    def replace_steps(self, newer: Set[ObjectKey]) -> Iterator[int]:
        store, values, listed = self._store, self._values, len(self._values)
        if is_older(self.version, str(self._newest)):
            store.pending.forget_versions()
        held = store.values(self._kind)
        values.update(dict.fromkeys([key for key in held if key not in values]))  # those that are gone
        while values:
            key, value = values.popitem()
            differs = held.get(key) != value and key not in newer
            if differs:
                store.take(self._kind, key, value, self.version)
            yield differs
        store.listed(self._kind, listed)
