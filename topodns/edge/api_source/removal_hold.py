"""Holds back, for a moment, the news that a headless Service has lost its last ready endpoint.

When the control plane moves endpoints from one EndpointSlice to another, a watcher may see the removal before the
addition. What follows within the moment is published together with it, so that nobody sees the Service empty.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from topodns.cluster.model import Deleted, EndpointSlice, ObjectKey, Upserted
from topodns.cluster.slice_table import SliceOwner, owner_of
from topodns.cluster.state import ClusterState
from topodns.cluster.watch import Event

MOMENT: Final = 0.2  # seconds


@dataclass(slots=True)
class _Held:
    """The events of one Service since the one that empties it, in the order in which they came."""

    release: asyncio.TimerHandle
    events: list[Event] = field(default_factory=list)


class RemovalHold:
    """Passes events of EndpointSlices on to `apply`, those of one Service in their order. Additions never wait."""

    def __init__(self, state: ClusterState, apply: Callable[[Event], None]) -> None:
        self._state = state
        self._apply = apply
        self._held: dict[SliceOwner, _Held] = {}
        self._queued: dict[ObjectKey, EndpointSlice] = {}  # as the events that are held leave them

    def take(self, event: Event) -> None:
        owners = self._owners(event.change)
        if len(owners) != 1:
            self.flush()  # a slice that changes its Service, or is not known: it is nobody's turn
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
        """Publish everything now."""
        for owner in list(self._held):
            self._release(owner)

    def _hold(self, owner: SliceOwner) -> _Held:
        release = asyncio.get_running_loop().call_later(MOMENT, self._release, owner)
        held = self._held[owner] = _Held(release)
        return held

    def _release(self, owner: SliceOwner) -> None:
        """In one turn of the loop: no question is answered in between."""
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


def _any_ready(slices: Iterable[EndpointSlice]) -> bool:
    return any(endpoint.ready for one in slices for endpoint in one.endpoints)
