"""ClusterState: everything watched of one cluster, its indexes, and which facts each change touched.

One writer (`apply`), synchronous, a few microseconds a change. Values handed out are frozen.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, TypeVar

from topodns.cluster.address_index import AddressIndex
from topodns.cluster.backends import Backends
from topodns.cluster.external_index import ExternalIndex
from topodns.cluster.facts import EVERYTHING, Fact, address_fact, namespace_fact, node_fact, service_fact
from topodns.cluster.model import (
    Change,
    ClusterObject,
    Deleted,
    Endpoint,
    EndpointSlice,
    Kind,
    Namespace,
    Node,
    ObjectKey,
    Pod,
    Replaced,
    Service,
    StatefulSet,
    Upserted,
    kind_of,
)
from topodns.cluster.node_index import NodeIndex
from topodns.cluster.policy import InvalidPolicy, KeySource, Policy, misplaced, policy_of
from topodns.cluster.replacement import IDLE, Comparison, Difference, Step, outdated
from topodns.cluster.serial import counts_in_serial
from topodns.cluster.slice_table import SliceOwner, SliceTable, owner_of, placements_of

T = TypeVar("T")
Store = dict[tuple[str, str], T]  # by ObjectKey

_ALL: Final = frozenset((EVERYTHING,))
_WHOLE: Final = (False, "")  # which of a key's Backends: not imported, of no one cluster
_IMPORTED: Final = (True, "")
_SMALL: Final = 100  # endpoints: as many as take about 0.3 ms to build


class ClusterState:
    """`needed` kinds must each have had a Replaced before `synced`; `key_sources` is empty where topology is off."""

    serial: int  # Unix seconds of the last change that CoreDNS would count; 0 before any
    nodes: NodeIndex
    external: ExternalIndex
    revision: int  # grows with every change: what was found out about one revision holds as long as it lasts

    def __init__(
        self,
        needed: frozenset[Kind],
        key_sources: Sequence[KeySource] = (),
        terminating_fallback: bool = False,
        pod_names: bool = False,
    ) -> None:
        self.serial = 0
        self.nodes = NodeIndex()
        self.external = ExternalIndex()
        self.revision = 0
        self.needed = needed
        self._awaited = set(needed)
        self.denied: set[Kind] = set()  # counted as known and empty because nobody may tell us: see do_without
        self._key_sources = tuple(key_sources)
        self._terminating_fallback = terminating_fallback
        self._pod_names = pod_names
        self._namespaces: Store[Namespace] = {}
        self._nodes: Store[Node] = {}
        self._services: Store[Service] = {}
        self._imports: Store[Service] = {}
        self._slices: Store[EndpointSlice] = {}
        self._pods: Store[Pod] = {}
        self._stateful_sets: Store[StatefulSet] = {}
        self._slice_table = SliceTable(self._slices)
        self._cluster_ips = AddressIndex()
        self._pod_ips = AddressIndex()
        self._policies: dict[ObjectKey, Policy | InvalidPolicy] = {}
        self._misplaced: dict[ObjectKey, str] = {}
        self._backends: dict[ObjectKey, dict[tuple[bool, str], Backends]] = {}
        self._no_backends = self._build(())
        self._cold: set[ObjectKey] = set()  # under a policy, and changed since their Backends were built
        self._stores: dict[Kind, Store[Any]] = {
            "Namespace": self._namespaces,
            "Node": self._nodes,
            "Service": self._services,
            "ServiceImport": self._imports,
            "EndpointSlice": self._slices,
            "Pod": self._pods,
            "StatefulSet": self._stateful_sets,
        }
        self._takers: dict[Kind, Callable[[ObjectKey, Any, Any], Collection[Fact]]] = {
            "Namespace": _namespace_facts,
            "Node": self._take_node,
            "Service": self._take_service,
            "ServiceImport": self._take_import,
            "EndpointSlice": self._take_slice,
            "Pod": self._take_pod,
            "StatefulSet": _stateful_set_facts,
        }

    def apply(self, change: Change, wall_seconds: int) -> frozenset[Fact]:
        """Take a change in. Empty when nothing differs, or the change is older than what is held (by `version`).

        A Replaced is atomic and touches only what differs. EVERYTHING stands alone and for all other facts: the first
        Replaced of a needed kind touches it, as does a change of any pod CIDR or of `nodes.pod_cidrs_verified`, since
        clients may be found elsewhere then. A change of a Node's labels touches those Services under a policy whose
        endpoints it moves, if anyone has asked for them.
        """
        if isinstance(change, Replaced):
            facts = frozenset[Fact]().union(*(step.facts for step in self.replace(change, wall_seconds)))
            return _ALL if EVERYTHING in facts else facts
        difference = self._difference(change)
        return self._take_all([difference], wall_seconds) if difference is not None else frozenset()

    def replace(self, change: Replaced, wall_seconds: int, news: Set[ObjectKey] = frozenset()) -> Iterator[Step]:
        """As `apply`, a little with each step; it is done when the iterator ends.

        Between steps the state may be asked, and changed: what is changed meanwhile, and what is under the keys of
        `news`, is newer than the list and stays. All slices of a Service change in one step. A kind becomes synced
        with the last step, which alone of a first list has facts.
        """
        kind = change.kind
        held: Mapping[tuple[str, str], ClusterObject] = self._stores[kind]
        comparison = Comparison(held, change.objects, news)
        for _ in comparison.steps():
            yield IDLE
        first = kind in self._awaited or kind in self.denied
        while comparison.groups:
            differing = [pair for pair in comparison.groups.popleft() if held.get(_one_of(pair).key) is pair[0]]
            facts = self._take_all(differing, wall_seconds)
            # Of a first list the facts are many, and say no more than EVERYTHING.
            yield Step(frozenset() if first else facts, len(differing))
        if first:
            self._awaited.discard(kind)
            self.denied.discard(kind)
            yield Step(_ALL, 0)

    def do_without(self, kind: Kind) -> frozenset[Fact]:
        """Wait no longer for a kind that was never listed and may not be. A list of it, should one come, ends that."""
        if kind not in self._awaited:
            return frozenset()
        self._awaited.discard(kind)
        self.denied.add(kind)
        self.revision += 1
        return _ALL

    def held_twin(self, value: ClusterObject) -> ClusterObject:
        """What is held of an object where that says the same, so that nothing is kept twice; else `value` itself."""
        held: ClusterObject | None = self._stores[kind_of(value)].get(value.key)
        return held if held is not None and held == value and not outdated(held, value.version) else value

    def held(self, kind: Kind, key: ObjectKey) -> ClusterObject | None:
        return self._stores[kind].get(key)

    def slices(self, owner: SliceOwner) -> tuple[EndpointSlice, ...]:
        """The slices that count for a Service or ServiceImport, by name."""
        return self._slice_table.of_owner(owner)

    @property
    def synced(self) -> bool:
        return not self._awaited

    @property
    def known(self) -> frozenset[Kind]:
        """The needed kinds that were listed."""
        return self.needed - self._awaited - self.denied

    @property
    def unsynced(self) -> tuple[Kind, ...]:
        """The needed kinds still waited for."""
        return tuple(sorted(self._awaited))

    def counts(self) -> Mapping[Kind, int]:
        """How many objects of each kind are held."""
        return {kind: len(store) for kind, store in self._stores.items()}

    def namespace(self, name: str) -> Namespace | None:
        return self._namespaces.get(("", name))

    def service(self, key: ObjectKey, imported: bool = False) -> Service | None:
        return (self._imports if imported else self._services).get(key)

    def policy(self, key: ObjectKey) -> Policy | InvalidPolicy | None:
        """The Service's policy, read when it was applied; only of headless Services."""
        return self._policies.get(key)

    def policies(self) -> Mapping[ObjectKey, Policy | InvalidPolicy]:
        """All of them, for metrics, warnings and audit. A live view."""
        return MappingProxyType(self._policies)

    def misplaced_policies(self) -> Mapping[ObjectKey, str]:
        """Services that ask for topology where it has no effect, and why it has none. A live view."""
        return MappingProxyType(self._misplaced)

    def backends(self, key: ObjectKey, imported: bool = False) -> Backends:
        """The Service's endpoints (empty where there are none); rebuilt on first use after a change."""
        parts = self._backends.get(key)  # looked at here, since every question about endpoints passes
        built = parts.get(_IMPORTED if imported else _WHOLE) if parts is not None else None
        return built if built is not None else self._built(SliceOwner(key, imported), "")

    def cluster_backends(self, key: ObjectKey, cluster_id: str) -> Backends:
        """The endpoints of an imported Service that one cluster contributes."""
        return self._built(SliceOwner(key, imported=True), cluster_id)

    def warm(self) -> Iterator[None]:
        """Build, a Service with each step, what the first question about it under its policy would have to wait for.

        Only of Services of at most 100 endpoints: larger ones take too long for one step, and change too often to be
        built before anyone asks. What changes between steps is taken in; when it ends, nothing is left to build.
        """
        while self._cold:
            key = self._cold.pop()
            policy = self._policies.get(key)
            endpoints = sum(len(one.endpoints) for one in self.slices(SliceOwner(key)))
            if isinstance(policy, Policy) and 0 < endpoints <= _SMALL:
                self.backends(key).index(policy.labels)
                yield

    def service_with_address(self, address: bytes) -> Service | None:
        """The first Service that has this ClusterIP."""
        claimants = self._cluster_ips.claimants(address)
        return self._services[claimants[0]] if claimants else None

    def endpoints_with_address(self, address: bytes) -> Sequence[tuple[ObjectKey, Endpoint]]:
        """Every (Service, endpoint) with this address, not-ready ones included, one per Service."""
        return self._slice_table.with_address(address)

    def node(self, name: str) -> Node | None:
        return self._nodes.get(("", name))

    def pods_with_address(self, address: bytes) -> Sequence[Pod]:
        """All Pods that claim this address, hostNetwork ones and terminating ones among them."""
        return tuple(self._pods[key] for key in self._pod_ips.claimants(address))

    def governing_services(self) -> frozenset[ObjectKey]:
        """The Services that some StatefulSet names as its spec.serviceName."""
        return frozenset(
            ObjectKey(each.namespace, each.service_name) for each in self._stateful_sets.values() if each.service_name
        )

    def _difference(self, change: Upserted | Deleted) -> Difference | None:
        """None where nothing differs, and where more is known already than the change says."""
        match change:
            case Upserted(value):
                held: ClusterObject | None = self._stores[kind_of(value)].get(value.key)
                return None if held == value or outdated(held, value.version) else (held, value)
            case Deleted(kind, key, version):
                held = self._stores[kind].get(key)
                return None if held is None or outdated(held, version) else (held, None)

    def _take_all(self, differences: Iterable[Difference], wall_seconds: int) -> frozenset[Fact]:
        self.revision += 1
        verified = self.nodes.pod_cidrs_verified
        facts: set[Fact] = set()
        for old, new in differences:
            facts.update(self._take(kind_of(_one_of((old, new))), old, new))
            facts.update(self.external.take(old, new, wall_seconds))
            if counts_in_serial(old, new):
                self.serial = wall_seconds
        moved = EVERYTHING in facts or verified != self.nodes.pod_cidrs_verified
        return _ALL if moved else frozenset(facts)

    def _take(self, kind: Kind, old: ClusterObject | None, new: ClusterObject | None) -> Collection[Fact]:
        key = _one_of((old, new)).key  # made anew each time: the indexes share this one, for there may be 150,000
        if new is not None:
            self._stores[kind][key] = new
        else:
            del self._stores[kind][key]
        return self._takers[kind](key, old, new)

    def _take_node(self, key: ObjectKey, old: Node | None, new: Node | None) -> Collection[Fact]:
        self.nodes.replace(old, new)
        facts = _node_facts(old, new)
        if old is None or new is None or old.labels != new.labels:
            facts.update(self._moved_services(key.name))
        return facts

    def _moved_services(self, node_name: str) -> Iterator[Fact]:
        """The Services whose endpoints this node's labels place. Their `Backends` have read them, so they go.

        One that was not built since it last changed has been part of no answer; nor, without a policy, have labels.
        """
        for key, policy in self._policies.items():
            built = self._backends.get(key, {}).get(_WHOLE)
            if isinstance(policy, Policy) and built is not None and node_name in built.nodes:
                self._outdate(key)
                yield service_fact(*key)

    def _outdate(self, key: ObjectKey) -> None:
        self._backends.pop(key, None)
        if key in self._policies:
            self._cold.add(key)

    def _take_service(self, key: ObjectKey, old: Service | None, new: Service | None) -> Collection[Fact]:
        old_ips, new_ips = _cluster_ips(old), _cluster_ips(new)
        self._cluster_ips.move(key, old_ips, new_ips)
        self._read_policy(key, new)
        self._outdate(key)
        return {service_fact(*key), *map(address_fact, (*old_ips, *new_ips))}

    def _read_policy(self, key: ObjectKey, service: Service | None) -> None:
        policy = policy_of(service, self._key_sources) if service is not None else None
        if policy is None:
            self._policies.pop(key, None)
        else:
            self._policies[key] = policy
        warning = misplaced(service, self._key_sources) if service is not None else None
        if warning is None:
            self._misplaced.pop(key, None)
        else:
            self._misplaced[key] = warning

    def _take_import(self, key: ObjectKey, _old: Service | None, _new: Service | None) -> Collection[Fact]:
        self._outdate(key)
        return {service_fact(*key)}

    def _take_slice(self, _key: ObjectKey, old: EndpointSlice | None, new: EndpointSlice | None) -> Collection[Fact]:
        for one in (old, new):
            if one is not None:
                self._outdate(owner_of(one).key)
        before, after = placements_of(old), placements_of(new)
        for address, node_name in before - after:
            self.nodes.observe(address, node_name, -1)
        for address, node_name in after - before:
            self.nodes.observe(address, node_name, 1)
        return self._slice_table.replace(old, new)

    def _take_pod(self, key: ObjectKey, old: Pod | None, new: Pod | None) -> Collection[Fact]:
        old_ips, new_ips = _pod_ips(old), _pod_ips(new)
        self._pod_ips.move(key, old_ips, new_ips)
        return set(map(address_fact, (*old_ips, *new_ips)))

    def _built(self, owner: SliceOwner, cluster_id: str) -> Backends:
        """Nothing is kept for a Service without slices: names that do not exist must not take memory."""
        part = (owner.imported, cluster_id)
        built = self._backends.get(owner.key, {}).get(part)
        if built is not None:
            return built
        slices = self._slice_table.of_owner(owner)
        if cluster_id:
            slices = tuple(one for one in slices if one.cluster_id == cluster_id)
        if not slices:
            return self._no_backends
        built = self._backends.setdefault(owner.key, {})[part] = self._build(slices)
        return built

    def _build(self, slices: Sequence[EndpointSlice]) -> Backends:
        return Backends(slices, self.node, self._terminating_fallback, self._pod_names)


