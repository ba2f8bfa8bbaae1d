"""Decides which changes of objects advance the SOA serials: those that CoreDNS counts.

There are two: the serial of the cluster's zones, and that of the plugin `k8s_external` for Services reached from
outside.
"""

from collections.abc import Hashable
from operator import attrgetter
from typing import Final

from topodns.cluster.model import ClusterObject, EndpointSlice, Pod, Service

_ready: Final = attrgetter("ready")
_address_and_hostname: Final = attrgetter("address", "hostname")


def counts_in_serial(old: ClusterObject | None, new: ClusterObject | None) -> bool:
    """Whether a change of an object (None: absent) advances the serial of the cluster's zones."""
    before, after = _counted(old), _counted(new)
    return before != after


def _counted(of: ClusterObject | None) -> Hashable:
    """The part of an object that the serial depends on; None for an absent object and for kinds that never count."""
    match of:
        case Service(imported=True):
            return of.headless, of.ports
        case Service():
            return of.external_name, of.ports
        case EndpointSlice():
            return of.ports, tuple(map(_address_and_hostname, filter(_ready, of.endpoints))), of.aliases
        case Pod():
            return of.ips[:1]
        case _:
            return None


def external_part(of: ClusterObject | None) -> Hashable:
    """The part of an object that the serial of `k8s_external` depends on; None for an object without such a part."""
    if isinstance(of, Service) and (of.external_ips or of.external_hostnames):
        return of.external_ips, of.external_hostnames, of.ports
    return None
