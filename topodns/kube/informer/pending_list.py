"""All objects of one kind, gathered from the pages of a list or the first events of a watch."""

from collections.abc import Iterator
from typing import Final

from topodns.cluster.model import ClusterObject, Deleted, Kind, ObjectKey, Upserted
from topodns.cluster.state import ClusterState
from topodns.cluster.watch import Undecodable

LET_GO_AT_ONCE: Final = 512  # objects; some 50 us


class Listing:
    """What a list says so far. Objects that say what is held already are held only once."""

    version: str = ""  # the resourceVersion of the whole, once it is known

    def __init__(self, kind: Kind, state: ClusterState) -> None:
        self._kind = kind
        self._state = state
        self._objects: dict[ObjectKey, ClusterObject] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def add(self, listed: ClusterObject) -> None:
        self._objects[listed.key] = self._state.held_twin(listed)

    def take(self, change: Upserted | Deleted) -> None:
        """The first events of a watch are additions; anything else is taken for what it says."""
        match change:
            case Upserted(value):
                self.add(value)
            case Deleted(_, key):
                self._objects.pop(key, None)

    def keep(self, undecodable: Undecodable) -> None:
        """An object that cannot be read stays what it was: it has not been deleted."""
        held = self._state.held(self._kind, undecodable.key) if undecodable.key is not None else None
        if held is not None:
            self._objects[held.key] = held

    def objects(self) -> tuple[ClusterObject, ...]:
        return tuple(self._objects.values())

    def let_go(self) -> Iterator[None]:
        """Become empty, a little with each step: 150,000 keys at once would keep a question waiting for 20 ms."""
        while self._objects:
            for _ in range(min(LET_GO_AT_ONCE, len(self._objects))):
                self._objects.popitem()
            yield
