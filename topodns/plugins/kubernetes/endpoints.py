"""Single endpoints: `<hostname or dashed address>.<service>.<namespace>.svc`, CoreDNS's `zonal` names, SRV targets.

Topology filters endpoint names only with `filter_hostnames`, and zone-scoped names never: a query for such a name has
chosen already.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from topodns.cluster.backends import Backends
from topodns.cluster.endpoint_names import endpoint_label
from topodns.cluster.endpoints import Group, Pool
from topodns.cluster.model import Endpoint, EndpointPort, ObjectKey, Service
from topodns.cluster.state import ClusterState
from topodns.dns.name import label_wire
from topodns.dns.rrtype import RRType
from topodns.plugins.kubernetes.label_cache import KeptLabels
from topodns.plugins.kubernetes.parse import ServiceName, ZonalName
from topodns.plugins.kubernetes.records import (
    Facts,
    GroupOffer,
    Sections,
    address_records,
    endpoint_srv_records,
    found,
    name_error,
    no_data,
)
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.topology_filter import Choice, Chooser
from topodns.plugins.kubernetes.zones import ZoneQuestion
from topodns.query.plugin import Resolution

FAMILIES: Final = (4, 6)
FAMILY_OF_TYPE: Final = {int(RRType.A): 4, int(RRType.AAAA): 6}

_SRV: Final = int(RRType.SRV)
_SVC: Final = label_wire("svc")
_NO_BACKENDS: Final = Backends((), lambda _: None, False)


class EndpointNames:
    """With `filter_hostnames` the topology policy of a headless Service filters its endpoint names as well."""

    def __init__(
        self, settings: KubernetesSettings, state: ClusterState, chooser: Chooser, filter_hostnames: bool
    ) -> None:
        self._ttl = settings.ttl
        self._pod_names = settings.endpoint_pod_names
        self._labels = KeptLabels(settings.endpoint_pod_names)
        self._noendpoints = settings.noendpoints
        self._state = state
        self._chooser = chooser
        self._filter_hostnames = filter_hostnames

    def backends(self, service: Service) -> Backends:
        """The Service's endpoints; none with the option `noendpoints`."""
        return _NO_BACKENDS if self._noendpoints else self._state.backends(service.key, service.imported)

    def named(self, name: ServiceName, service: Service, question: ZoneQuestion, facts: Facts) -> Resolution:
        """Records of an endpoint's name, under a Service of any type."""
        backends = self._of_cluster(service, name.cluster) if service.imported else self.backends(service)
        groups = backends.named(name.endpoint)
        if not groups:
            return name_error(facts)
        choice = self._choice(service, question)
        pools = [backends.pool_for_name(family, name.endpoint) for family in groups]
        objection = choice.objection(lambda: pools, facts)
        if objection is not None:
            return objection
        qtype = question.query.qtype
        if qtype == _SRV:
            chosen = {family: choice.select(backends.pool_for_name(family, name.endpoint)) for family in groups}
            suffix = _suffix(service, name.cluster, question)
            offers = (
                GroupOffer(backends.exposing(family, port, group), port.number, suffix)
                for port in backends.ports
                for family, group in chosen.items()
            )
            return choice.resolution(facts, *self.srv_records(offers, choice.ttl, question))
        family = FAMILY_OF_TYPE.get(qtype)
        if family is None:
            return choice.resolution(facts)
        addresses = choice.select(backends.pool_for_name(family, name.endpoint)).addresses
        return choice.resolution(facts, address_records(qtype, choice.ttl, addresses))

    def zonal(self, name: ZonalName, service: Service, question: ZoneQuestion, facts: Facts) -> Resolution:
        """The endpoints of a headless Service whose slices name this topology zone; if there are none, NODATA (`pin`)
        or all endpoints (`prefer`).
        """
        backends = self.backends(service)
        missed = not any(backends.pool(family).by_topology_zone(name.topology_zone).endpoints for family in FAMILIES)
        pick = _everyone if missed and name.prefer else lambda pool: pool.by_topology_zone(name.topology_zone)
        qtype = question.query.qtype
        if qtype == _SRV:
            offers = self.offers((backends, service_wire(service, question)), backends.ports, pick)
            return found(facts, *self.srv_records(offers, self._ttl, question))
        family = FAMILY_OF_TYPE.get(qtype)
        if family is None:
            return no_data(facts)
        return found(facts, address_records(qtype, self._ttl, pick(backends.pool(family)).addresses))

    def lots(self, service: Service, question: ZoneQuestion) -> Iterator[tuple[Backends, bytes]]:
        """The Service's endpoints in lots, each with the wire-form suffix of its endpoints' names.

        One lot, except for imported Services, where the exporting cluster is part of an endpoint's name (KEP-1645).
        """
        if not service.imported:
            yield self.backends(service), service_wire(service, question)
        for each in self.backends(service).cluster_ids:  # empty unless the Service is imported
            yield self._of_cluster(service, each), _suffix(service, each, question)

    def offers(
        self, lot: tuple[Backends, bytes], ports: Iterable[EndpointPort], pick: Callable[[Pool], Group]
    ) -> Iterator[GroupOffer]:
        """The offers for SRV records: for each port and family, the endpoints that `pick` selects."""
        backends, suffix = lot
        for port in ports:
            for family in FAMILIES:
                yield GroupOffer(pick(backends.pool_for_port(family, port)), port.number, suffix)

    def srv_records(self, offers: Iterable[GroupOffer], ttl: int, question: ZoneQuestion) -> Sections:
        """The SRV records of these offers, cut at the limit of the reply, and the addresses of their targets."""
        return endpoint_srv_records(offers, self._labels, ttl, question.client.limit)

    def members(self, service: Service, question: ZoneQuestion) -> list[tuple[bytes, bytes]]:
        """(wire-form name, packed address) of each ready endpoint of both families."""
        backends, suffix = self.backends(service), service_wire(service, question)
        endpoints = [endpoint for family in FAMILIES for endpoint in backends.pool(family).everyone.endpoints]
        return [(label_wire(self.label(endpoint)) + suffix, endpoint.address) for endpoint in endpoints]

    def at(self, address: bytes) -> list[tuple[ObjectKey, Endpoint]]:
        """The Services with a ready endpoint at this packed address, each with that endpoint."""
        if self._noendpoints:
            return []
        return [(key, endpoint) for key, endpoint in self._state.endpoints_with_address(address) if endpoint.ready]

    def label(self, endpoint: Endpoint) -> str:
        """The label of an endpoint's name under its Service."""
        return endpoint_label(endpoint, self._pod_names)

    def _choice(self, service: Service, question: ZoneQuestion) -> Choice:
        if self._filter_hostnames and service.headless and not service.imported:
            return self._chooser.choice(service.key, question)
        return self._chooser.unfiltered(question)

    def _of_cluster(self, service: Service, cluster: str) -> Backends:
        """The endpoints that one cluster exports; none without a cluster, whose label the name must have."""
        if self._noendpoints or not cluster:
            return _NO_BACKENDS
        return self._state.cluster_backends(service.key, cluster)


def service_wire(service: Service, question: ZoneQuestion) -> bytes:
    """The Service's name in wire form, with the origin in the query's spelling."""
    return label_wire(service.name) + label_wire(service.namespace) + _SVC + question.origin_wire


def _suffix(service: Service, cluster: str, question: ZoneQuestion) -> bytes:
    own = service_wire(service, question)
    return label_wire(cluster) + own if cluster else own


def _everyone(pool: Pool) -> Group:
    return pool.everyone
