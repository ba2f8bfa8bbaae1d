"""Services by the addresses at which the world outside reaches them: spec.externalIPs and those of load balancers."""

from collections.abc import Collection, Hashable

from topodns.cluster.address_index import AddressIndex
from topodns.cluster.facts import Fact, address_fact
from topodns.cluster.model import ClusterObject, ObjectKey, Service


class ExternalIndex:
    """Knows the keys of Services only."""

    serial: int  # Unix seconds of the last change to what the world outside may see; 0 before any

    def __init__(self) -> None:
        self.serial = 0
        self._by_address = AddressIndex()

    def at(self, address: bytes) -> tuple[ObjectKey, ...]:
        """The Services that have this packed address, by namespace and name."""
        return self._by_address.claimants(address)

    def take(self, old: ClusterObject | None, new: ClusterObject | None, wall_seconds: int) -> Collection[Fact]:
        """An object that was `old` (None: not there) is now `new`; the addresses whose owner that may change."""
        before, after = _seen(old), _seen(new)
        if before == after:
            return ()
        self.serial = wall_seconds
        one = new if new is not None else old
        assert one is not None
        old_ips, new_ips = _ips(old), _ips(new)
        self._by_address.move(one.key, old_ips, new_ips)
        return {*map(address_fact, (*old_ips, *new_ips))}


def _seen(of: ClusterObject | None) -> Hashable:
    """What the world outside sees of it, as CoreDNS compares it; None where that is nothing."""
    if isinstance(of, Service) and (of.external_ips or of.external_hostnames):
        return of.external_ips, of.external_hostnames, of.ports
    return None


def _ips(of: ClusterObject | None) -> tuple[bytes, ...]:
    return of.external_ips if isinstance(of, Service) else ()
