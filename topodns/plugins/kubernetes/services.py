"""Names of Services and below: ClusterIPs or endpoints, all or by port, and the names of endpoints.

Answers are as in CoreDNS. Topology filters the addresses and ports of headless Services (docs/reference/topology.md),
and endpoint names, by which the client has chosen already, only with `filter_hostnames`.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import Pool
from topodns.cluster.model import EndpointPort, ObjectKey, Service, ServicePort
from topodns.cluster.state import ClusterState
from topodns.dependency import namespace_fact, service_fact
from topodns.dns.rrtype import RRType
from topodns.plugins.kubernetes.endpoints import FAMILIES, FAMILY_OF_TYPE, EndpointNames, service_wire
from topodns.plugins.kubernetes.external_name import ExternalNames
from topodns.plugins.kubernetes.namespaces import Exposure
from topodns.plugins.kubernetes.parse import ServiceName, ZonalName, is_above_zones
from topodns.plugins.kubernetes.records import (
    NXDOMAIN,
    Facts,
    GroupOffer,
    address_records,
    address_type,
    found,
    name_error,
    no_data,
    not_ready,
    service_srv_records,
)
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.topology_filter import Choice, Chooser
from topodns.plugins.kubernetes.zones import ZoneQuestion
from topodns.query.plugin import Resolution

_SRV: Final = int(RRType.SRV)
_PROTOCOLS: Final = frozenset({"tcp", "udp", "sctp"})

_Port = TypeVar("_Port", ServicePort, EndpointPort)


class ServiceNames:
    def __init__(
        self,
        settings: KubernetesSettings,
        state: ClusterState,
        exposure: Exposure,
        chooser: Chooser,
        endpoints: EndpointNames,
        external: ExternalNames,
    ) -> None:
        self._ttl = settings.ttl
        self._ignore_empty = settings.ignore_empty_service
        self._zonal = settings.zonal
        self._state = state
        self._exposure = exposure
        self._chooser = chooser
        self._endpoints = endpoints
        self._external = external

    def respond(self, name: ServiceName | ZonalName, question: ZoneQuestion) -> Resolution:
        """Records of the type queried, NODATA or NXDOMAIN, with their dependencies.

        SERVFAIL for an unknown name of a ServiceImport while RBAC denies ServiceImports: it may exist.
        """
        namespace = name.namespace
        if not self._exposure.exposes(namespace):
            return name_error((namespace_fact(namespace),))
        facts = (namespace_fact(namespace), service_fact(namespace, name.service))
        service = self._state.service(ObjectKey(namespace, name.service), question.origin.multicluster)
        if service is None:
            unsure = question.origin.multicluster and "ServiceImport" in self._state.denied
            return not_ready(facts) if unsure else name_error(facts)
        resolution = self._of_service(name, service, question, facts)
        if resolution.response.rcode == NXDOMAIN and self._is_above_others(name, service):
            return no_data(facts)
        return resolution

    def _of_service(
        self, name: ServiceName | ZonalName, service: Service, question: ZoneQuestion, facts: Facts
    ) -> Resolution:
        if isinstance(name, ZonalName):
            return self._endpoints.zonal(name, service, question, facts) if service.headless else name_error(facts)
        if service.external_name is not None:
            below = name.endpoint or name.port or name.protocol
            return name_error(facts) if below else self._external.respond(service.external_name, question, facts)
        if name.endpoint:
            return self._endpoints.named(name, service, question, facts)
        if service.headless:
            return self._headless(name, service, question, facts)
        return self._cluster_ips(name, service, question, facts)

    def _is_above_others(self, name: ServiceName | ZonalName, service: Service) -> bool:
        """Whether this is an empty non-terminal below a Service: no records, but names below it (RFC 8020).

        These are a protocol (`_tcp.web`, above `_http._tcp.web`), a cluster of an imported Service, and the labels
        between a Service and its topology zones (`_zone.db`, `pin._zone.db`).
        """
        if isinstance(name, ZonalName) or service.external_name is not None:
            return False
        if self._zonal and service.headless and not service.imported and is_above_zones(name):
            return True
        if service.imported and not name.cluster and name.endpoint in self._endpoints.backends(service).cluster_ids:
            return True
        protocol = name.endpoint.removeprefix("_")
        return protocol in _PROTOCOLS and self._has_ports(name._replace(endpoint="", protocol=protocol), service)

    def _has_ports(self, name: ServiceName, service: Service) -> bool:
        """Whether the Service has ports that the name selects and that have records."""
        backends = self._endpoints.backends(service)
        if service.headless:
            return _any_ready(backends, _matching(backends.ports, name))
        return bool(_matching(service.ports, name)) and not (self._ignore_empty and not backends.has_ready)

    def _cluster_ips(self, name: ServiceName, service: Service, question: ZoneQuestion, facts: Facts) -> Resolution:
        if self._ignore_empty and not self._endpoints.backends(service).has_ready:
            return name_error(facts)
        ports: Sequence[ServicePort] = service.ports
        if name.port or name.protocol:
            ports = _matching(ports, name)
            if not ports:
                return name_error(facts)
        qtype = question.query.qtype
        if qtype == _SRV:
            target = service_wire(service, question)
            numbers = [port.number for port in ports]
            limit = question.client.limit
            return found(facts, *service_srv_records(target, service.cluster_ips, (), numbers, self._ttl, limit))
        addresses = tuple(dict.fromkeys([each for each in service.cluster_ips if address_type(each) == qtype]))
        return found(facts, address_records(qtype, self._ttl, addresses))

    def _headless(self, name: ServiceName, service: Service, question: ZoneQuestion, facts: Facts) -> Resolution:
        backends = self._endpoints.backends(service)
        ports = _matching(backends.ports, name) if name.port or name.protocol else None
        if not (backends.has_ready if ports is None else _any_ready(backends, ports)):
            return name_error(facts)
        chooser = self._chooser
        choice = chooser.unfiltered(question) if service.imported else chooser.choice(service.key, question)
        objection = choice.objection(partial(_all_pools, backends, ports), facts)
        if objection is not None:
            return objection
        qtype = question.query.qtype
        if qtype == _SRV:
            offers = self._offers(service, backends.ports if ports is None else ports, choice, question)
            return choice.resolution(facts, *self._endpoints.srv_records(offers, choice.ttl, question))
        family = FAMILY_OF_TYPE.get(qtype)
        if family is None:
            return choice.resolution(facts)
        if ports is None:
            addresses = choice.select(backends.pool(family)).addresses
        else:
            addresses = backends.joined_addresses([choice.select(pool) for pool in _pools(backends, family, ports)])
        return choice.resolution(facts, address_records(qtype, choice.ttl, addresses))

    def _offers(
        self, service: Service, ports: Iterable[EndpointPort], choice: Choice, question: ZoneQuestion
    ) -> Iterator[GroupOffer]:
        """The offers for SRV records. Topology decides per family and port, as kube-proxy did per ServicePort."""
        for lot in self._endpoints.lots(service, question):
            yield from self._endpoints.offers(lot, ports, choice.select)


def _matching(ports: Iterable[_Port], name: ServiceName) -> list[_Port]:
    """The ports that the name selects; case is ignored, because the name is lower-case."""
    return [
        port
        for port in ports
        if (not name.port or port.name.lower() == name.port)
        and (not name.protocol or port.protocol.lower() == name.protocol)
    ]


def _pools(backends: Backends, family: int, ports: Iterable[EndpointPort] | None) -> Iterator[Pool]:
    """The endpoints of a family, for each of these ports; with None, all as one pool."""
    if ports is None:
        yield backends.pool(family)
        return
    for port in ports:
        yield backends.pool_for_port(family, port)


def _all_pools(backends: Backends, ports: Iterable[EndpointPort] | None) -> Iterator[Pool]:
    for family in FAMILIES:
        yield from _pools(backends, family, ports)


def _any_ready(backends: Backends, ports: Iterable[EndpointPort]) -> bool:
    return any(pool.everyone.endpoints for pool in _all_pools(backends, ports))
