"""Records of Services with external addresses and, with `headless`, of the endpoints of Services without."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import EMPTY_GROUP, Group
from topodns.cluster.model import EndpointPort, ObjectKey, Service
from topodns.dns.message import RRset
from topodns.dns.name import Name, label_wire, name_wire
from topodns.dns.rrtype import ADDRESS_TYPES, RRType
from topodns.plugins.k8s_external.zone import K8sExternalZone
from topodns.plugins.kubernetes.endpoints import FAMILIES, backends_of, srv_answer
from topodns.plugins.kubernetes.external_name import target_of
from topodns.plugins.kubernetes.records import (
    Facts,
    GroupOffer,
    address_records,
    address_type,
    found,
    name_error,
    no_data,
    service_srv_records,
)
from topodns.plugins.kubernetes.zone import ZoneQuestion
from topodns.query.plugin import Resolution

_ALIASED: Final = ADDRESS_TYPES | {RRType.CNAME}


class _Part(NamedTuple):
    """The endpoint, or port and protocol, of a Service that a name selects; "" is any."""

    endpoint: str = ""
    port: str = ""
    protocol: str = ""

    @property
    def of_port(self) -> bool:
        """Whether ports decide if the name exists. Those of other names have addresses without any port."""
        return bool(self.port or self.protocol)

    def means(self, port: str, protocol: str) -> bool:
        """Whether a port matches; case is ignored, because the labels of the qname are lower-case."""
        return self.port in ("", port.lower()) and self.protocol in ("", protocol.lower())


def respond(
    external: K8sExternalZone, key: ObjectKey, labels: Name, question: ZoneQuestion, facts: Facts
) -> Resolution:
    """Records of the Service or of the part of it that the `labels` before its name select; NODATA or NXDOMAIN."""
    service, part = external.kubernetes.state.service(key), _part(labels)
    if service is None or part is None:
        return name_error(facts)
    if _is_headless(external, service, part):
        return _of_endpoints(external, service, part, question, facts)
    return _of_service(external, service, part, question, facts)


def addresses_of(external: K8sExternalZone, service: Service) -> tuple[bytes, ...]:
    """The packed addresses of a Service: external ones, or its ready endpoints' where `headless` answers with them."""
    if not _is_headless(external, service, _Part()):
        return service.external_ips
    pools = backends_of(external.kubernetes, service).pools
    return tuple(each for family in FAMILIES for each in pools[family].everyone.addresses)


def _is_headless(external: K8sExternalZone, service: Service, part: _Part) -> bool:
    """Whether the answer is made of endpoints: with the option `headless`, of a Service without external addresses and
    hostnames, if the Service is headless or the name selects an endpoint.
    """
    if not external.settings.headless or service.external_ips or service.external_hostnames:
        return False
    return service.headless or bool(part.endpoint)


def _of_service(
    external: K8sExternalZone, service: Service, part: _Part, question: ZoneQuestion, facts: Facts
) -> Resolution:
    qtype, ttl = question.query.qtype, external.settings.ttl
    ports = [port.number for port in service.ports if part.means(port.name, port.protocol)]
    hosts = [target for text in service.external_hostnames if (target := target_of(text)) is not None]
    if (part.of_port and not ports) or not (service.external_ips or hosts):
        return no_data(facts) if _is_above_endpoints(external, service, part) else name_error(facts)
    if qtype == RRType.SRV:
        name, targets = _service_wire(service, question), [name_wire(host) for host in hosts]
        limit = question.client.limit
        return found(facts, *service_srv_records(name, service.external_ips, targets, ports, ttl, limit))
    if hosts and not service.external_ips and qtype in _ALIASED:
        resolution = found(facts, (RRset(b"", RRType.CNAME, ttl, (name_wire(hosts[0]),)),))
        resolution.chase = hosts[0] if qtype != RRType.CNAME else None
        return resolution
    addresses = tuple(dict.fromkeys(each for each in service.external_ips if address_type(each) == qtype))
    return found(facts, address_records(qtype, ttl, addresses))


def _is_above_endpoints(external: K8sExternalZone, service: Service, part: _Part) -> bool:
    """Whether this is the name of a Service itself, without records, but with endpoints' names below it (RFC 8020)."""
    if part != _Part() or not _is_headless(external, service, _Part(endpoint="*")):
        return False
    return any(_groups(backends_of(external.kubernetes, service), part))


def _of_endpoints(
    external: K8sExternalZone, service: Service, part: _Part, question: ZoneQuestion, facts: Facts
) -> Resolution:
    qtype, ttl = question.query.qtype, external.settings.ttl
    backends = backends_of(external.kubernetes, service)
    if not any(_groups(backends, part)):
        # A protocol (`_tcp`) is above the names of ports that endpoints expose (RFC 8020).
        is_protocol = part.endpoint and any(_groups(backends, _Part(protocol=part.endpoint)))
        return no_data(facts) if is_protocol else name_error(facts)
    if qtype == RRType.SRV:
        name = _service_wire(service, question)
        offers = (GroupOffer(group, port.number, name) for port, group in _groups_by_port(backends, part))
        return found(facts, *srv_answer(external.kubernetes, offers, ttl, question))
    of_type = (group for group in _groups(backends, part) if address_type(group.endpoints[0].address) == qtype)
    return found(facts, address_records(qtype, ttl, backends.joined_addresses(of_type)))


def _groups(backends: Backends, part: _Part) -> Iterator[Group]:
    """The ready endpoints that the name selects, in groups of one family that are not empty."""
    if part.of_port:
        return (group for _, group in _groups_by_port(backends, part))
    groups = backends.named(part.endpoint).values() if part.endpoint else _everyone(backends)
    return (group for group in groups if group.endpoints)


def _everyone(backends: Backends) -> Iterator[Group]:
    return (backends.pools[family].everyone for family in FAMILIES)


def _groups_by_port(backends: Backends, part: _Part) -> Iterator[tuple[EndpointPort, Group]]:
    """Each port that the name selects with the ready endpoints of each family that expose it, if there are any."""
    named = backends.named(part.endpoint) if part.endpoint else None
    for port in backends.ports:
        if not part.means(port.name, port.protocol):
            continue
        for family in FAMILIES:
            if named is None:
                group = backends.pool_for_port(family, port).everyone
            else:
                group = backends.exposing(family, port, named.get(family, EMPTY_GROUP))
            if group.endpoints:
                yield port, group


def _service_wire(service: Service, question: ZoneQuestion) -> bytes:
    """The Service's name in wire form, with the origin in the query's spelling."""
    return label_wire(service.name) + label_wire(service.namespace) + question.origin_wire


def _part(labels: Name) -> _Part | None:
    """The part that the labels in front of a Service's name select; None for too many labels."""
    match labels:
        case ():
            return _Part()
        case (endpoint,):
            return _Part(endpoint=endpoint.removeprefix("_"))
        case (port, protocol):
            return _Part(port=port.removeprefix("_"), protocol=protocol.removeprefix("_"))
        case _:
            return None
