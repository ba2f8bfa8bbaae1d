"""Applies lists and watch events to the cluster state, some of them a moment later, and measures their latency.

The removal of a headless Service's last ready endpoint is delayed, so that no query sees the Service empty meanwhile.
When the control plane moves endpoints from one EndpointSlice to another, a watch may deliver the removal before the
addition. Events of the Service that follow within MAX_HOLD are applied together with the removal. Services do not
influence each other: their slices may belong to users who do not trust each other.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from topodns.cluster.decode.objects import decode_again
from topodns.cluster.decode.stream import Event
from topodns.cluster.model import ClusterObject, Deleted, EndpointSlice, Kind, ObjectKey, Replaced, Service, Upserted
from topodns.cluster.namespace_budget import ObjectHolder, octets_of, placeholder
from topodns.cluster.publishing_state import PublishingState
from topodns.cluster.slices import HELD, SliceOwner, has_ready, owner_of
from topodns.cluster.state import ClusterState
from topodns.query.histogram import Histogram

MAX_HOLD: Final = 0.2  # seconds that an event is held back at most
MAX_EVENTS: Final = 100  # of one Service that are held back: they are applied in one turn of the loop
MAX_ENDPOINTS: Final = 10_000  # in these events; to apply so many takes about 15 ms

FREED_AT_ONCE: Final = 512  # objects; about 50 us


class StateWriter:
    """The `store.Store` of a cluster's state: writes what the reflectors of one API server receive."""

    def __init__(self, published: PublishingState, pod_labels: Collection[str] = ()) -> None:
        """`pod_labels`: the keys of the labels that Pods keep."""
        self.decode = partial(decode_again, published.state.held, pod_labels=pod_labels)
        self.state = published.state
        self.published = published
        self.latency = ProgrammingLatency()
        self._hold = RemovalHold(published.state, self._apply_now)

    def count(self, kind: Kind) -> int:
        return self.state.counts()[kind]

    def new_listing(self, kind: Kind) -> "StateListing":
        return StateListing(kind, self)

    def apply(self, kind: Kind, event: Event[ClusterObject]) -> None:
        """Apply one watch event; one of an EndpointSlice is perhaps held back for a moment (see RemovalHold)."""
        if kind == "EndpointSlice":
            self._hold.submit(event)
        else:
            self._apply_now(event)

    def replace_steps(self, kind: Kind, objects: tuple[ClusterObject, ...], newer: Set[ObjectKey]) -> Iterator[int]:
        """`PublishingState.replace_steps`, after the events that are held back."""
        self._hold.flush()
        yield from self.published.replace_steps(Replaced(kind, objects), newer)

    def do_without_steps(self, kind: Kind, seconds: float) -> Iterator[None]:
        """As `PublishingState.do_without_steps`."""
        return self.published.do_without_steps(kind, seconds)

    def _apply_now(self, event: Event[ClusterObject]) -> None:
        self.published.apply(event.change)
        if event.triggered is not None and isinstance(event.change, Upserted):
            changed, triggered = event.change.object, event.triggered
            if self.state.journal is None:
                self._observe(changed, triggered)
            else:
                self.state.journal.when_copied(partial(self._observe, changed, triggered))

    def _observe(self, changed: ClusterObject, triggered: float) -> None:
        self.latency.observe(changed, triggered, self.state, self.published.wall_clock())


