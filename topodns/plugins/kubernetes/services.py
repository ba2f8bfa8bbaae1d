"""Answers for the name of a Service, and for names of its ports and endpoints below that.

They are as in CoreDNS: the ClusterIPs of a Service, or the endpoints of a headless one. Topology filters the addresses
and SRV records of headless Services (docs/reference/topology.md). It filters the name of an endpoint, with which the
client has chosen one already, only with the option `filter_hostnames`.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import Pool
from topodns.cluster.model import EndpointPort, ObjectKey, Service, ServicePort
from topodns.dependency import namespace_fact, service_fact
from topodns.dns.message import Response, RRset
from topodns.dns.name import Name
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.kubernetes import aliases, external_name, zonal
from topodns.plugins.kubernetes.endpoints import (
    FAMILIES,
    FAMILY_OF_TYPE,
    NO_BACKENDS,
    backends_below,
    backends_of,
    lots,
    named,
    offers_of,
    service_wire,
    srv_answer,
)
from topodns.plugins.kubernetes.namespaces import exposes
from topodns.plugins.kubernetes.not_ready import lacks_objects, left_out, not_ready
from topodns.plugins.kubernetes.parse import SERVICE_LABELS, ServiceName, ZonalName, is_above_zones, matching
from topodns.plugins.kubernetes.ranked_records import ranked_srv_records
from topodns.plugins.kubernetes.records import (
    PLUGIN,
    Facts,
    Sections,
    found,
    name_error,
    no_data,
    service_srv_records,
)
from topodns.plugins.kubernetes.topology_filter import Decision, Pools, decide
from topodns.plugins.kubernetes.zone import KubernetesZone, ZoneQuestion
from topodns.query.plugin import Resolution

_PROTOCOLS: Final = frozenset({"tcp", "udp", "sctp"})
_LENGTH_OF_TYPE: Final = {RRType.A: 4, RRType.AAAA: 16}  # octets of an address


def respond(kubernetes: KubernetesZone, name: ServiceName | ZonalName, question: ZoneQuestion) -> Resolution:
    """Records of the type queried, NODATA or NXDOMAIN, with their dependencies.

    SERVFAIL for an unknown name of a ServiceImport while RBAC denies ServiceImports: it may exist. Also for names of
    which objects are left out, but for those of a Service's ClusterIPs.
    """
    state, namespace = kubernetes.state, name.namespace
    if ("", namespace) not in state.namespaces or (
        kubernetes.limits_namespaces and not exposes(kubernetes.settings, state, namespace)
    ):
        return name_error((namespace_fact(namespace),))
    facts = (namespace_fact(namespace), service_fact(namespace, name.service))
    key, multicluster = ObjectKey(namespace, name.service), question.origin.multicluster
    service = (state.imports if multicluster else state.services).get(key)
    if service is None:
        if lacks_objects(state, key, multicluster):
            return left_out(facts)
        unsure = multicluster and "ServiceImport" in state.denied
        return not_ready(facts) if unsure else name_error(facts)
    if service.headless and isinstance(name, ServiceName) and not name.endpoint:
        resolution = _headless(kubernetes, key, name, service, question, facts)
    else:
        resolution = _others(kubernetes, name, service, question, facts)
    does_not_exist = resolution.response.rcode == Rcode.NXDOMAIN
    if (service.headless or does_not_exist) and lacks_objects(state, key, multicluster):
        return left_out(facts)
    below = isinstance(name, ServiceName) and name.endpoint and service.external_name is None
    if service.headless or below:
        resolution = _with_aliases(kubernetes, name, service, question, resolution)
    if resolution.response.rcode == Rcode.NXDOMAIN and _is_above_others(kubernetes, name, service, question):
        return no_data(facts)
    return resolution


def _with_aliases(
    kubernetes: KubernetesZone,
    name: ServiceName | ZonalName,
    service: Service,
    question: ZoneQuestion,
    resolution: Resolution,
) -> Resolution:
    backends = backends_below(kubernetes, service, name)
    targets = aliases.targets_of(backends, name, kubernetes.settings.endpoint_pod_names)
    if not targets:
        return resolution
    query = question.query
    return aliases.with_cnames(resolution, targets, query.qname, query.qtype, kubernetes.settings.ttl)


def _others(
    kubernetes: KubernetesZone, name: ServiceName | ZonalName, service: Service, question: ZoneQuestion, facts: Facts
) -> Resolution:
    """The resolution of all names but those of a headless Service itself and of its ports."""
    if isinstance(name, ZonalName):
        return zonal.respond(kubernetes, name, service, question, facts) if service.headless else name_error(facts)
    if service.external_name is not None:
        below = name.endpoint or name.port or name.protocol
        return name_error(facts) if below else external_name.respond(kubernetes, service.external_name, question, facts)
    if name.endpoint:
        return named(kubernetes, name, service, question, facts)
    return _cluster_ips(kubernetes, name, service, question, facts)


def _is_above_others(
    kubernetes: KubernetesZone, name: ServiceName | ZonalName, service: Service, question: ZoneQuestion
) -> bool:
    """Whether this is an empty non-terminal below a Service: no records, but names below it (RFC 8020).

    These are a protocol (`_tcp.web`, above `_http._tcp.web`), a cluster of an imported Service, and the labels
    between a Service and its topology zones (`_zone.db`, `pin._zone.db`).
    """
    if isinstance(name, ZonalName) or service.external_name is not None:
        return False
    qname, origin = question.query.qname, question.origin.name
    zonal_names = kubernetes.settings.zonal and service.headless and not service.imported
    if zonal_names and is_above_zones(qname[: len(qname) - len(origin)]):
        return True
    if service.imported and _is_above_clusters(qname[: len(qname) - len(origin)], backends_of(kubernetes, service)):
        return True
    protocol = "" if name.cluster else name.endpoint.removeprefix("_")
    return protocol in _PROTOCOLS and _has_ports(kubernetes, name._replace(endpoint="", protocol=protocol), service)


def _is_above_clusters(labels: Name, backends: Backends) -> bool:
    """Whether the labels in front of the Service are the id of one of its clusters, or the end of one."""
    cluster = labels[:-SERVICE_LABELS]
    return any(tuple(each.lower().split("."))[-len(cluster) :] == cluster for each in backends.cluster_ids if cluster)


def _has_ports(kubernetes: KubernetesZone, name: ServiceName, service: Service) -> bool:
    """Whether the Service has ports that the name selects and that have records."""
    backends = backends_of(kubernetes, service)
    if service.headless:
        pod_names = kubernetes.settings.endpoint_pod_names
        return _any_ready(backends, matching(backends.ports, name)) or bool(
            aliases.targets_of(backends, name, pod_names)
        )
    ignored = kubernetes.settings.ignore_empty_service and not backends.has_ready
    return bool(matching(service.ports, name)) and not ignored


def _cluster_ips(
    kubernetes: KubernetesZone, name: ServiceName, service: Service, question: ZoneQuestion, facts: Facts
) -> Resolution:
    if kubernetes.settings.ignore_empty_service and not backends_of(kubernetes, service).has_ready:
        return name_error(facts)
    ports: Sequence[ServicePort] = service.ports
    if name.port or name.protocol:
        ports = matching(ports, name)
        if not ports:
            return name_error(facts)
    qtype, ttl = question.query.qtype, kubernetes.settings.ttl
    if qtype == RRType.SRV:
        target = service_wire(service, question)
        numbers = [port.number for port in ports]
        return found(facts, *service_srv_records(target, service.cluster_ips, (), numbers, ttl, question.client.limit))
    length = _LENGTH_OF_TYPE.get(qtype)
    addresses = tuple(dict.fromkeys([each for each in service.cluster_ips if len(each) == length]))
    response = Response(Rcode.NOERROR, (RRset(b"", qtype, ttl, addresses),) if addresses else ())
    return Resolution(response, PLUGIN, facts=facts)


def _headless(
    kubernetes: KubernetesZone,
    key: ObjectKey,
    name: ServiceName,
    service: Service,
    question: ZoneQuestion,
    facts: Facts,
) -> Resolution:
    backends = NO_BACKENDS if kubernetes.settings.noendpoints else kubernetes.state.backends(key, service.imported)
    ports = matching(backends.ports, name) if name.port or name.protocol else None
    if not (backends.has_ready if ports is None else _any_ready(backends, ports)):
        return name_error(facts)
    qtype = question.query.qtype
    family, is_srv = FAMILY_OF_TYPE.get(qtype), qtype == RRType.SRV
    families = FAMILIES if is_srv else () if family is None else (family,)
    asked_ports = backends.ports if is_srv and ports is None else ports
    pools = Pools(partial(_pools, backends, families, asked_ports), partial(_pools, backends, FAMILIES, ports))
    decision = decide(kubernetes, None if service.imported else key, question, facts, pools, is_srv)
    resolution = decision.resolution
    if decision.final:
        return resolution
    if family is not None:
        addresses = decision.group.addresses
        if ports is not None:
            addresses = backends.joined_addresses(map(decision.of, pools.asked()))
        if addresses:
            resolution.response.answer = (RRset(b"", qtype, decision.ttl, addresses),)
    elif is_srv and asked_ports is not None:
        response = resolution.response
        response.answer, response.additional = _headless_srv(
            kubernetes, service, backends, asked_ports, decision, question
        )
    return resolution


def _headless_srv(
    kubernetes: KubernetesZone,
    service: Service,
    backends: Backends,
    ports: Iterable[EndpointPort],
    decision: Decision,
    question: ZoneQuestion,
) -> Sections:
    """The SRV records of these ports, as decided per family and port, and kube-proxy did per ServicePort."""
    if decision.ranking is None:
        offers = (offer for lot in lots(kubernetes, service, question) for offer in offers_of(lot, ports, decision.of))
        return srv_answer(kubernetes, offers, decision.ttl, question)
    pools = ((backends.pool_for_port(family, port), port.number) for port in ports for family in FAMILIES)
    suffix, limit = service_wire(service, question), question.client.limit
    priorities, ranked = len(decision.ranking.keys), partial(decision.ranked, decision.ranking)
    return ranked_srv_records(pools, priorities, ranked, suffix, kubernetes.labels, decision.ttl, limit)


def _pools(backends: Backends, families: Iterable[int], ports: Iterable[EndpointPort] | None) -> Iterator[Pool]:
    """The endpoints of these families, for each of these ports; with None, all of a family as one pool."""
    if ports is None:
        for family in families:
            yield backends.pools[family]
        return
    for port in ports:
        for family in families:
            yield backends.pool_for_port(family, port)


def _any_ready(backends: Backends, ports: Iterable[EndpointPort]) -> bool:
    return any(pool.everyone.endpoints for pool in _pools(backends, FAMILIES, ports))
