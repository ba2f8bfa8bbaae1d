"""Objects by address; Services by external address (spec.externalIPs, status.loadBalancer), and their SOA serial."""

from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterable, Iterator

from topodns.cluster.model import ClusterObject, EndpointSlice, ObjectKey, Pod, Service
from topodns.dependency import Fact, address_facts


class AddressIndex:
    """The keys of the objects with each address. A single key is stored without a tuple: there may be 150,000."""

    def __init__(self) -> None:
        self._claimants: dict[bytes, ObjectKey | tuple[ObjectKey, ...]] = {}

    def claimants(self, address: bytes) -> tuple[ObjectKey, ...]:
        """The objects with this address, ordered by namespace and name, independent of the order of their changes."""
        held = self._claimants.get(address, ())
        return (held,) if isinstance(held, ObjectKey) else held

    def shared(self, addresses: Iterable[bytes]) -> Iterator[tuple[ObjectKey, ...]]:
        """`claimants` of each of these addresses that more than one object has."""
        for held in map(self._claimants.get, addresses):
            if held is not None and not isinstance(held, ObjectKey):
                yield held

    def move(self, key: ObjectKey, old: Collection[bytes], new: Collection[bytes]) -> None:
        """Change the addresses of an object from `old` (those of its previous `move`, or none) to `new`."""
        for address in set(old).difference(new):
            claimants = self.claimants(address)
            at = bisect_left(claimants, key)
            self._store(address, claimants[:at] + claimants[at + 1 :])
        for address in set(new).difference(old):
            claimants = self.claimants(address)
            at = bisect_left(claimants, key)
            self._store(address, (*claimants[:at], key, *claimants[at:]))

    def _store(self, address: bytes, claimants: tuple[ObjectKey, ...]) -> None:
        if claimants:
            self._claimants[address] = claimants if len(claimants) > 1 else claimants[0]
        else:
            self._claimants.pop(address, None)


class ExternalIndex:
    """The keys of Services by external address, and the SOA serial of CoreDNS's plugin `k8s_external`."""

    serial: int  # Unix seconds of the last change to a Service's external addresses, hostnames or ports; 0 before any

    def __init__(self) -> None:
        self.serial = 0
        self._by_address = AddressIndex()

    def at(self, address: bytes) -> tuple[ObjectKey, ...]:
        """The Services with this packed external address, ordered by namespace and name."""
        return self._by_address.claimants(address)

    def take(self, old: ClusterObject | None, new: ClusterObject | None, wall_seconds: int) -> Collection[Fact]:
        """Apply a change of an object (None: absent). Returns the external addresses that this touches."""
        before, after = _seen(old), _seen(new)
        if before == after:
            return ()
        self.serial = wall_seconds
        one = new if new is not None else old
        assert one is not None
        old_ips, new_ips = _ips(old), _ips(new)
        self._by_address.move(one.key, old_ips, new_ips)
        return address_facts((*old_ips, *new_ips))


def _seen(of: ClusterObject | None) -> Hashable:
    """The external part of an object, as CoreDNS compares it; None if it has none."""
    if isinstance(of, Service) and (of.external_ips or of.external_hostnames):
        return of.external_ips, of.external_hostnames, of.ports
    return None


def _ips(of: ClusterObject | None) -> tuple[bytes, ...]:
    return of.external_ips if isinstance(of, Service) else ()


def counts_in_serial(old: ClusterObject | None, new: ClusterObject | None) -> bool:
    """Whether a change of an object (None: absent) advances the SOA serial, as in CoreDNS."""
    before, after = _counted(old), _counted(new)
    return before != after


def _counted(of: ClusterObject | None) -> Hashable:
    """The part of an object that the serial depends on; None for an absent object and for the other kinds."""
    match of:
        case Service(imported=True):
            return of.headless, of.ports
        case Service():
            return of.external_name, of.ports
        case EndpointSlice():
            ready = tuple((endpoint.address, endpoint.hostname) for endpoint in of.endpoints if endpoint.ready)
            return of.ports, ready
        case Pod():
            return of.ips[:1]
        case _:
            return None
