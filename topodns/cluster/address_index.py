"""Which objects claim an address. Knows their names only."""

from collections.abc import Collection

from topodns.cluster.model import ObjectKey


class AddressIndex:
    """Claimants by address. Nearly every address has one, which is then kept bare: there may be 150,000 of them."""

    def __init__(self) -> None:
        self._claimants: dict[bytes, ObjectKey | tuple[ObjectKey, ...]] = {}

    def claimants(self, address: bytes) -> tuple[ObjectKey, ...]:
        """The objects with this address, by namespace and name, so that the order in which they came is no matter."""
        held = self._claimants.get(address, ())
        return (held,) if isinstance(held, ObjectKey) else held

    def move(self, key: ObjectKey, old: Collection[bytes], new: Collection[bytes]) -> None:
        """The object that had the addresses `old` (as told before; maybe none) now has `new`."""
        for address in set(old).difference(new):
            self._store(address, tuple(other for other in self.claimants(address) if other != key))
        for address in set(new).difference(old):
            self._store(address, tuple(sorted((*self.claimants(address), key))))

    def _store(self, address: bytes, claimants: tuple[ObjectKey, ...]) -> None:
        if claimants:
            self._claimants[address] = claimants if len(claimants) > 1 else claimants[0]
        else:
            self._claimants.pop(address, None)
