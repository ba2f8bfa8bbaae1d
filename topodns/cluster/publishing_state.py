"""The state of a cluster with its subscribers: sources write through it, and each change is published at once."""

from collections.abc import Callable, Iterator, Sequence, Set
from itertools import islice
from typing import Final

from topodns.cluster.list_diff import batched
from topodns.cluster.model import (
    Change,
    ClusterObject,
    Deleted,
    EndpointSlice,
    Keyed,
    Kind,
    ObjectKey,
    Replaced,
    Upserted,
    kind_of,
)
from topodns.cluster.namespace_budget import (
    FURTHER,
    UNLIMITED,
    NamespaceBudget,
    ObjectHolder,
    further,
    octets_of,
    placeholder,
)
from topodns.cluster.slices import HELD
from topodns.cluster.state import ClusterState
from topodns.dependency import Fact

Subscriber = Callable[[frozenset[Fact]], object]
"""Called with the facts (dependencies of answers) that a change touched, at least one."""

RESTORED_STAY: Final = 60.0  # seconds

_NAMESPACED: Final[tuple[Kind, ...]] = ("Pod", "PodLocator", "EndpointSlice", "ServiceImport", "Service")
_AT_ONCE: Final = 100  # small objects that are dropped between two looks at the octets


class PublishingState:
    """Changes `state` for the sources of a cluster, which change it in no other way.

    Each of `subscribers` (read at every change) is called in the same turn of the event loop as the change, before any
    query is answered. `wall_clock`: seconds since the epoch. `budget`: the octets that the objects may take.
    """

    def __init__(
        self,
        state: ClusterState,
        wall_clock: Callable[[], float],
        subscribers: Sequence[Subscriber] = (),
        budget: NamespaceBudget | None = None,
    ) -> None:
        self.state = state
        self.wall_clock = wall_clock
        self.subscribers = subscribers
        self.budget = NamespaceBudget(UNLIMITED) if budget is None else budget
        state.followers.append(_StateHolder(self.budget, self).follow)

    def apply(self, change: Upserted[ClusterObject] | Deleted) -> None:
        """Apply a change of one object."""
        if isinstance(change, Upserted):
            self._upsert(change.object)
        else:
            self.publish(self.state.apply(change, int(self.wall_clock())))
        self._make_room()

    def replace_steps(self, change: Replaced, newer: Set[ObjectKey] = frozenset()) -> Iterator[int]:
        """Replace all objects of a kind, except the keys in `newer`, which changed after the list was read.

        Works in small steps; each yields the number of objects in it that differed from the held ones.
        """
        for step in self.state.replace_steps(change, int(self.wall_clock()), newer):
            self.publish(step.facts)
            self._make_room()
            yield step.differing

    def take_steps(self, change: Change) -> Iterator[int]:
        """`apply` or `replace_steps`, by the sort of the change; an object alone is one step."""
        if isinstance(change, Replaced):
            yield from self.replace_steps(change)
        else:
            self.apply(change)
            yield 1

    def do_without_steps(self, kind: Kind, seconds: float) -> Iterator[None]:
        """Stop waiting for a kind that has been denied or missing for so long, in small steps; answers that do not need
        it go on.

        Its objects of a snapshot stay for RESTORED_STAY, as an API server that has just started denies everything, and
        are then removed, as at a start without one.
        """
        if self.state.is_restored(kind):
            if seconds < RESTORED_STAY:
                return
            yield from self.forget_steps(kind)
        self.publish(self.state.do_without(kind))

    def forget_steps(self, kind: Kind) -> Iterator[None]:
        """Remove all objects of a kind, in small steps."""
        for keys in batched(self.state.keys(kind)):
            held = ((ObjectKey(*key), self.state.held(kind, key)) for key in keys)
            self.write(kind, [(key, old, None) for key, old in held if old is not None])
            yield

    def take_restored(self, kind: Kind, objects: Sequence[ClusterObject]) -> None:
        """Take some objects of a snapshot, of a kind that is not synced; `ClusterState.restore` counts them."""
        self.publish(self.state.take_copied(kind, objects, (), int(self.wall_clock()), listing=True))
        self._make_room()

    def publish(self, facts: frozenset[Fact]) -> None:
        """Call the subscribers with the facts that a change touched, if any.

        For a copy of another state (`ClusterState.take_copied`), whose changes come with their own clock.
        """
        if facts:
            for subscriber in self.subscribers:
                subscriber(facts)

    def write(self, kind: Kind, changes: Sequence[Keyed]) -> None:
        """Apply changes of objects, whatever their versions."""
        self.publish(self.state.take_all(kind, changes, int(self.wall_clock())))

    def settle(self, namespace: str) -> None:
        """After a list of objects without a placeholder: where none is left out any more, others do not exist."""
        key = ObjectKey(namespace, FURTHER)
        held = self.state.service(key)
        if held is not None and all(cut != namespace for _, cut in self.budget.cut):
            self.write("Service", [(key, held, None)])

    def returning_steps(self, kind: Kind) -> Iterator[ObjectKey | None]:
        """The keys of the objects of a kind that are left out and for which there is room, in steps; None: a step.

        Not of slices that do not count.
        """
        for of_kind, key in self.state.left_out_that_count():
            octets = self.state.left_out.octets.get((of_kind, key), 0)
            yield key if of_kind == kind and key.name != FURTHER and self.budget.room_for(octets) else None

    def _upsert(self, value: ClusterObject) -> None:
        """Apply the object, its placeholder, or the deletion of an object for which there is no room."""
        kind, key = kind_of(value), value.key
        held = self.state.held(kind, key)
        admitted = self._admitted(value, held)
        if admitted is None and held is None:
            return
        self.publish(self.state.put(kind, key, admitted, value.version, int(self.wall_clock())))
        if isinstance(admitted, EndpointSlice):
            self._leave_out_surplus(admitted)

    def _admitted(self, value: ClusterObject, held: ClusterObject | None) -> ClusterObject | None:
        """The object or its placeholder; None: there is no room even for that."""
        if isinstance(value, EndpointSlice) and self.state.slice_table.owned.place(value) >= HELD:
            return placeholder(value, octets_of(value))
        return self.budget.fitting(value, held)

    def _leave_out_surplus(self, added: EndpointSlice) -> None:
        """Leave out the slice that comes after those that are held of a Service, which `added` may have moved there."""
        surplus = self.state.slice_table.owned.surplus(added)
        if surplus is not None and not surplus.left_out:
            self.write("EndpointSlice", [(surplus.key, surplus, placeholder(surplus, octets_of(surplus)))])

    def _make_room(self) -> None:
        self.budget.make_room()
        for _, namespace in self.budget.cut:
            if not self.state.left_out.cuts(namespace):
                self.write("Service", [(ObjectKey(namespace, FURTHER), None, further(namespace))])


class _StateHolder(ObjectHolder):
    """The objects of a state."""

    def __init__(self, budget: NamespaceBudget, published: PublishingState) -> None:
        super().__init__(budget)
        self._published = published

    def leave_out(self, kind: Kind, key: ObjectKey) -> None:
        held = self._published.state.held(kind, key)
        assert held is not None
        self._published.write(kind, [(key, held, self.budget.instead(held))])

    def drop(self, namespace: str, octets: int) -> bool:
        wanted = self.octets - octets
        state = self._published.state
        for kind in _NAMESPACED:
            keys = (ObjectKey(*key) for key in state.keys(kind) if key[0] == namespace and key[1] != FURTHER)
            while self.octets > wanted and (some := list(islice(keys, _AT_ONCE))):
                self.budget.cut.add((kind, namespace))
                self.budget.times[kind] += len(some)
                self._published.write(kind, [(key, state.held(kind, key), None) for key in some])
        return self.octets < wanted + octets
