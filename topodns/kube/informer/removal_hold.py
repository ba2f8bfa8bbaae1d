"""Delays the removal of a headless Service's last ready endpoint, so that no query sees the Service empty meanwhile.

When the control plane moves endpoints from one EndpointSlice to another, a watch may deliver the removal before the
addition. Events of the Service that follow within MAX_HOLD are applied together with the removal.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from topodns.cluster.decode.stream import Event
from topodns.cluster.model import Deleted, EndpointSlice, ObjectKey, Upserted
from topodns.cluster.owned_slices import SliceOwner, owner_of
from topodns.cluster.state import ClusterState

MAX_HOLD: Final = 0.2  # seconds that an event is held back at most


@dataclass(slots=True)
class _Held:
    """The held events of one Service in order of arrival, beginning with the one that empties it."""

    release: asyncio.TimerHandle
    events: list[Event] = field(default_factory=list)


class RemovalHold:
    """Passes EndpointSlice events to `apply`, those of one Service in order, at most MAX_HOLD late.

    An event that leaves the Service with a ready endpoint is never delayed, and releases held ones.
    """

    def __init__(self, state: ClusterState, apply: Callable[[Event], None]) -> None:
        self._state = state
        self._apply = apply
        self._held: dict[SliceOwner, _Held] = {}
        self._queued: dict[ObjectKey, EndpointSlice] = {}  # the slices after the held events

    def submit(self, event: Event) -> None:
        """Apply an event of a watch, at once or together with later ones of its Service."""
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
        release = asyncio.get_running_loop().call_later(MAX_HOLD, self._release, owner)
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
        return _any_ready(self._state.slice_table.of_owner(owner)) and not self._ready_after(owner, [event])

    def _ready_after(self, owner: SliceOwner, events: Iterable[Event]) -> bool:
        slices = {one.key: one for one in self._state.slice_table.of_owner(owner)}
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
