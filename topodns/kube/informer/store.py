"""The contract between a reflector and the store that it fills: a cluster's state (`state_writer`), or the locator's.

A store chooses the values that it holds: it decodes the objects itself. A value has an attribute `key`, its ObjectKey.
"""

from collections.abc import Iterator, Set
from typing import Any, Protocol

from topodns.cluster.decode.objects import Decoded
from topodns.cluster.decode.stream import Event
from topodns.cluster.decode.structs import Json
from topodns.cluster.model import Kind, ObjectKey


class Listing(Protocol):
    """The values of one kind in a list that is being read. `version` is its resourceVersion, "" before it is whole."""

    version: str

    def __len__(self) -> int: ...

    def add(self, value: Any) -> None:
        """Add a value that was decoded, in the place of an earlier one with its key."""

    def keep(self, key: ObjectKey) -> None:
        """Add the value that the store holds, if any, of an object in the list that cannot be decoded."""

    def remove(self, key: ObjectKey) -> None:
        """Remove the value of an object that was deleted while the list was read."""

    def replace_steps(self, newer: Set[ObjectKey]) -> Iterator[int]:
        """Replace all values of the kind in the store, in small steps; each yields how many values in it differed.

        Those with a key in `newer` stay: an event has changed them meanwhile. The listing is empty afterwards.
        """


class Store(Protocol):
    """The values that reflectors keep equal to an API server's objects."""

    def decode(self, kind: Kind, source: Json, /) -> Decoded[Any] | None:
        """The value of an object: see `cluster.decode.stream.Decoder`."""

    def count(self, kind: Kind) -> int:
        """How many objects of the kind there were so far, by which a list is judged (`lister.ListCheck`)."""

    def new_listing(self, kind: Kind) -> Listing:
        """An empty list, which is about to be requested."""

    def apply(self, kind: Kind, event: Event[Any]) -> None:
        """Apply one event of a watch."""

    def do_without_steps(self, kind: Kind, seconds: float) -> Iterator[None]:
        """Wait no longer for an optional kind that has been denied or missing for so long, in small steps; a store that
        has none need not.
        """
        return iter(())
