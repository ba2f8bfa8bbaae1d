"""Copies of a state in worker processes: the journal of its changes, and how a copy applies them."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from topodns.cluster.model import ClusterObject, Kind, ObjectKey
from topodns.dependency import Fact

if TYPE_CHECKING:
    from topodns.cluster.state import ClusterState

Keyed = tuple[ObjectKey, ClusterObject | None, ClusterObject | None]
"""(key, held object, new object) of a change; None: there is none."""


class Journal(Protocol):
    """Receives the changes of a state in order: with all of them a copy stays equal to the original."""

    def taken(self, kind: Kind, changes: Sequence[Keyed], wall_seconds: int) -> None:
        """Record changes of objects that the state applies together, just before it does."""

    def synced(self, kind: Kind, denied: bool) -> None:
        """Record that the kind is synced from now on: its first list is complete or, if `denied`, RBAC forbids it."""

    def when_copied(self, action: Callable[[], object]) -> None:
        """Call `action` once all copies have all changes so far."""


def copy_objects(
    state: "ClusterState",
    kind: Kind,
    upserted: Iterable[ClusterObject],
    deleted: Iterable[ObjectKey],
    wall_seconds: int,
    listing: bool,
) -> frozenset[Fact]:
    """Take objects and deletions of the original into the copy `state`, and return the dependencies touched.

    The versions of the objects do not matter, as changes come in the original's order; what the copy already has is
    left out. `listing`: `LocatorIndex.listing` of the original.
    """
    changes: list[Keyed] = []
    for new in upserted:
        old = state.held(kind, new.key)
        if old != new:
            changes.append((new.key, old, new))
    for key in deleted:
        old = state.held(kind, key)
        if old is not None:
            changes.append((key, old, None))
    if not changes:
        return frozenset()
    state.locators.listing = listing
    return state.take_all(kind, changes, wall_seconds)