class StateListing(ObjectHolder):
    """The objects of a list that is being read. An unchanged one is shared with the state, so it is in memory once.

    The others count in the budget of the state; those for which there is no room are left out.
    """

    def __init__(self, kind: Kind, writer: "StateWriter") -> None:
        super().__init__(writer.published.budget)
        self.version = ""
        self._kind = kind
        self._writer = writer
        self._state = writer.state
        self._slices: Counter[SliceOwner] = Counter()  # those of each Service so far; lists are ordered by name
        self._shared: dict[ObjectKey, ClusterObject] = {}
        self._own: dict[ObjectKey, ClusterObject] = {}

    def __len__(self) -> int:
        return len(self._shared) + len(self._own)

    def add(self, listed: ClusterObject) -> None:
        value = self._state.interned(listed)
        key = value.key
        if value is not listed:
            self._share(value)
            return
        self._shared.pop(key, None)
        if isinstance(value, EndpointSlice):
            owner = owner_of(value)
            self._slices[owner] += 1
            if self._slices[owner] > HELD:
                self._put(key, placeholder(value, octets_of(value)))
                return
        self._put(key, self.budget.fitting(value, self._own.get(key)))
        self.budget.make_room()

    def keep(self, key: ObjectKey) -> None:
        held = self._state.held(self._kind, key)
        if held is not None:
            self._share(held)

    def remove(self, key: ObjectKey) -> None:
        self._shared.pop(key, None)
        self._put(key, None)

    def replace_steps(self, newer: Set[ObjectKey]) -> Iterator[int]:
        objects = (*self._shared.values(), *self._own.values())
        for _ in self._free_steps():  # so that a large list is not in memory twice
            yield 0
        yield from self._writer.replace_steps(self._kind, objects, newer)

    def leave_out(self, kind: Kind, key: ObjectKey) -> None:
        self._put(key, self.budget.instead(self._own[key]))

    def drop(self, namespace: str, octets: int) -> bool:
        wanted = self.octets - octets
        for key in [key for key in self._own if key.namespace == namespace]:
            if self.octets <= wanted:
                break
            self.budget.cut.add((self._kind, namespace))
            self.budget.times[self._kind] += 1
            self._put(key, None)
        return self.octets < wanted + octets

    def _free_steps(self) -> Iterator[None]:
        """Empty the listing, FREED_AT_ONCE objects per step: 150,000 keys in one step would delay queries by 20 ms."""
        while self._shared or self._own:
            for _ in range(min(FREED_AT_ONCE, len(self._shared))):
                self._shared.popitem()
            for _ in range(min(FREED_AT_ONCE, len(self._own))):
                self.charge(self._kind, *self._own.popitem(), None)
            yield

    def _share(self, held: ClusterObject) -> None:
        self._put(held.key, None)
        self._shared[held.key] = held

    def _put(self, key: ObjectKey, value: ClusterObject | None) -> None:
        """Set the listing's own object of a key; None: it has none."""
        old = self._own.pop(key, None)
        if old is None and value is None:
            return
        self.charge(self._kind, key, old, value)
        if value is not None:
            self._own[key] = value


@dataclass(slots=True)
class _Held:
    """The held events of one Service in order of arrival, beginning with the one that empties it."""

    release: asyncio.TimerHandle
    ready: int  # slices with a ready endpoint after these events
    endpoints: int = 0
    events: list[Event[ClusterObject]] = field(default_factory=list)
    ready_after: dict[ObjectKey, bool] = field(default_factory=dict)  # of the slices in these events

    @property
    def is_over(self) -> bool:
        """Whether the Service has a ready endpoint again, or the events are as many as are held back."""
        return self.ready > 0 or len(self.events) >= MAX_EVENTS or self.endpoints >= MAX_ENDPOINTS


