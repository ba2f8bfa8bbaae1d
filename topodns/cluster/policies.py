"""The topology policies of the headless Services of one cluster, and what they are read from.

A Service without keys of its own may have those of its Namespace or of the Corefile's `default`, unless it governs a
StatefulSet: so its policy also changes with its Namespace and with its EndpointSlices. `ClusterState` calls `take_*`
after each change, and `topology.keys` has the rules.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Final, TypeVar

from topodns.cluster.model import (
    NO_KEYS,
    EndpointSlice,
    InvalidPolicy,
    KeyReader,
    KeySource,
    Namespace,
    Notice,
    ObjectKey,
    Policy,
    Service,
    ServiceKeys,
    StatefulSet,
)
from topodns.cluster.slices import SliceOwner, SliceTable

K = TypeVar("K")
T = TypeVar("T")

_hostname: Final = attrgetter("hostname")


class Policies:
    """The policy of each headless Service that has one, notices about its annotations, and bounds of its answers.

    `namespace_problems`: what is wrong with the topology keys of a Namespace.
    """

    def __init__(
        self,
        reader: KeyReader | None,
        services: Mapping[tuple[str, str], Service],
        namespaces: Mapping[tuple[str, str], Namespace],
        slices: SliceTable,
    ) -> None:
        self.policies: dict[ObjectKey, Policy | InvalidPolicy] = {}
        self.notices: dict[ObjectKey, tuple[Notice, ...]] = {}
        self.max_endpoints: dict[ObjectKey, int] = {}
        self.namespace_problems: dict[str, str] = {}
        self._reader = reader
        self._services, self._namespaces, self._slices = services, namespaces, slices
        self._without_keys: dict[str, set[ObjectKey]] = {}  # headless Services, by namespace
        self._governed: Counter[ObjectKey] = Counter()  # StatefulSets by their governing Service; no zeros

    def take_service(self, key: ObjectKey, new: Service | None) -> None:
        keys = self._read(key, new) if new is not None else NO_KEYS
        some = self._without_keys.setdefault(key.namespace, set())
        if keys.without_own:
            some.add(key)
        else:
            some.discard(key)
        if not some:
            del self._without_keys[key.namespace]
        _put(self.policies, key, keys.policy)
        _put(self.notices, key, keys.notices or None)
        _put(self.max_endpoints, key, keys.max_endpoints)

    def take_namespace(self, key: ObjectKey, old: Namespace | None, new: Namespace | None) -> Iterator[ObjectKey]:
        """The Services whose policy changes with their Namespace."""
        before, after = (each.topology_keys if each is not None else None for each in (old, new))
        if before == after:
            return iter(())  # a Namespace may have 20,000 Services
        problem = self._reader.problem_of(new) if self._reader is not None and new is not None else ""
        _put(self.namespace_problems, key.name, problem or None)
        return self._read_again(tuple(self._without_keys.get(key.name, ())))

    def take_slices(self, key: ObjectKey) -> None:
        """Read the policy of this Service again: with its slices it may govern a StatefulSet now, or no more.

        That matters only where a default gives it keys.
        """
        reader, namespace = self._reader, self._namespaces.get(("", key.namespace))
        has_default = reader is not None and reader.has_defaults
        has_default = has_default or (namespace is not None and namespace.topology_keys is not None)
        if has_default and key in self._without_keys.get(key.namespace, ()):
            deque(self._read_again((key,)), maxlen=0)

    def without_keys(self) -> Iterator[ObjectKey]:
        """The Services that a `default` of the Corefile may give keys, or gives them: they have none, nor has their
        Namespace, and they govern no StatefulSet.
        """
        for key in tuple(chain.from_iterable(self._without_keys.values())):
            policy = self.policies.get(key)
            of_namespace = policy is not None and policy.source is KeySource.NAMESPACE
            if not of_namespace and not self._has_members(key):
                yield key

    def take_stateful_set(self, old: StatefulSet | None, new: StatefulSet | None) -> None:
        for one, number in ((old, -1), (new, 1)):
            if one is not None:
                service = ObjectKey(one.namespace, one.service_name)
                self._governed[service] += number
                if not self._governed[service]:
                    del self._governed[service]

    def governs(self, key: ObjectKey) -> bool:
        """Whether this is the governing Service of a StatefulSet: one names it, or an endpoint has its Pod's name.

        Of a Pod with a hostname and a subdomain the EndpointSlice controller writes the hostname into slices of the
        Service with the subdomain's name only; the hostname of a StatefulSet's Pod is its name, and the subdomain
        spec.serviceName.
        """
        return key in self._governed or self._has_members(key)

    def _has_members(self, key: ObjectKey) -> bool:
        return any(map(_has_members, self._slices.owned.counted(SliceOwner(key))))

    def _read(self, key: ObjectKey, service: Service) -> ServiceKeys:
        if self._reader is None:
            return NO_KEYS
        namespace = self._namespaces.get(("", key.namespace))
        return self._reader.read(service, namespace, partial(self._has_members, key))

    def _read_again(self, services: Iterable[ObjectKey]) -> Iterator[ObjectKey]:
        """The Services of these whose policy changes."""
        for key in services:
            keys = self._read(key, self._services[key])
            _put(self.notices, key, keys.notices or None)  # a TTL, say, is without effect only without keys
            if keys.policy != self.policies.get(key):
                _put(self.policies, key, keys.policy)
                yield key


def _has_members(one: EndpointSlice) -> bool:
    """Whether an endpoint of this slice is a Pod with its own name as its hostname."""
    return any(map(_hostname, one.endpoints)) and any(
        each.hostname and each.hostname == each.pod_name for each in one.endpoints
    )


def _put(values: dict[K, T], key: K, value: T | None) -> None:
    """Set the value of a key; None removes the key."""
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value
