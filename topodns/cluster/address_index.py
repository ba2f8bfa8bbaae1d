"""Index of the objects of one kind by address. Where a client is, is decided in `topology.client_locator`."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator

from topodns.cluster.model import ObjectKey


class AddressIndex:
    """The keys of the objects with each address. A single key is stored without a tuple: there may be 150,000."""

    def __init__(self) -> None:
        self._keys: dict[bytes, ObjectKey | tuple[ObjectKey, ...]] = {}

    def keys(self, address: bytes) -> tuple[ObjectKey, ...]:
        """The keys of the objects with this address, ordered by namespace and name."""
        held = self._keys.get(address, ())
        return (held,) if isinstance(held, ObjectKey) else held

    def shared(self, addresses: Iterable[bytes]) -> Iterator[tuple[ObjectKey, ...]]:
        """For each of these addresses that several objects have: the keys of the objects."""
        for held in map(self._keys.get, addresses):
            if held is not None and not isinstance(held, ObjectKey):
                yield held

    def move(self, key: ObjectKey, old: Collection[bytes], new: Collection[bytes]) -> None:
        """Change the addresses of an object from `old` (those of its previous `move`, or none) to `new`."""
        for address in set(old).difference(new):
            keys = self.keys(address)
            at = bisect_left(keys, key)
            self._store(address, keys[:at] + keys[at + 1 :])
        for address in set(new).difference(old):
            keys = self.keys(address)
            at = bisect_left(keys, key)
            self._store(address, (*keys[:at], key, *keys[at:]))

    def _store(self, address: bytes, keys: tuple[ObjectKey, ...]) -> None:
        if keys:
            self._keys[address] = keys if len(keys) > 1 else keys[0]
        else:
            self._keys.pop(address, None)
