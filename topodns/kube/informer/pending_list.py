"""A list under construction: the objects of one kind, from list pages or a watch's initial events (KEP-3157)."""

from collections.abc import Iterator
from typing import Final

from topodns.cluster.decode.stream import Undecodable
from topodns.cluster.model import ClusterObject, Deleted, Kind, ObjectKey, Upserted
from topodns.cluster.state import ClusterState

LET_GO_AT_ONCE: Final = 512  # objects; about 50 us


class Listing:
    """The objects of an incomplete list. An unchanged object is shared with the state, so it is in memory once."""

    version: str = ""  # the list's resourceVersion, once known

    def __init__(self, kind: Kind, state: ClusterState) -> None:
        self._kind = kind
        self._state = state
        self._objects: dict[ObjectKey, ClusterObject] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def add(self, listed: ClusterObject) -> None:
        self._objects[listed.key] = self._state.held_twin(listed)

    def take(self, change: Upserted | Deleted) -> None:
        """Apply one initial event of a watch: normally an addition; a deletion removes the object."""
        match change:
            case Upserted(value):
                self.add(value)
            case Deleted(_, key):
                self._objects.pop(key, None)

    def keep(self, undecodable: Undecodable) -> None:
        """Keep the held version of an object that cannot be decoded: it has not been deleted."""
        held = self._state.held(self._kind, undecodable.key) if undecodable.key is not None else None
        if held is not None:
            self._objects[held.key] = held

    def objects(self) -> tuple[ClusterObject, ...]:
        return tuple(self._objects.values())

    def let_go(self) -> Iterator[None]:
        """Empty the listing, LET_GO_AT_ONCE objects per step: 150,000 keys in one step would delay queries by 20 ms."""
        while self._objects:
            for _ in range(min(LET_GO_AT_ONCE, len(self._objects))):
                self._objects.popitem()
            yield