class RemovalHold:
    """Passes EndpointSlice events to `apply`, those of one Service in order, at most MAX_HOLD late.

    An event that leaves the Service with a ready endpoint is never delayed, and releases held ones.
    """

    def __init__(self, state: ClusterState, apply: Callable[[Event[ClusterObject]], None]) -> None:
        self._state = state
        self._apply = apply
        self._held: dict[SliceOwner, _Held] = {}
        self._queued: dict[ObjectKey, EndpointSlice] = {}  # the last versions in held events

    def submit(self, event: Event[ClusterObject]) -> None:
        """Apply an event of a watch, at once or together with later ones of its Service."""
        if not self._held and _has_ready(event.change):  # most events: the slice itself has a ready endpoint
            self._apply(event)
            return
        versions = self._versions(event.change)
        owners = set(map(owner_of, versions))
        if len(owners) != 1:  # an unknown slice, or one that changes its Service: keep the order
            for owner in owners & self._held.keys():
                self._release(owner)
            self._apply(event)
            return
        (owner,) = owners
        held = self._held.get(owner) or self._begun(owner, event)
        if held is None:
            self._apply(event)
            return
        self._add(held, event, versions)
        if held.is_over:
            self._release(owner)

    def flush(self) -> None:
        """Apply all held events now."""
        for owner in list(self._held):
            self._release(owner)

    def _begun(self, owner: SliceOwner, event: Event[ClusterObject]) -> _Held | None:
        """A new hold, yet without events, if this one takes a headless Service's last ready endpoint; else None."""
        service = self._state.service(*owner)
        if service is None or not service.headless or _has_ready(event.change):
            return None
        ready = self._state.slice_table.owned.ready(owner)
        if ready != 1 or not self._is_ready(_key(event.change)):
            return None
        release = asyncio.get_running_loop().call_later(MAX_HOLD, self._release, owner)
        held = self._held[owner] = _Held(release, ready)
        return held

    def _add(self, held: _Held, event: Event[ClusterObject], versions: list[EndpointSlice]) -> None:
        key = _key(event.change)
        before = held.ready_after.get(key)
        after = held.ready_after[key] = _has_ready(event.change)
        held.ready += after - (self._is_ready(key) if before is None else before)
        held.endpoints += max(len(one.endpoints) for one in versions)
        held.events.append(event)
        if isinstance(event.change, Upserted):
            self._queued[key] = versions[-1]

    def _release(self, owner: SliceOwner) -> None:
        """Apply the held events in one turn of the loop, so that no query is answered between them."""
        held = self._held.pop(owner)
        held.release.cancel()
        for event in held.events:
            self._queued.pop(_key(event.change), None)
            self._apply(event)

    def _versions(self, change: Upserted[ClusterObject] | Deleted) -> list[EndpointSlice]:
        """The last known version of a slice before an event, if there is one, and that in the event."""
        key = _key(change)
        before = self._queued.get(key) or self._state.held("EndpointSlice", key)
        after = change.object if isinstance(change, Upserted) else None
        return [one for one in (before, after) if isinstance(one, EndpointSlice)]

    def _is_ready(self, key: ObjectKey) -> bool:
        """Whether the state has this slice, and with a ready endpoint that counts."""
        one = self._state.held("EndpointSlice", key)
        return isinstance(one, EndpointSlice) and has_ready(one) and self._state.slice_table.owned.counts(one)


def _key(change: Upserted[ClusterObject] | Deleted) -> ObjectKey:
    return change.object.key if isinstance(change, Upserted) else change.key


def _has_ready(change: Upserted[ClusterObject] | Deleted) -> bool:
    return isinstance(change, Upserted) and isinstance(change.object, EndpointSlice) and has_ready(change.object)


LATENCY_BUCKETS: Final = tuple(0.001 * 2**k for k in range(20))  # seconds; CoreDNS's

_SERVICE_KINDS: Final = ("cluster_ip", "headless_with_selector")


class ProgrammingLatency:
    """The DNS programming latencies of one cluster, in seconds, by CoreDNS's label `service_kind`.

    They are those of coredns_kubernetes_dns_programming_duration_seconds: from a change of an endpoint, whose time the
    endpoint controller writes into each EndpointSlice of a Service with a selector
    (endpoints.kubernetes.io/last-change-trigger-time), until the answers have it.
    """

    def __init__(self) -> None:
        self.by_kind: Mapping[str, Histogram] = {kind: Histogram(LATENCY_BUCKETS) for kind in _SERVICE_KINDS}

    def observe(self, changed: ClusterObject, triggered: float, state: ClusterState, now: float) -> None:
        """Record the latency of a change that `state` has just got: from `triggered` to `now`, at least 0.

        Both are wall clock, in seconds since the epoch. Only a slice of a known Service is recorded.
        """
        service = state.service(*owner_of(changed)) if isinstance(changed, EndpointSlice) else None
        if service is not None:
            self.by_kind[_kind_of(service)].observe(max(0.0, now - triggered))


def _kind_of(service: Service) -> str:
    return "headless_with_selector" if service.headless else "cluster_ip"
