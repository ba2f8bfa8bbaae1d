"""Endpoints one by one: `<hostname or dashed address>.<service>.<namespace>.svc`, CoreDNS's `zonal` names, SRV targets.

Topology leaves endpoint names alone unless `filter_hostnames` says otherwise, and zone-scoped names always: whoever
asks for them has chosen already.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from topodns.cluster.backends import Backends, Group, Pool, endpoint_label
from topodns.cluster.model import Endpoint, EndpointPort, ObjectKey, Service
from topodns.cluster.state import ClusterState
from topodns.dns.message import RRType
from topodns.dns.names import label_wire
from topodns.resolve.origins import Question
from topodns.resolve.schema import ServiceName, ZonalName
from topodns.resolve.srv import Offer, address_records, srv_records
from topodns.resolve.step import Resolution
from topodns.resolve.topology_choice import Choice, Chooser
from topodns.resolve.verdict import Facts, found, name_error, no_data
from topodns.settings.kubernetes import KubernetesSettings

FAMILIES: Final = (4, 6)
FAMILY_OF_TYPE: Final = {int(RRType.A): 4, int(RRType.AAAA): 6}

_SRV: Final = int(RRType.SRV)
_SVC: Final = label_wire("svc")
_NO_BACKENDS: Final = Backends((), lambda _: None, False)


class EndpointNames:
    """`filter_hostnames` lets the topology of a headless Service hide endpoint names as well."""

    def __init__(
        self, settings: KubernetesSettings, state: ClusterState, chooser: Chooser, filter_hostnames: bool
    ) -> None:
        self._ttl = settings.ttl
        self._pod_names = settings.endpoint_pod_names
        self._noendpoints = settings.noendpoints
        self._state = state
        self._chooser = chooser
        self._filter_hostnames = filter_hostnames

    def backends(self, service: Service) -> Backends:
        """The Service's endpoints; none with the option `noendpoints`."""
        return _NO_BACKENDS if self._noendpoints else self._state.backends(service.key, service.imported)

    def named(self, name: ServiceName, service: Service, question: Question, facts: Facts) -> Resolution:
        """Records of an endpoint's name, under a headless Service or any other."""
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
            kept = frozenset(id(endpoint) for pool in pools for endpoint in choice.select(pool).endpoints)
            lot = (backends, _suffix(service, name.cluster, question))
            offers = self.offers(lot, backends.ports, lambda pool: _among(pool, kept))
            return choice.resolution(facts, *srv_records(list(offers), choice.ttl))
        family = FAMILY_OF_TYPE.get(qtype)
        if family is None:
            return choice.resolution(facts)
        addresses = choice.select(backends.pool_for_name(family, name.endpoint)).addresses
        return choice.resolution(facts, address_records(qtype, choice.ttl, addresses))

    def zonal(self, name: ZonalName, service: Service, question: Question, facts: Facts) -> Resolution:
        """Endpoints of a headless Service whose slices say this zone; of a service without any, NODATA."""
        backends = self.backends(service)
        missed = not any(backends.pool(family).by_topology_zone(name.topology_zone).endpoints for family in FAMILIES)
        pick = _everyone if missed and name.prefer else lambda pool: pool.by_topology_zone(name.topology_zone)
        qtype = question.query.qtype
        if qtype == _SRV:
            offers = self.offers((backends, service_wire(service, question)), backends.ports, pick)
            return found(facts, *srv_records(list(offers), self._ttl))
        family = FAMILY_OF_TYPE.get(qtype)
        if family is None:
            return no_data(facts)
        return found(facts, address_records(qtype, self._ttl, pick(backends.pool(family)).addresses))

    def lots(self, service: Service, question: Question) -> list[tuple[Backends, bytes]]:
        """The Service's endpoints, each lot with the wire-form name that its endpoints' labels stand before.

        One lot, but for imported Services, where the cluster that exports an endpoint is part of its name (KEP-1645).
        """
        if not service.imported:
            return [(self.backends(service), service_wire(service, question))]
        clusters = self.backends(service).cluster_ids
        return [(self._of_cluster(service, each), _suffix(service, each, question)) for each in clusters]

    def offers(
        self, lot: tuple[Backends, bytes], ports: Iterable[EndpointPort], pick: Callable[[Pool], Group]
    ) -> Iterator[Offer]:
        """What SRV records offer: of each port and family, the endpoints that `pick` leaves."""
        backends, suffix = lot
        for port in ports:
            for family in FAMILIES:
                for endpoint in pick(backends.pool_for_port(family, port)).endpoints:
                    yield Offer(label_wire(self.label(endpoint)) + suffix, endpoint.address, port.number)

    def members(self, service: Service, question: Question) -> list[tuple[bytes, bytes]]:
        """(wire-form name, packed address) of each ready endpoint of both families."""
        backends, suffix = self.backends(service), service_wire(service, question)
        endpoints = [endpoint for family in FAMILIES for endpoint in backends.pool(family).everyone.endpoints]
        return [(label_wire(self.label(endpoint)) + suffix, endpoint.address) for endpoint in endpoints]

    def at(self, address: bytes) -> list[tuple[ObjectKey, Endpoint]]:
        """The Services that have a ready endpoint at this packed address, each with that endpoint."""
        if self._noendpoints:
            return []
        return [(key, endpoint) for key, endpoint in self._state.endpoints_with_address(address) if endpoint.ready]

    def label(self, endpoint: Endpoint) -> str:
        """The label that names an endpoint under its Service."""
        return endpoint_label(endpoint, self._pod_names)

    def _choice(self, service: Service, question: Question) -> Choice:
        if self._filter_hostnames and service.headless and not service.imported:
            return self._chooser.choice(service.key, question)
        return self._chooser.unfiltered(question)

    def _of_cluster(self, service: Service, cluster: str) -> Backends:
        """The endpoints that one cluster exports; none without a cluster, whose label no name may leave out."""
        if self._noendpoints or not cluster:
            return _NO_BACKENDS
        return self._state.cluster_backends(service.key, cluster)


def service_wire(service: Service, question: Question) -> bytes:
    """The Service's own name, the origin in the query's spelling."""
    return label_wire(service.name) + label_wire(service.namespace) + _SVC + question.origin_wire


def _suffix(service: Service, cluster: str, question: Question) -> bytes:
    own = service_wire(service, question)
    return label_wire(cluster) + own if cluster else own


def _everyone(pool: Pool) -> Group:
    return pool.everyone


def _among(pool: Pool, kept: frozenset[int]) -> Group:
    """The pool without endpoints that are not among these (their identities: an Endpoint has no hash)."""
    endpoints = tuple(endpoint for endpoint in pool.everyone.endpoints if id(endpoint) in kept)
    return Group(endpoints, ())
