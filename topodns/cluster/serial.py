"""Which changes CoreDNS counts in the serial of its SOA record (its plugin/kubernetes/controller.go)."""

from collections.abc import Hashable

from topodns.cluster.model import ClusterObject, EndpointSlice, Pod, Service


def counts_in_serial(old: ClusterObject | None, new: ClusterObject | None) -> bool:
    """Whether an object that was added (old None), changed or removed (new None) moves the serial."""
    before, after = _counted(old), _counted(new)
    return before != after


def _counted(of: ClusterObject | None) -> Hashable:
    """The part of an object that is compared; None for a kind that has no say, like an object that is not there."""
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
