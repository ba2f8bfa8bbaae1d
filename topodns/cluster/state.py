"""ClusterState: the watched objects of one cluster, their indexes, and the dependencies (`Fact`) that a change touches.

One writer (`apply`), synchronous, a few microseconds a change. Returned values are frozen.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from topodns.cluster.address_index import AddressIndex, ExternalIndex
from topodns.cluster.backends import IMPORTED, WHOLE, Backends, BackendsTable
from topodns.cluster.cluster_set import ClusterSet
from topodns.cluster.known_kinds import KnownKinds, Restored
from topodns.cluster.list_diff import IDLE, DiffStep, ListDiff, one_of, outdated
from topodns.cluster.locator_index import AnyLocator, LocatorIndex, node_of
from topodns.cluster.model import (
    Change,
    ClusterObject,
    Deleted,
    Endpoint,
    EndpointSlice,
    Keyed,
    KeyReader,
    Kind,
    MisannotatedPod,
    Namespace,
    Node,
    ObjectKey,
    Pod,
    Policy,
    Replaced,
    Service,
    StatefulSet,
    kind_of,
)
from topodns.cluster.namespace_budget import FURTHER, LeftOut
from topodns.cluster.node_index import NodeIndex, facts_of_change
from topodns.cluster.node_labels import NodeLabels
from topodns.cluster.policy_table import Policies
from topodns.cluster.slices import HELD, SliceOwner, SliceTable
from topodns.cluster.soa_serial import counts_in_serial
from topodns.cluster.unknown_names import UnknownNames
from topodns.dependency import EVERYTHING, Fact, address_facts, namespace_fact, node_fact, service_fact

T = TypeVar("T")
Annotated = Namespace | Node | EndpointSlice
Store = dict[tuple[str, str], T]  # by ObjectKey


class _Table(NamedTuple):
    """The objects of one kind, and the function that takes a change of one (key, old, new) into the indexes."""

    store: Store[Any]
    take: Callable[[ObjectKey, Any, Any], Collection[Fact]]


class Journal(Protocol):
    """Receives the changes of a state in order: with all of them a copy in another process stays equal to the original.

    A Protocol, as what writes it is above this package: `app.workers.copies.FeedJournal`.
    """

    def taken(self, kind: Kind, changes: Sequence[Keyed], wall_seconds: int) -> None:
        """Record changes of objects that the state applies together, just before it does."""

    def synced(self, kind: Kind, denied: bool) -> None:
        """Record that the kind is synced from now on: its first list is complete or, if `denied`, RBAC forbids it."""

    def restored(self, restored: Restored | None) -> None:
        """Record that the objects of these kinds are of a snapshot; None: that they are dropped."""

    def when_copied(self, action: Callable[[], object]) -> None:
        """Call `action` once all copies have all changes so far."""


Follower = Callable[[Kind, Sequence[Keyed]], object]
_ALL: Final = frozenset((EVERYTHING,))
MOST_MISANNOTATED: Final = 1000  # Pods, and objects of the other kinds together, that are kept for warnings
_SMALL: Final = 100  # endpoints; building so many takes about 0.3 ms


class ClusterState(KnownKinds):
    """The objects of one cluster and their indexes.

    `needed` as of KnownKinds. `read_keys`: reads the topology keys of a
    Service; None if topology is off. `all_pods`: whether the source has every Pod of the cluster, not a selection;
    counts only if Pods are needed. `of_files`: the source is files, which have every Pod only if they have one at all.
    `cluster_id`: that of this cluster among others, by the Corefile.
    """

    serial: int  # SOA serial: Unix seconds of the last change that counts in CoreDNS; 0 before any
    unchecked_slices: set[ObjectKey]  # changed, or an address in them did; `Contradictions.check` empties it
    revision: int  # grows with every change; results derived from the state are valid for one revision
    journal: Journal | None = None  # None: there are no copies of this state

    def __init__(
        self,
        needed: frozenset[Kind],
        read_keys: KeyReader | None = None,
        terminating_fallback: bool = False,
        pod_names: bool = False,
        all_pods: bool = False,
        of_files: bool = False,
        cluster_id: str = "",
    ) -> None:
        super().__init__(needed)
        self.serial = self.revision = 0
        self.nodes, self.locators, self.external = NodeIndex(), LocatorIndex(), ExternalIndex()
        self._verified = self.nodes.pod_cidrs_verified
        imports = self.cluster_set = ClusterSet(read_keys, cluster_id)
        self.left_out = LeftOut()
        self.followers: list[Follower] = [self.left_out.take]  # called with changes of objects, before these are taken
        self.selected = not all_pods  # `labels` of `kubernetes` selects Services, EndpointSlices and Pods
        self._all_pods = all_pods and "Pod" in needed
        self.of_files = of_files
        self._namespaces: Store[Namespace] = {}
        self._nodes: Store[Node] = {}
        self._services: Store[Service] = {}
        self._imports: Store[Service] = {}
        self._slices: Store[EndpointSlice] = {}
        self._pods: Store[Pod] = {}
        self._stateful_sets: Store[StatefulSet] = {}
        self.slice_table = SliceTable(self._slices)
        self.unchecked_slices = set()
        self._cluster_ips: AddressIndex[ObjectKey] = AddressIndex()
        self._pod_ips: AddressIndex[ObjectKey] = AddressIndex()
        self.policies = Policies(read_keys, self._services, self._namespaces, self.slice_table)
        self._backends = BackendsTable(self.slice_table, self.node, terminating_fallback, pod_names, self.cluster_set)
        self._built = self._backends.built
        self._unseen = False  # see `take_all`
        self._unbuilt: set[ObjectKey] = set()  # Services with a policy whose Backends are outdated and not built again
        self.namespaces: Mapping[tuple[str, str], Namespace] = MappingProxyType(self._namespaces)  # live, as below
        self.services: Mapping[tuple[str, str], Service] = MappingProxyType(self._services)
        self.imports: Mapping[tuple[str, str], Service] = MappingProxyType(self._imports)
        self.pods: Mapping[tuple[str, str], Pod] = MappingProxyType(self._pods)
        self.max_endpoints: Mapping[ObjectKey, int] = MappingProxyType(self.policies.max_endpoints)
        self.node_labels, self.unknown_nodes = NodeLabels(), UnknownNames(self.all_nodes)
        self.unknown_namespaces = UnknownNames(lambda: [name for _, name in self._namespaces])
        self.misannotated_pods: dict[ObjectKey, MisannotatedPod] = {}  # at most MOST_MISANNOTATED
        self.misannotated: dict[tuple[type[Annotated], ObjectKey], Annotated] = {}  # likewise
        self._tables: dict[Kind, _Table] = {
            "Namespace": _Table(self._namespaces, self._take_namespace),
            "Node": _Table(self._nodes, self._take_node),
            "Service": _Table(self._services, self._take_service),
            "ServiceImport": _Table(self._imports, lambda key, _, new: self._touch(imports.take_import(key, new))),
            "EndpointSlice": _Table(self._slices, self._take_slice),
            "Pod": _Table(self._pods, self._take_pod),
            "NodeLocator": _Table(self.locators.node_locators, self._take_locator),
            "PodLocator": _Table(self.locators.pod_locators, self._take_locator),
            "StatefulSet": _Table(self._stateful_sets, self._take_stateful_set),
            "ClusterProperty": _Table(imports.properties, lambda _, __, new: self._touch(imports.take_property(new))),
        }

    def apply(self, change: Change, wall_seconds: int) -> frozenset[Fact]:
        """Apply a change and return the dependencies it touches.

        Empty if nothing differs, or if the change is older (by `version`) than the held object. A Replaced is atomic
        and touches only what differs. EVERYTHING is returned alone and includes all others: for the first Replaced of a
        needed kind, and for a change of any pod CIDR or of `nodes.pod_cidrs_verified`, since clients may be located
        elsewhere then. A change of a Node's labels also touches the Services with endpoints on that Node, if their
        Backends have read labels.
        """
        if isinstance(change, Replaced):
            facts = frozenset[Fact]().union(*(step.facts for step in self.replace_steps(change, wall_seconds)))
            return _ALL if EVERYTHING in facts else facts
        if isinstance(change, Deleted):
            return self.put(change.kind, change.key, None, change.version, wall_seconds)
        new = change.object
        return self.put(kind_of(new), new.key, new, new.version, wall_seconds)

    def put(
        self, kind: Kind, key: ObjectKey, new: ClusterObject | None, version: int, wall_seconds: int
    ) -> frozenset[Fact]:
        """As `apply`, for the object of this kind and key; None: it was deleted. `version` is that of the change."""
        held: ClusterObject | None = self._tables[kind].store.get(key)
        if held == new or outdated(held, version):
            return frozenset()
        self.locators.listing = kind in self._awaited
        return self.take_all(kind, [(key, held, new)], wall_seconds)

    def replace_steps(
        self, change: Replaced, wall_seconds: int, newer: Set[ObjectKey] = frozenset()
    ) -> Iterator[DiffStep]:
        """As `apply`, in small steps, so that queries can be answered between them; done when the iterator ends.

        Between steps the state may be read and changed. Objects changed meanwhile, and those under the keys of `newer`,
        which may grow, are newer than the list and stay. All slices of a Service change in one step, unless they are
        very many. The kind becomes synced with the last step; of a first list only that step has facts, except where
        it replaces the objects of a snapshot.
        """
        self.replacing.add(change.kind)
        try:
            yield from self._replace_steps(change, wall_seconds, newer)
        finally:
            self.replacing.discard(change.kind)

    def _replace_steps(self, change: Replaced, wall_seconds: int, newer: Set[ObjectKey]) -> Iterator[DiffStep]:
        kind = change.kind
        held: Mapping[tuple[str, str], ClusterObject] = self._tables[kind].store
        comparison = ListDiff(held, change.objects, newer)
        for _ in comparison.steps():
            yield IDLE
        first = kind in self._awaited or kind in self.denied
        if first:
            self.locators.recheck_all()
        for differences in comparison.applied_at_once():
            keyed = [(one_of(pair).key, *pair) for pair in differences]
            differing = [(key, old, new) for key, old, new in keyed if held.get(key) is old and key not in newer]
            self.locators.listing = True
            unseen = first and not self.is_restored(kind)
            facts = self.take_all(kind, differing, wall_seconds, unseen)
            yield DiffStep(frozenset() if unseen else facts, len(differing))
        if first:
            yield DiffStep(self.complete(kind), 0)

    def complete(self, kind: Kind) -> frozenset[Fact]:
        """Count a kind as listed, as all its objects are held; returns the dependencies touched (EVERYTHING)."""
        self._mark_synced(kind)
        self.denied.discard(kind)
        self.unchecked_slices.update(one.key for one in self._slices.values())
        self.locators.recheck_all()
        return _ALL

    def do_without(self, kind: Kind) -> frozenset[Fact]:
        """Count a kind as synced and empty, because RBAC denies it; returns the dependencies touched (EVERYTHING).

        Without effect, and with no dependencies, unless the kind is needed and not yet listed. A later list ends this.
        """
        if kind not in self._awaited:
            return frozenset()
        self._mark_synced(kind, denied=True)
        self.denied.add(kind)
        return _ALL

    def restore(self, restored: Restored | None) -> frozenset[Fact]:
        """Count the objects held of these needed kinds as those of a snapshot, until their first list; None: no kind.

        Returns the dependencies touched (EVERYTHING). `take_copied` has taken the objects.
        """
        self.restored = restored
        self.revision += 1
        self.unchecked_slices.update(one.key for one in self._slices.values())
        self.locators.recheck_all()
        if self.journal is not None:
            self.journal.restored(restored)
        return _ALL

    def _mark_synced(self, kind: Kind, denied: bool = False) -> None:
        self._count_listed(kind)
        self.revision += 1  # `synced` and `knows_all_pods` are changes too
        if self.journal is not None:
            self.journal.synced(kind, denied)

    def interned(self, value: ClusterObject) -> ClusterObject:
        """The held object if it equals `value` and is not newer, so that one copy stays in memory; else `value`."""
        held: ClusterObject | None = self._tables[kind_of(value)].store.get(value.key)
        return held if held is not None and held == value and not outdated(held, value.version) else value

    def held(self, kind: Kind, key: tuple[str, str]) -> ClusterObject | None:
        return self._tables[kind].store.get(key)

    def left_out_that_count(self) -> Iterator[tuple[Kind, ObjectKey]]:
        """The kinds and keys of the objects that are left out, without slices that count in no answer.

        The state may change meanwhile.
        """
        for kind, key in list(self.left_out.octets):
            one = self.held(kind, key)
            if one is not None and not (isinstance(one, EndpointSlice) and self.slice_table.owned.place(one) >= HELD):
                yield kind, key

    def keys(self, kind: Kind) -> list[tuple[str, str]]:
        return list(self._tables[kind].store)

    @property
    def knows_all_pods(self) -> bool:
        """Whether every live Pod with an address is held, except those too new to have reached the watch."""
        listed = self._all_pods and "Pod" not in self._awaited and "Pod" not in self.denied
        return listed and (not self.of_files or bool(self._pods))

    def counts(self) -> Mapping[Kind, int]:
        """The number of held objects of each kind."""
        return {kind: len(table.store) for kind, table in self._tables.items()}

    def service(self, key: ObjectKey, imported: bool = False) -> Service | None:
        return (self._imports if imported else self._services).get(key)

    def backends(self, key: ObjectKey, imported: bool = False) -> Backends:
        """The endpoints of a Service or, if `imported`, of the ServiceImport of this key; empty if there are none.

        Rebuilt on first use after a change.
        """
        parts = self._built.get(key)  # looked up inline: every query for endpoints comes through here
        built = parts.get(IMPORTED if imported else WHOLE) if parts is not None else None
        return built if built is not None else self._backends.get(SliceOwner(key, imported))

    def cluster_backends(self, key: ObjectKey, cluster_id: str) -> Backends:
        """The endpoints of an imported Service from one cluster of the cluster set (KEP-1645)."""
        return self._backends.get(SliceOwner(key, imported=True), cluster_id)

    def warm_steps(self) -> Iterator[None]:
        """Build outdated Backends and their topology indexes, one Service per step, before the first query needs them.

        Only for Services with a policy and at most 100 endpoints: larger ones take too long for one step, and change
        too often to be built ahead of queries. Changes between steps are included: at the end, none of these is
        outdated.
        """
        while self._unbuilt:
            key = self._unbuilt.pop()
            policy = self.policies.get(key)
            endpoints = sum(len(one.endpoints) for one in self.slice_table.owned.counted(SliceOwner(key)))
            if isinstance(policy, Policy) and 0 < endpoints <= _SMALL:
                self.backends(key).index(policy.labels)
            yield

    def service_with_address(self, address: bytes) -> Service | None:
        """The first Service, by namespace and name, with this ClusterIP; None if there is none."""
        return next((self._services[key] for key in self._cluster_ips.keys(address)), None)

    def endpoints_with_address(self, address: bytes, besides: str = "") -> Sequence[tuple[ObjectKey, Endpoint]]:
        """One (key of the Service, endpoint) for each Service with this address: see `SliceTable.with_address`."""
        return self.slice_table.with_address(address, besides)

    def node(self, name: str) -> Node | None:
        """The Node of this name; without a Node object, one that has only the labels in locators."""
        return self._nodes.get(("", name)) or self.locators.nodes.get(name)

    def all_nodes(self) -> dict[str, Node]:
        """By name, every Node of which `node` knows something."""
        return {**self.locators.nodes, **self.nodes.by_name}

    def pods_with_address(self, address: bytes) -> Sequence[Pod]:
        """All Pods with this address, including hostNetwork and terminating ones."""
        return tuple(self._pods[key] for key in self._pod_ips.keys(address))

    def take_all(
        self, kind: Kind, changes: Sequence[Keyed], wall_seconds: int, unseen: bool = False
    ) -> frozenset[Fact]:
        """Apply changes of objects of one kind, whatever their versions, and return the dependencies touched.

        Each change comes with its key, an object that all indexes share: there may be 150,000. `unseen`: EVERYTHING
        follows, so that dependencies and checks of slices may be left out.
        """
        self._unseen = unseen
        self.revision += 1
        if self.journal is not None:
            self.journal.taken(kind, changes, wall_seconds)
        for follow in self.followers:
            follow(kind, changes)
        store, take = self._tables[kind]
        knew = self.of_files and self.knows_all_pods
        facts: set[Fact] = set()
        for key, old, new in changes:
            if new is not None:
                store[key] = new
            else:
                del store[key]
            facts.update(take(key, old, new))
            if kind == "Service":
                facts.update(self.external.take(old, new, wall_seconds))
            if wall_seconds > self.serial and counts_in_serial(old, new):  # never backwards, as the clock may go
                self.serial = wall_seconds
        verified, self._verified = self._verified, self.nodes.pod_cidrs_verified
        if verified != self._verified or (self.of_files and knew != self.knows_all_pods):
            self.locators.recheck_all()
            return _ALL
        return _ALL if EVERYTHING in facts else frozenset(facts)

    def take_copied(
        self,
        kind: Kind,
        upserted: Iterable[ClusterObject],
        deleted: Iterable[ObjectKey],
        wall_seconds: int,
        listing: bool,
    ) -> frozenset[Fact]:
        """Take objects and deletions of the state of which this one is a copy; returns the dependencies touched.

        The versions of the objects do not matter, as changes come in the original's order; what the copy already has is
        left out. `listing`: `LocatorIndex.listing` of the original.
        """
        changes: list[Keyed] = []
        for new in upserted:
            old = self.held(kind, new.key)
            if old != new:
                changes.append((new.key, old, new))
        for key in deleted:
            old = self.held(kind, key)
            if old is not None:
                changes.append((key, old, None))
        if not changes:
            return frozenset()
        self.locators.listing = listing
        unseen = listing and kind in self._awaited and not self.is_restored(kind)
        return self.take_all(kind, changes, wall_seconds, unseen)

    def _take_node(self, key: ObjectKey, old: Node | None, new: Node | None) -> Collection[Fact]:
        self.nodes.replace(old, new)
        self._note_annotations(old, new)
        before, after = (each or self.locators.nodes.get(key.name) for each in (old, new))
        facts = facts_of_change(old, new) | self.node_labels.move(before, after)
        addresses = {each for node in (old, new) if node for each in (*node.addresses, *node.tunnel_addresses)}
        self.locators.recheck(addresses)
        self.unchecked_slices.update(self.slice_table.some_with(addresses))
        if old is None or new is None or old.labels != new.labels:
            facts.update(self._moved_services(key.name, before, after))
        return facts

    def _moved_services(self, node_name: str, before: Node | None, after: Node | None) -> Iterable[Fact]:
        """The dependencies on Services and ServiceImports with endpoints on this Node; drops their Backends, which have
        read its labels.

        Backends without an index of labels have read none. Those of a Service without a policy may have one: of its
        view `_near`, or of a policy that its Namespace or its slices gave it before, and may give it again.
        """
        self._backends.discard_kept()
        built, none = self._built, dict[Any, Backends]()
        moved = {  # written for 10,000 Services
            key for key in self._backends.indexed for part in built.get(key, none).values() if node_name in part.nodes
        }
        return self._touch((*moved, *self.cluster_set.take_node(before, after, self._is_built_on)))

    def _is_built_on(self, key: ObjectKey, node_name: str) -> bool:
        return any([node_name in built.nodes for built in self._built.get(key, {}).values()])

    def _touch(self, keys: Collection[ObjectKey]) -> set[Fact]:
        """The dependencies on these Services and ServiceImports; drops their Backends."""
        for key in keys:
            self._invalidate(key)
        return {service_fact(*key) for key in keys}

    def _invalidate(self, key: ObjectKey) -> None:
        self._backends.invalidate(key)
        if self.policies.may_have(key):
            self._unbuilt.add(key)

    def _take_namespace(self, key: ObjectKey, old: Namespace | None, new: Namespace | None) -> Collection[Fact]:
        self.policies.take_namespace(key, old, new)
        self._note_annotations(old, new)
        return (namespace_fact(key.name),)

    def _take_service(self, key: ObjectKey, old: Service | None, new: Service | None) -> Collection[Fact]:
        old_ips, new_ips = (each.cluster_ips if each is not None else () for each in (old, new))
        self._cluster_ips.move(key, old_ips, new_ips)
        self.policies.take_service(key, new)
        self._invalidate(key)
        fact = service_fact(*key) if key.name != FURTHER else namespace_fact(key.namespace)
        return {fact, *address_facts((*old_ips, *new_ips))}

    def _take_slice(self, key: ObjectKey, old: EndpointSlice | None, new: EndpointSlice | None) -> Collection[Fact]:
        change = self.slice_table.replace(key, old, new, self._unseen)
        if (new is not None and new.bad) or (old is not None and old.bad):
            self._note_annotations(old, new)
        for owner in change.owners:
            self._backends.invalidate_slice(owner, key.name)
            self.policies.take_slices(owner)
            if self.policies.may_have(owner):
                self._unbuilt.add(owner)
        self.unchecked_slices.add(key)
        self.unchecked_slices.update(change.sharing)
        self.nodes.move_endpoints(change.before, change.after, key.namespace)
        return change.facts

    def _note_annotations(self, old: Annotated | None, new: Annotated | None) -> None:
        if old is not None and old.bad:
            self.misannotated.pop((type(old), old.key), None)
        if new is not None and new.bad and len(self.misannotated) < MOST_MISANNOTATED:
            self.misannotated[type(new), new.key] = new

    def _take_pod(self, key: ObjectKey, old: Pod | None, new: Pod | None) -> Collection[Fact]:
        if isinstance(new, MisannotatedPod):
            if key in self.misannotated_pods or len(self.misannotated_pods) < MOST_MISANNOTATED:
                self.misannotated_pods[key] = new
        elif self.misannotated_pods:
            self.misannotated_pods.pop(key, None)
        old_ips, new_ips = (pod.ips if pod is not None else () for pod in (old, new))
        self._pod_ips.move(key, old_ips, new_ips)
        if self._unseen:
            self.nodes.move_pod(old, new)
            return ()
        self.unchecked_slices.update(self.slice_table.some_with({*old_ips, *new_ips}))
        self.locators.recheck((*old_ips, *new_ips))
        return address_facts((*old_ips, *new_ips, *self.nodes.move_pod(old, new)))

    def _take_locator(self, key: ObjectKey, old: AnyLocator | None, new: AnyLocator | None) -> Collection[Fact]:
        described = {node_of(each) for each in (old, new) if each is not None}
        known = {name: self.node(name) for name in described}
        facts = self.locators.take(key, old, new)
        for name, before in known.items():
            after = self.node(name)
            if before is not after and before != after:
                labels = self.node_labels.move(before, after)
                facts.update((node_fact(name), *labels, *self._moved_services(name, before, after)))
        return facts

    def _take_stateful_set(self, _: ObjectKey, old: StatefulSet | None, new: StatefulSet | None) -> Collection[Fact]:
        """No answer depends on a StatefulSet, only warnings do."""
        self.policies.take_stateful_set(old, new)
        return ()
