"""What stands under a Service's name: its ClusterIPs or its endpoints, whole or by port, and the names of endpoints.

The answers are CoreDNS's. Topology filters the addresses and ports of headless Services (docs/topology.md); endpoint
names, by which the client has chosen already, only with `filter_hostnames`.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, TypeVar

from topodns.cluster.backends import Backends, Pool
from topodns.cluster.facts import namespace_fact, service_fact
from topodns.cluster.model import EndpointPort, ObjectKey, Service, ServicePort
from topodns.cluster.state import ClusterState
from topodns.dns.message import RRType
from topodns.resolve.endpoint_names import FAMILIES, FAMILY_OF_TYPE, EndpointNames, service_wire
from topodns.resolve.exposure import Exposure
from topodns.resolve.external_names import ExternalNames
from topodns.resolve.origins import Question
from topodns.resolve.schema import ServiceName, ZonalName
from topodns.resolve.srv import Offer, address_records, address_type, srv_records
from topodns.resolve.step import Resolution
from topodns.resolve.topology_choice import Choice, Chooser
from topodns.resolve.verdict import Facts, found, name_error, not_ready
from topodns.settings.kubernetes import KubernetesSettings

_SRV: Final = int(RRType.SRV)

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
        self._state = state
        self._exposure = exposure
        self._chooser = chooser
        self._endpoints = endpoints
        self._external = external

    def respond(self, name: ServiceName | ZonalName, question: Question) -> Resolution:
        """Records of the type asked for, NODATA or a name error, and the facts that they rest on.

        Where ServiceImports are denied nobody can say which there are: SERVFAIL.
        """
        namespace = name.namespace
        if not self._exposure.exposes(namespace):
            return name_error((namespace_fact(namespace),))
        facts = (namespace_fact(namespace), service_fact(namespace, name.service))
        service = self._state.service(ObjectKey(namespace, name.service), question.origin.multicluster)
        if service is None:
            unsure = question.origin.multicluster and "ServiceImport" in self._state.denied
            return not_ready(facts) if unsure else name_error(facts)
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

    def _cluster_ips(self, name: ServiceName, service: Service, question: Question, facts: Facts) -> Resolution:
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
            offers = [Offer(target, address, port.number) for port in ports for address in service.cluster_ips]
            return found(facts, *srv_records(offers, self._ttl))
        addresses = tuple(dict.fromkeys([each for each in service.cluster_ips if address_type(each) == qtype]))
        return found(facts, address_records(qtype, self._ttl, addresses))

    def _headless(self, name: ServiceName, service: Service, question: Question, facts: Facts) -> Resolution:
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
            return choice.resolution(facts, *srv_records(offers, choice.ttl))
        family = FAMILY_OF_TYPE.get(qtype)
        if family is None:
            return choice.resolution(facts)
        if ports is None:
            addresses = choice.select(backends.pool(family)).addresses
        else:
            addresses = _union([choice.select(pool).addresses for pool in _pools(backends, family, ports)])
        return choice.resolution(facts, address_records(qtype, choice.ttl, addresses))

    def _offers(
        self, service: Service, ports: Iterable[EndpointPort], choice: Choice, question: Question
    ) -> list[Offer]:
        """Topology decides per family and port, as kube-proxy did per ServicePort."""
        lots = self._endpoints.lots(service, question)
        return [offer for lot in lots for offer in self._endpoints.offers(lot, ports, choice.select)]


def _matching(ports: Iterable[_Port], name: ServiceName) -> list[_Port]:
    """The ports that the name means; ignoring case, since the name has lost its own."""
    return [
        port
        for port in ports
        if (not name.port or port.name.lower() == name.port)
        and (not name.protocol or port.protocol.lower() == name.protocol)
    ]


def _pools(backends: Backends, family: int, ports: Iterable[EndpointPort] | None) -> list[Pool]:
    """The endpoints of a family: of each of these ports, or all."""
    if ports is None:
        return [backends.pool(family)]
    return [backends.pool_for_port(family, port) for port in ports]


def _all_pools(backends: Backends, ports: Iterable[EndpointPort] | None) -> list[Pool]:
    return [pool for family in FAMILIES for pool in _pools(backends, family, ports)]


def _any_ready(backends: Backends, ports: Iterable[EndpointPort]) -> bool:
    return any(pool.everyone.endpoints for pool in _all_pools(backends, ports))


def _union(lots: Sequence[tuple[bytes, ...]]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(address for addresses in lots for address in addresses))
