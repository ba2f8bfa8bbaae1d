"""Records of Services with external addresses and, with `headless`, of the endpoints of Services without."""

from collections.abc import Iterator
from typing import Final

from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import EMPTY_GROUP, Group
from topodns.cluster.model import EndpointPort, ObjectKey, Service
from topodns.dns.message import RRset
from topodns.dns.name import Name, label_wire, name_wire
from topodns.dns.rrtype import ADDRESS_TYPES, RRType
from topodns.plugins.k8s_external.zone import K8sExternalZone
from topodns.plugins.kubernetes import aliases
from topodns.plugins.kubernetes.endpoints import FAMILIES, backends_of, srv_answer
from topodns.plugins.kubernetes.external_name import target_of
from topodns.plugins.kubernetes.not_ready import lacks_objects, left_out
from topodns.plugins.kubernetes.parse import ServiceName, matching
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


def respond(
    external: K8sExternalZone, key: ObjectKey, labels: Name, question: ZoneQuestion, facts: Facts
) -> Resolution:
    """Records of the Service or of the part of it that the `labels` before its name select; NODATA or NXDOMAIN.

    SERVFAIL where objects of it are left out.
    """
    service, name = external.kubernetes.state.service(key), _name(key, labels)
    if name is None:
        return name_error(facts)
    lacks = lacks_objects(external.kubernetes.state, key)
    if service is None or service.left_out:
        return left_out(facts) if lacks else name_error(facts)
    if not _is_headless(external, service, name):
        return _of_service(external, service, name, question, facts)
    if lacks:
        return left_out(facts)
    resolution = _of_endpoints(external, service, name, question, facts)
    targets = _aliases(external, service, name)
    if not targets:
        return resolution
    query = question.query
    return aliases.with_cnames(resolution, targets, query.qname, query.qtype, external.settings.ttl)


def addresses_of(external: K8sExternalZone, service: Service) -> tuple[bytes, ...]:
    """The packed addresses of a Service: external ones, or its ready endpoints' where `headless` answers with them."""
    if not _is_headless(external, service, ServiceName(*service.key)):
        return service.external_ips
    pools = backends_of(external.kubernetes, service).pools
    return tuple(each for family in FAMILIES for each in pools[family].everyone.addresses)


def _is_headless(external: K8sExternalZone, service: Service, name: ServiceName) -> bool:
    """Whether the answer is made of endpoints: with the option `headless`, of a Service without external addresses and
    hostnames, if the Service is headless or the name selects an endpoint.
    """
    if not external.settings.headless or service.external_ips or service.external_hostnames:
        return False
    return service.headless or bool(name.endpoint)


def _of_service(
    external: K8sExternalZone, service: Service, name: ServiceName, question: ZoneQuestion, facts: Facts
) -> Resolution:
    qtype, ttl = question.query.qtype, external.settings.ttl
    ports = matching(service.ports, name)
    hosts = [target for text in service.external_hostnames if (target := target_of(text)) is not None]
    if (_is_of_port(name) and not ports) or not (service.external_ips or hosts):
        return no_data(facts) if _is_above_endpoints(external, service, name) else name_error(facts)
    if qtype == RRType.SRV:
        numbers, targets = [port.number for port in ports], [name_wire(host) for host in hosts]
        own, limit = _service_wire(service, question), question.client.limit
        return found(facts, *service_srv_records(own, service.external_ips, targets, numbers, ttl, limit))
    if hosts and not service.external_ips and qtype in _ALIASED:
        resolution = found(facts, (RRset(b"", RRType.CNAME, ttl, (name_wire(hosts[0]),)),))
        resolution.chase = (hosts[0],) if qtype != RRType.CNAME else ()
        return resolution
    addresses = tuple(dict.fromkeys(each for each in service.external_ips if address_type(each) == qtype))
    return found(facts, address_records(qtype, ttl, addresses))


def _is_above_endpoints(external: K8sExternalZone, service: Service, name: ServiceName) -> bool:
    """Whether this is the name of a Service itself, without records, but with endpoints' names below it (RFC 8020)."""
    own = ServiceName(*service.key)
    if name != own or not _is_headless(external, service, own._replace(endpoint="*")):
        return False
    return _exists(external, service, own)


def _of_endpoints(
    external: K8sExternalZone, service: Service, name: ServiceName, question: ZoneQuestion, facts: Facts
) -> Resolution:
    qtype, ttl = question.query.qtype, external.settings.ttl
    backends = backends_of(external.kubernetes, service)
    if not any(_groups(backends, name)):
        # A protocol (`_tcp`) is above the names of ports that endpoints expose (RFC 8020).
        protocol = name._replace(endpoint="", protocol=name.endpoint)
        return no_data(facts) if name.endpoint and _exists(external, service, protocol) else name_error(facts)
    if qtype == RRType.SRV:
        suffix = _service_wire(service, question)
        offers = (GroupOffer(group, port.number, suffix) for port, group in _groups_by_port(backends, name))
        return found(facts, *srv_answer(external.kubernetes, offers, ttl, question))
    of_type = (group for group in _groups(backends, name) if address_type(group.endpoints[0].address) == qtype)
    return found(facts, address_records(qtype, ttl, backends.joined_addresses(of_type)))


def _exists(external: K8sExternalZone, service: Service, name: ServiceName) -> bool:
    """Whether the name selects ready endpoints or aliases."""
    return any(_groups(backends_of(external.kubernetes, service), name)) or bool(_aliases(external, service, name))


def _aliases(external: K8sExternalZone, service: Service, name: ServiceName) -> list[Name]:
    kubernetes = external.kubernetes
    return aliases.targets_of(backends_of(kubernetes, service), name, kubernetes.settings.endpoint_pod_names)


def _is_of_port(name: ServiceName) -> bool:
    """Whether ports decide if the name exists. Those of other names have addresses without any port."""
    return bool(name.port or name.protocol)


def _groups(backends: Backends, name: ServiceName) -> Iterator[Group]:
    """The ready endpoints that the name selects, in groups of one family that are not empty."""
    if _is_of_port(name):
        return (group for _, group in _groups_by_port(backends, name))
    groups = backends.named(name.endpoint).values() if name.endpoint else _everyone(backends)
    return (group for group in groups if group.endpoints)


def _everyone(backends: Backends) -> Iterator[Group]:
    return (backends.pools[family].everyone for family in FAMILIES)


def _groups_by_port(backends: Backends, name: ServiceName) -> Iterator[tuple[EndpointPort, Group]]:
    """Each port that the name selects with the ready endpoints of each family that expose it, if there are any."""
    named = backends.named(name.endpoint) if name.endpoint else None
    for port in matching(backends.ports, name):
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


def _name(key: ObjectKey, labels: Name) -> ServiceName | None:
    """The name that the labels in front of a Service's are; None for too many labels."""
    match labels:
        case ():
            return ServiceName(*key)
        case (endpoint,):
            return ServiceName(*key, endpoint=endpoint.removeprefix("_"))
        case (port, protocol):
            return ServiceName(*key, port=port.removeprefix("_"), protocol=protocol.removeprefix("_"))
        case _:
            return None
