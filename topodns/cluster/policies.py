"""The topology policies of the headless Services of one cluster, and what they are read from.

A Service without keys of its own may inherit those of its Namespace or of the Corefile's `default`, unless it governs a
StatefulSet. What it inherits is read at the first lookup and kept by Namespace, so that a change of a Namespace drops
one table, however many Services it has. `ClusterState` calls `take_*` after each change, and `topology.keys` has the
rules.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
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
    StatefulSet,
)
from topodns.cluster.slices import SliceOwner, SliceTable

K = TypeVar("K")
T = TypeVar("T")

_hostname: Final = attrgetter("hostname")


class Policies:
    """The policy of each headless Service that has one, notices about its annotations, and bounds of its answers.

    `own`: those of the Services' own keys. `namespace_problems`: what is wrong with the topology keys of a Namespace.
    """

    def __init__(
        self,
        reader: KeyReader | None,
        services: Mapping[tuple[str, str], Service],
        namespaces: Mapping[tuple[str, str], Namespace],
        slices: SliceTable,
    ) -> None:
        self.max_endpoints: dict[ObjectKey, int] = {}
        self.namespace_problems: dict[str, str] = {}
        self._reader = reader
        self._services, self._namespaces, self._slices = services, namespaces, slices
        self.own: dict[ObjectKey, Policy | InvalidPolicy] = {}
        self._notices: dict[ObjectKey, tuple[Notice, ...]] = {}
        self._without_effect: dict[ObjectKey, tuple[Notice, ...]] = {}  # while the Service inherits no keys
        self._without_keys: dict[str, set[ObjectKey]] = {}  # headless Services, by namespace
        self._inherited: dict[str, dict[ObjectKey, Policy | None]] = {}  # of these, as far as looked up
        self._governed: Counter[ObjectKey] = Counter()  # StatefulSets by their governing Service; no zeros

    def get(self, key: ObjectKey) -> Policy | InvalidPolicy | None:
        """The policy of a Service; None: no filtering."""
        policy = self.own.get(key)
        if policy is None and self._may_inherit(key):
            inherited = self._inherited.setdefault(key.namespace, {})
            if key not in inherited:
                inherited[key] = self._read_inherited(key)
            policy = inherited[key]
        return policy

    def all(self) -> dict[ObjectKey, Policy | InvalidPolicy]:
        """The policies by Service, looked up now as far as `look_up_steps` has not done so."""
        for _ in self.look_up_steps():
            pass
        found: dict[ObjectKey, Policy | InvalidPolicy | None] = {**self.own}
        for inherited in self._inherited.values():
            found |= inherited
        return {key: policy for key, policy in found.items() if policy is not None}

    def look_up_steps(self) -> Iterator[None]:
        """Look up what Services inherit, one in each step: after a change of a Namespace there may be 20,000."""
        for namespace, keys in tuple(self._without_keys.items()):
            if self._passes_on(namespace) and len(self._inherited.get(namespace, ())) < len(keys):
                for key in tuple(keys):
                    self.get(key)
                    yield
            yield

    def may_have(self, key: ObjectKey) -> bool:
        """Whether a Service has a policy, or will have inherited one unless it governs a StatefulSet."""
        return key in self.own or self._may_inherit(key)

    def notices(self, key: ObjectKey) -> tuple[Notice, ...]:
        """The notices about the annotations of a Service."""
        some = self._notices.get(key, ())
        if key in self._without_effect and self.get(key) is None:  # a TTL, say, is without effect only without keys
            some += self._without_effect[key]
        return some

    def noted(self) -> tuple[ObjectKey, ...]:
        """The Services that may have notices."""
        return tuple({**self._notices, **self._without_effect})

    def take_service(self, key: ObjectKey, new: Service | None) -> None:
        keys = self._reader.read(new) if new is not None and self._reader is not None else NO_KEYS
        some = self._without_keys.setdefault(key.namespace, set())
        if keys.without_own:
            some.add(key)
        else:
            some.discard(key)
        if not some:
            del self._without_keys[key.namespace]
        self.take_slices(key)
        _put(self.own, key, keys.policy)
        _put(self._notices, key, keys.notices or None)
        _put(self._without_effect, key, keys.without_effect or None)
        _put(self.max_endpoints, key, keys.max_endpoints)

    def take_namespace(self, key: ObjectKey, old: Namespace | None, new: Namespace | None) -> None:
        before, after = (each.topology_keys if each is not None else None for each in (old, new))
        if before != after:
            problem = self._reader.problem_of(new) if self._reader is not None and new is not None else ""
            _put(self.namespace_problems, key.name, problem or None)
            self._inherited.pop(key.name, None)

    def take_slices(self, key: ObjectKey) -> None:
        """With its slices this Service may govern a StatefulSet now, or no more: what it inherits is read again."""
        inherited = self._inherited.get(key.namespace)
        if inherited is not None:
            inherited.pop(key, None)

    def without_keys(self) -> Iterator[ObjectKey]:
        """The Services that a `default` of the Corefile may give keys, or gives them: they have none, nor has their
        Namespace, and they govern no StatefulSet.
        """
        for key in tuple(chain.from_iterable(self._without_keys.values())):
            policy = self.get(key)
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

    def _may_inherit(self, key: ObjectKey) -> bool:
        return self._passes_on(key.namespace) and key in self._without_keys.get(key.namespace, ())

    def _passes_on(self, namespace: str) -> bool:
        """Whether a Service in this namespace may have keys that it has not itself."""
        if self._reader is None or self._reader.has_defaults:
            return self._reader is not None
        found = self._namespaces.get(("", namespace))
        return found is not None and found.topology_keys is not None

    def _read_inherited(self, key: ObjectKey) -> Policy | None:
        assert self._reader is not None
        policy = self._reader.inherited(self._services[key], self._namespaces.get(("", key.namespace)))
        return None if policy is None or self._has_members(key) else policy


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
