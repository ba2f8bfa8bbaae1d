"""Endpoints of a Service: those that a name may mean, by family and port, and their names in SRV records."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import Group, Pool, endpoint_label
from topodns.cluster.model import Endpoint, EndpointPort, ObjectKey, Service
from topodns.dns.name import label_wire
from topodns.dns.rrtype import RRType
from topodns.plugins.kubernetes.question import ServiceName, ZonalName, ZoneQuestion
from topodns.plugins.kubernetes.records import GroupOffer
from topodns.plugins.kubernetes.zone import KubernetesZone

FAMILIES: Final = (4, 6)
FAMILY_OF_TYPE: Final = {RRType.A: 4, RRType.AAAA: 6}

_SVC: Final = label_wire("svc")
NO_BACKENDS: Final = Backends((), lambda _: None, False)


def backends_of(kubernetes: KubernetesZone, service: Service) -> Backends:
    """The Service's endpoints; none with the option `noendpoints`."""
    return NO_BACKENDS if kubernetes.settings.noendpoints else kubernetes.state.backends(service.key, service.imported)


def backends_below(kubernetes: KubernetesZone, service: Service, name: ServiceName | ZonalName) -> Backends:
    """The endpoints of which some may have this name: if it is that of one of an imported Service, its cluster's."""
    if service.imported and isinstance(name, ServiceName) and name.endpoint:
        return _of_cluster(kubernetes, service, name.cluster)
    return backends_of(kubernetes, service)


def lots(
    kubernetes: KubernetesZone, service: Service, backends: Backends, question: ZoneQuestion
) -> Iterator[tuple[Backends, bytes]]:
    """(endpoints, wire-form suffix of their names) pairs, which together have all endpoints of the Service, `backends`.

    One pair; of an imported Service one for each exporting cluster, which is part of an endpoint's name (KEP-1645).
    """
    if not service.imported:
        yield backends, service_wire(service, question)
        return
    for each in backends.cluster_ids:
        yield _of_cluster(kubernetes, service, each), suffix_of(service, each, question)


def offers_of(
    lot: tuple[Backends, bytes],
    ports: Iterable[EndpointPort],
    pick: Callable[[Pool], Group],
    of_all: Backends | None = None,
) -> Iterator[GroupOffer]:
    """The offers for SRV records: for each port and family, the endpoints that `pick` selects.

    With `of_all` it selects among the endpoints of all clusters of a ServiceImport, of which the lot is one.
    """
    backends, suffix = lot
    for port in ports:
        for family in FAMILIES:
            group = pick((of_all or backends).pool_for_port(family, port))
            if of_all is not None:
                group = backends.common(family, port, group)
            if group.endpoints:
                yield GroupOffer(group, port.number, suffix)


def pools_of(backends: Backends, families: Iterable[int], ports: Iterable[EndpointPort] | None) -> Iterator[Pool]:
    """The endpoints of these families, for each of these ports; with None, all of a family as one pool."""
    if ports is None:
        for family in families:
            yield backends.pools[family]
        return
    for port in ports:
        for family in families:
            yield backends.pool_for_port(family, port)


def any_ready(backends: Backends, ports: Iterable[EndpointPort]) -> bool:
    return any(pool.everyone.endpoints for pool in pools_of(backends, FAMILIES, ports))


def members(kubernetes: KubernetesZone, service: Service, question: ZoneQuestion) -> list[tuple[bytes, bytes]]:
    """(wire-form name, packed address) of each ready endpoint of both families."""
    backends, suffix = backends_of(kubernetes, service), service_wire(service, question)
    endpoints = [endpoint for family in FAMILIES for endpoint in backends.pools[family].everyone.endpoints]
    by_pod = kubernetes.settings.endpoint_pod_names
    return [(label_wire(endpoint_label(endpoint, by_pod)) + suffix, endpoint.address) for endpoint in endpoints]


def endpoints_at(kubernetes: KubernetesZone, address: bytes) -> Sequence[tuple[ObjectKey, Endpoint]]:
    """(key of a Service, its ready endpoint at this packed address) pairs; empty with `noendpoints`."""
    return () if kubernetes.settings.noendpoints else kubernetes.state.slice_table.ready_at(address)


def service_wire(service: Service, question: ZoneQuestion) -> bytes:
    """The Service's name in wire form, with the origin in the query's spelling."""
    return label_wire(service.name) + label_wire(service.namespace) + _SVC + question.origin_wire


def _of_cluster(kubernetes: KubernetesZone, service: Service, cluster: str) -> Backends:
    """The endpoints of an imported Service from one cluster; none if `cluster` is "", or with `noendpoints`.

    Of an imported Service's cluster, the case does not matter.
    """
    if kubernetes.settings.noendpoints or not cluster:
        return NO_BACKENDS
    return kubernetes.state.cluster_backends(service.key, cluster.lower())


def suffix_of(service: Service, cluster: str, question: ZoneQuestion) -> bytes:
    own = service_wire(service, question)
    return b"".join(map(label_wire, cluster.split("."))) + own if cluster else own
