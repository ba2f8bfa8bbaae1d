"""Writes lists and watch events to the cluster state, and delays the removal of a Service's last ready endpoint.

When the control plane moves endpoints of a headless Service from one EndpointSlice to another, a watch may deliver the
removal before the addition. Events that follow within MOMENT are published together with the removal, so that no query
sees the Service empty.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from topodns.cluster.decode.stream import Event
from topodns.cluster.model import ClusterObject, Deleted, EndpointSlice, Kind, ObjectKey, Replaced, Service, Upserted
from topodns.cluster.slice_index import SliceOwner, owner_of
from topodns.cluster.state import ClusterState
from topodns.dependency import Fact
from topodns.query.histogram import Histogram

BUCKETS: Final = tuple(0.001 * 2**k for k in range(20))  # seconds


def service_kind(service: Service) -> str:
    """CoreDNS's label `service_kind`. Only EndpointSlices of Services with a selector carry the trigger time."""
    return "headless_with_selector" if service.headless else "cluster_ip"


MOMENT: Final = 0.2  # seconds that a removal is held back at most


@dataclass(slots=True)
class _Held:
    """The held events of one Service in order of arrival, beginning with the one that empties it."""

    release: asyncio.TimerHandle
    events: list[Event] = field(default_factory=list)


class RemovalHold:
    """Passes EndpointSlice events to `apply`, those of one Service in order, at most MOMENT late.

    An event that leaves the Service with a ready endpoint is never delayed, and releases held ones.
    """

    def __init__(self, state: ClusterState, apply: Callable[[Event], None]) -> None:
        self._state = state
        self._apply = apply
        self._held: dict[SliceOwner, _Held] = {}
        self._queued: dict[ObjectKey, EndpointSlice] = {}  # the slices after the held events

    def take(self, event: Event) -> None:
        if not self._held and _has_ready(event.change):  # most events: the slice itself has a ready endpoint
            self._apply(event)
            return
        owners = self._owners(event.change)
        if len(owners) != 1:
            self.flush()  # unknown slice, or one that changes its Service: keep the order
            self._apply(event)
            return
        (owner,) = owners
        held = self._held.get(owner)
        if held is None and not self._empties(owner, event):
            self._apply(event)
            return
        held = held or self._hold(owner)
        held.events.append(event)
        if isinstance(event.change, Upserted) and isinstance(event.change.object, EndpointSlice):
            self._queued[event.change.object.key] = event.change.object
        if self._ready_after(owner, held.events):
            self._release(owner)

    def flush(self) -> None:
        """Apply all held events now."""
        for owner in list(self._held):
            self._release(owner)

    def _hold(self, owner: SliceOwner) -> _Held:
        release = asyncio.get_running_loop().call_later(MOMENT, self._release, owner)
        held = self._held[owner] = _Held(release)
        return held

    def _release(self, owner: SliceOwner) -> None:
        """Apply the held events in one turn of the loop, so that no query is answered between them."""
        held = self._held.pop(owner)
        held.release.cancel()
        for event in held.events:
            self._queued.pop(_key(event.change), None)
            self._apply(event)

    def _owners(self, change: Upserted | Deleted) -> set[SliceOwner]:
        key = _key(change)
        before = self._queued.get(key) or self._state.held("EndpointSlice", key)
        after = change.object if isinstance(change, Upserted) else None
        return {owner_of(one) for one in (before, after) if isinstance(one, EndpointSlice)}

    def _empties(self, owner: SliceOwner, event: Event) -> bool:
        service = self._state.service(*owner)
        if service is None or not service.headless:
            return False
        return _any_ready(self._state.slices(owner)) and not self._ready_after(owner, [event])

    def _ready_after(self, owner: SliceOwner, events: Iterable[Event]) -> bool:
        slices = {one.key: one for one in self._state.slices(owner)}
        for event in events:
            match event.change:
                case Upserted(EndpointSlice() as one):
                    slices[one.key] = one
                case Deleted(_, key):
                    slices.pop(key, None)
        return _any_ready(slices.values())


def _key(change: Upserted | Deleted) -> ObjectKey:
    return change.object.key if isinstance(change, Upserted) else change.key


def _has_ready(change: Upserted | Deleted) -> bool:
    return isinstance(change, Upserted) and isinstance(change.object, EndpointSlice) and _any_ready((change.object,))


def _any_ready(slices: Iterable[EndpointSlice]) -> bool:
    return any(endpoint.ready for one in slices for endpoint in one.endpoints)


_SERVICE_KINDS: Final = ("cluster_ip", "headless_with_selector")


class Intake:
    """The only writer of `state`.

    Each of `subscribers`, which may change, is called with the dependencies that a change touched, in the same turn of
    the loop as the change.
    """

    def __init__(
        self,
        state: ClusterState,
        subscribers: Sequence[Callable[[frozenset[Fact]], object]],
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.state = state
        self.latencies = {kind: Histogram(BUCKETS) for kind in _SERVICE_KINDS}
        self._subscribers = subscribers
        self._wall_clock = wall_clock
        self._hold = RemovalHold(state, self._apply)

    def take(self, kind: Kind, event: Event) -> None:
        """Apply one watch event."""
        if kind == "EndpointSlice":
            self._hold.take(event)
        else:
            self._apply(event)

    def replace(self, kind: Kind, objects: tuple[ClusterObject, ...], news: Set[ObjectKey]) -> Iterator[int]:
        """Replace all objects of a kind with a list, except the keys in `news`, which changed after the list.

        Works in small steps; each yields the number of objects in it that differed from the held ones.
        """
        self._hold.flush()
        for step in self.state.replace(Replaced(kind, objects), int(self._wall_clock()), news):
            self._publish(step.facts)
            yield step.differing

    def do_without(self, kind: Kind) -> None:
        """Stop waiting for a kind that is denied or missing; answers that do not need it go on."""
        self._publish(self.state.do_without(kind))

    def _apply(self, event: Event) -> None:
        self._publish(self.state.apply(event.change, int(self._wall_clock())))
        if event.triggered is not None and isinstance(event.change, Upserted):
            self._measure(event.change.object, event.triggered)

    def _publish(self, facts: frozenset[Fact]) -> None:
        if facts:
            for subscriber in self._subscribers:
                subscriber(facts)

    def _measure(self, changed: ClusterObject, triggered: float) -> None:
        service = self.state.service(*owner_of(changed)) if isinstance(changed, EndpointSlice) else None
        if service is not None:
            self.latencies[service_kind(service)].observe(max(0.0, self._wall_clock() - triggered))
