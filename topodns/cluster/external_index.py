"""Index of Services by external address (spec.externalIPs, status.loadBalancer), for the plugin `k8s_external`.

`ClusterState` maintains it. The plugin answers PTR queries from it, and its zones have an SOA serial of their own.
"""

from collections.abc import Collection

from topodns.cluster.address_index import AddressIndex
from topodns.cluster.model import ClusterObject, ObjectKey, Service
from topodns.cluster.soa_serial import external_part
from topodns.dependency import Fact, address_facts


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