def _one_of(difference: Difference) -> ClusterObject:
    held, listed = difference
    one = listed if listed is not None else held
    assert one is not None
    return one


def _namespace_facts(key: ObjectKey, _old: Namespace | None, _new: Namespace | None) -> Collection[Fact]:
    return {namespace_fact(key.name)}


def _stateful_set_facts(_key: ObjectKey, _old: StatefulSet | None, _new: StatefulSet | None) -> Collection[Fact]:
    """None: they only give rise to warnings."""
    return ()


def _node_facts(old: Node | None, new: Node | None) -> set[Fact]:
    """That a Node became ready (or is another machine's now) only settles whose an address is."""
    if _pod_cidrs(old) != _pod_cidrs(new):
        return {EVERYTHING}
    nodes = [node for node in (old, new) if node is not None]
    facts = {address_fact(address) for node in nodes for address in (*node.addresses, *node.tunnel_addresses)}
    if old is None or new is None or replace(old, ready=new.ready, created=new.created) != new:
        facts.add(node_fact(nodes[0].name))
    return facts


def _pod_cidrs(node: Node | None) -> tuple[tuple[bytes, int], ...]:
    return node.pod_cidrs if node is not None else ()


def _cluster_ips(service: Service | None) -> tuple[bytes, ...]:
    return service.cluster_ips if service is not None else ()


def _pod_ips(pod: Pod | None) -> tuple[bytes, ...]:
    return pod.ips if pod is not None else ()
