"""The answers of `k8s_external`: records of Services with external addresses and, with `headless`, of the endpoints of
Services without; the SOA and NS records of an origin; and its name server, `ns1.<apex>.<origin>`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import EMPTY_GROUP, Group
from topodns.cluster.model import EndpointPort, ObjectKey, Service
from topodns.dns.message import RRset
from topodns.dns.name import MAX_WIRE, Name, label_wire, name_wire
from topodns.dns.rrtype import ADDRESS_TYPES, RRType
from topodns.dns.soa import MAILBOX, soa_rrset
from topodns.plugins.k8s_external.settings import K8sExternal
from topodns.plugins.kubernetes import aliases
from topodns.plugins.kubernetes.endpoints import FAMILIES, backends_of
from topodns.plugins.kubernetes.other_names import services_behind
from topodns.plugins.kubernetes.question import (
    LEFT_OUT,
    NAME_ERRORS,
    NO_DATA,
    Answer,
    Facts,
    Missing,
    ServiceName,
    ZoneQuestion,
    matching,
    ttl_now,
)
from topodns.plugins.kubernetes.records import (
    GroupOffer,
    address_type,
    endpoint_srv_records,
    glue,
    service_srv_records,
    srv_answer,
)
from topodns.plugins.kubernetes.zone import KubernetesZone, lacks_objects

_SERVER: Final = "ns1"  # one name for all name servers
_NO_NAME: Final = NAME_ERRORS[Missing.NAME]


@dataclass(frozen=True, slots=True, eq=False)
class K8sExternalZone:
    """Names under the origins of one `k8s_external` directive.

    `kubernetes` is the block's directive `kubernetes` without `topology` and `noendpoints`, which do not apply to
    clients outside the cluster.
    """

    settings: K8sExternal
    kubernetes: KubernetesZone


def answer_service(external: K8sExternalZone, key: ObjectKey, labels: Name, question: ZoneQuestion) -> Answer:
    """Records of the Service or of the part of it that the `labels` before its name select; NODATA or NXDOMAIN.

    SERVFAIL where objects of it are left out.
    """
    service, name = external.kubernetes.state.service(key), _name(key, labels)
    if name is None:
        return _NO_NAME
    lacks = lacks_objects(external.kubernetes.state, key)
    if service is None or service.left_out:
        return LEFT_OUT if lacks else NAME_ERRORS[Missing.SERVICE]
    if not _is_headless(external, service, name):
        return _of_service(external, service, name, question)
    if lacks:
        return LEFT_OUT
    answer, targets = _of_endpoints(external, service, name, question), _aliases(external, service, name)
    return aliases.with_cnames(answer, targets, question.qname, question.qtype, external.settings.ttl)


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


def _of_service(external: K8sExternalZone, service: Service, name: ServiceName, question: ZoneQuestion) -> Answer:
    qtype, ttl = question.qtype, external.settings.ttl
    ports = matching(service.ports, name)
    hosts = [target for text in service.external_hostnames if (target := aliases.target_of(text)) is not None]
    if (_is_of_port(name) and not ports) or not (service.external_ips or hosts):
        return NO_DATA if _is_above_endpoints(external, service, name) else _NO_NAME
    if qtype == RRType.SRV:
        numbers, targets = [port.number for port in ports], [name_wire(host) for host in hosts]
        own, limit = _service_wire(service, question), question.limit
        return srv_answer(service_srv_records(own, service.external_ips, targets, numbers, ttl, limit), ttl)
    if hosts and not service.external_ips and qtype == RRType.CNAME:
        return Answer(rdatas=(name_wire(hosts[0]),), ttl=ttl)
    if hosts and not service.external_ips and qtype in ADDRESS_TYPES:
        return Answer(targets=(hosts[0],))
    addresses = tuple(dict.fromkeys(each for each in service.external_ips if address_type(each) == qtype))
    return Answer(rdatas=addresses, ttl=ttl)


def _is_above_endpoints(external: K8sExternalZone, service: Service, name: ServiceName) -> bool:
    """Whether this is the name of a Service itself, without records, but with endpoints' names below it (RFC 8020)."""
    own = ServiceName(*service.key)
    if name != own or not _is_headless(external, service, own._replace(endpoint="*")):
        return False
    return _exists(external, service, own)


def _of_endpoints(external: K8sExternalZone, service: Service, name: ServiceName, question: ZoneQuestion) -> Answer:
    qtype, ttl = question.qtype, external.settings.ttl
    backends = backends_of(external.kubernetes, service)
    if not any(_groups(backends, name)):
        # A protocol (`_tcp`) is above the names of ports that endpoints expose (RFC 8020).
        protocol = name._replace(endpoint="", protocol=name.endpoint)
        return NO_DATA if name.endpoint and _exists(external, service, protocol) else _NO_NAME
    if qtype == RRType.SRV:
        suffix = _service_wire(service, question)
        offers = (GroupOffer(group, port.number, suffix) for port, group in _groups_by_port(backends, name))
        return srv_answer(endpoint_srv_records(offers, external.kubernetes.labels, ttl, question.limit), ttl)
    of_type = (group for group in _groups(backends, name) if address_type(group.endpoints[0].address) == qtype)
    return Answer(rdatas=backends.joined_addresses(of_type), ttl=ttl)


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


def soa(external: K8sExternalZone, origin_wire: bytes) -> RRset:
    """The SOA of an origin, given in the query's spelling. Its TTL is the option `ttl`, also above 300 s."""
    state = external.kubernetes.state
    apex, ttl = label_wire(external.settings.apex), ttl_now(external.settings.ttl, state)
    serial = state.external.serial
    return soa_rrset(origin_wire, serial, ttl, label_wire(_SERVER) + apex, MAILBOX + apex, ttl)


def at_apex(external: K8sExternalZone, question: ZoneQuestion) -> Answer:
    """The answer at the origin itself: NS with the server's addresses, or NODATA for other types but SOA."""
    name = label_wire(_SERVER) + label_wire(external.settings.apex) + question.origin_wire
    if question.qtype != RRType.NS or len(name) > MAX_WIRE:
        return NO_DATA
    addresses, facts = _server_addresses(external)
    ttl = external.settings.ttl
    return Answer(rdatas=(name,), ttl=ttl, additional=glue(((name, each) for each in addresses), ttl), facts=facts)


def below_apex(external: K8sExternalZone, labels: Name, qtype: int) -> Answer:
    """The answer to a name at or below `<apex>.<origin>`; `labels` are those before the origin.

    `ns1.<apex>` has the server's addresses, `<apex>` no records; other names do not exist.
    """
    if len(labels) == 1:
        return NO_DATA
    if len(labels) > 2 or labels[0] != _SERVER:
        return NAME_ERRORS[Missing.NAME]
    addresses, facts = _server_addresses(external)
    of_type = tuple(each for each in addresses if address_type(each) == qtype)
    return Answer(rdatas=of_type, ttl=external.settings.ttl, facts=facts)


def _server_addresses(external: K8sExternalZone) -> tuple[tuple[bytes, ...], Facts]:
    """The packed addresses of `ns1.<apex>`, and their dependencies.

    They are those of `addresses_of` for each Service with this server as a ready endpoint; without such, its own.
    """
    behind, facts = services_behind(external.kubernetes)
    if not behind:
        return external.kubernetes.own_addresses, facts
    return tuple(dict.fromkeys(each for service in behind for each in addresses_of(external, service))), facts
