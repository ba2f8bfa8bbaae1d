"""Indexes of objects by address: of one kind, and of Services by their external addresses.

`ClusterState` maintains them. Where a client is, is decided in `topology.client_locator`.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from typing import Any, Generic, TypeVar

from topodns.cluster.model import ClusterObject, ObjectKey, Service
from topodns.cluster.soa_serial import external_part
from topodns.dependency import Fact, address_facts

Key = TypeVar("Key", bound=tuple[Any, ...])


class AddressIndex(Generic[Key]):
    """The keys of the objects with each address, in order; a key is a tuple, and its first field a namespace.

    A single key is stored without a list: there may be 150,000. Users of one namespace can have any number of objects
    with the address of another one's: a change of one object costs little for each of its addresses, however many
    others have them.
    """

    def __init__(self) -> None:
        self._keys: dict[bytes, Key] = {}  # of addresses that one object has
        self._shared: dict[bytes, list[Key]] = {}  # of the others

    def keys(self, address: bytes) -> tuple[Key, ...]:
        """The keys of the objects with this address, in order."""
        return tuple(self._held(address))

    def first_of_namespaces(self, addresses: Iterable[bytes], most: int, besides: str = "") -> Iterator[Key]:
        """The first `most` keys of each namespace with one of these addresses, in order for each address.

        None of the namespace `besides`, unless that is "".
        """
        for address in addresses:
            held = self._held(address)
            start = 0
            while start < len(held):
                namespace = held[start][0]
                end = bisect_left(held, (namespace + "\0",), start) if start + 1 < len(held) else start + 1
                if not besides or namespace != besides:
                    yield from held[start : min(end, start + most)]
                start = end

    def shared(self, addresses: Set[bytes]) -> Iterator[tuple[bytes, Sequence[Key]]]:
        """Those of these addresses that several objects have, each with the keys of the objects: a live view."""
        for address in self._shared.keys() & addresses:
            yield address, self._shared[address]

    def move(self, key: Key, old: Collection[bytes], new: Collection[bytes]) -> None:
        """Change the addresses of an object from `old` (those of its previous `move`, or none) to `new`."""
        for address in set(old).difference(new):
            self._remove(address, key)
        for address in set(new).difference(old):
            self._add(address, key)

    def _held(self, address: bytes) -> Sequence[Key]:
        alone = self._keys.get(address)
        return (alone,) if alone is not None else self._shared.get(address, ())

    def _remove(self, address: bytes, key: Key) -> None:
        if self._keys.pop(address, None) is not None:
            return
        held = self._shared[address]
        del held[bisect_left(held, key)]
        if len(held) == 1:
            self._keys[address] = held[0]
            del self._shared[address]

    def _add(self, address: bytes, key: Key) -> None:
        held = self._shared.get(address)
        if held is not None:
            insort(held, key)
        elif address in self._keys:
            self._shared[address] = sorted((self._keys.pop(address), key))
        else:
            self._keys[address] = key


class ExternalIndex:
    """The keys of Services by external address, and the SOA serial of CoreDNS's plugin `k8s_external`."""

    serial: int  # Unix seconds of the last change to a Service's external addresses, hostnames or ports; 0 before any

    def __init__(self) -> None:
        self.serial = 0
        self._by_address: AddressIndex[ObjectKey] = AddressIndex()

    def at(self, address: bytes) -> tuple[ObjectKey, ...]:
        """The Services with this packed external address, ordered by namespace and name."""
        return self._by_address.keys(address)

    def take(self, old: ClusterObject | None, new: ClusterObject | None, wall_seconds: int) -> Collection[Fact]:
        """Apply a change of an object (None: absent) at this Unix time.

        Returns the dependencies touched: those of its old and new external addresses; none if external addresses,
        external hostnames and ports stay the same, or if there is no external address or hostname before and after.
        """
        before, after = external_part(old), external_part(new)
        if before == after:
            return ()
        self.serial = wall_seconds
        one = new if new is not None else old
        assert one is not None
        old_ips, new_ips = _ips(old), _ips(new)
        self._by_address.move(one.key, old_ips, new_ips)
        return address_facts((*old_ips, *new_ips))


def _ips(of: ClusterObject | None) -> tuple[bytes, ...]:
    return of.external_ips if isinstance(of, Service) else ()
