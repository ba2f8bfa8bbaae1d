"""Objects that a state leaves out, as their namespace has too many octets (`cluster.namespace_budget`).

A small object of the same key stands in the place of a large one: it changes, is copied to workers and is removed as
the object would be, and says that the object exists. Answers that may depend on what it had are SERVFAIL.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from topodns.cluster.model import ClusterObject, EndpointSlice, Kind, ObjectKey, Service
from topodns.cluster.owned_slices import HELD
from topodns.cluster.replica import Keyed

if TYPE_CHECKING:
    from topodns.cluster.state import ClusterState

FURTHER: Final = "*"  # no object has this name
"""The name of the Service that stands for all objects of a namespace that nothing stands for: there are too many."""


def stand_in(value: ClusterObject, octets: int) -> ClusterObject | None:
    """The object that stands in the place of one of so many octets; None for a kind of small objects."""
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
    """The Service that stands for all objects of the namespace that nothing else stands for."""
    return Service(namespace, FURTHER, headless=True, left_out=1)


def octets_left_out(value: ClusterObject | None) -> int:
    """The octets of the object in whose place this one stands; 0 if it stands in no other's place."""
    return value.left_out if isinstance(value, (Service, EndpointSlice)) else 0


class LeftOut:
    """The objects that are left out of one state. `octets`: their estimated memory, by kind and key.

    `namespaces`: the number of stand-ins in each namespace that has some.
    """

    def __init__(self) -> None:
        self.octets: dict[tuple[Kind, ObjectKey], int] = {}
        self.namespaces: Counter[str] = Counter()  # no zeros

    def take(self, kind: Kind, changes: Iterable[Keyed]) -> None:
        """Take changes of objects of one kind."""
        for key, old, new in changes:
            octets = octets_left_out(new)
            if octets:
                self.octets[kind, key] = octets
            elif octets_left_out(old):
                del self.octets[kind, key]
            if bool(octets) is not bool(octets_left_out(old)):
                self._count(key.namespace, 1 if octets else -1)

    def _count(self, namespace: str, sign: int) -> None:
        self.namespaces[namespace] += sign
        if not self.namespaces[namespace]:
            del self.namespaces[namespace]

    def counting(self, state: "ClusterState") -> Iterator[tuple[Kind, ObjectKey]]:
        """The kinds and keys of the objects, without slices that count in no answer. The state may change meanwhile."""
        for kind, key in list(self.octets):
            one = state.held(kind, key)
            if one is not None and not (isinstance(one, EndpointSlice) and state.slice_table.place(one) >= HELD):
                yield kind, key

    def may_have(self, kind: Kind, key: ObjectKey) -> bool:
        """Whether an object of this key is left out, or may be, as nothing stands for some of its namespace."""
        return (kind, key) in self.octets or self.cuts(key.namespace)

    def cuts(self, namespace: str) -> bool:
        """Whether objects of this namespace are left out that nothing stands for."""
        return ("Service", ObjectKey(namespace, FURTHER)) in self.octets
