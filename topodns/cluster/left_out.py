"""Objects that a state leaves out, as their namespace has too many octets (`cluster.namespace_budget`).

A placeholder, a small object of the same key, replaces a large one: it changes, is copied to workers and is removed as
the object would be, and says that the object exists. Answers that may depend on what it had are SERVFAIL.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from topodns.cluster.model import ClusterObject, EndpointSlice, Keyed, Kind, ObjectKey, Service

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
