"""Answers for the name of a Service, and for names of its ports and endpoints below that.

They are as in CoreDNS: the ClusterIPs of a Service, or the endpoints of a headless one. Topology filters the addresses
and SRV records of headless Services (docs/reference/topology.md). It filters the name of an endpoint, with which the
client has chosen one already, only with the option `filter_hostnames`.

Zone-scoped names of headless Services exist by the option `zonal`: `ZONE.pin._zone.SERVICE...` and
`ZONE.prefer._zone.SERVICE...`, as in CoreDNS. Topology keys never filter them: a client that queries such a name has
chosen the topology zone itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import Group, Pool
from topodns.cluster.model import EndpointPort, ObjectKey, Service, ServicePort
from topodns.dns.name import Name
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.kubernetes import aliases, external_name
from topodns.plugins.kubernetes.endpoints import (
    FAMILIES,
    FAMILY_OF_TYPE,
    NO_BACKENDS,
    answer_named,
    backends_below,
    backends_of,
    lots,
    offers_of,
    service_wire,
)
from topodns.plugins.kubernetes.namespaces import exposes
from topodns.plugins.kubernetes.not_ready import LEFT_OUT, NOT_READY, lacks_objects
from topodns.plugins.kubernetes.parse import SERVICE_LABELS, ServiceName, ZonalName, is_above_zones, matching
from topodns.plugins.kubernetes.question import NAME_ERRORS, NO_DATA, Answer, Missing, ZoneQuestion
from topodns.plugins.kubernetes.records import endpoint_srv_records, ranked_srv_records, service_srv_records, srv_answer
from topodns.plugins.kubernetes.topology_filter import Decision, decide
from topodns.plugins.kubernetes.zone import KubernetesZone

_PROTOCOLS: Final = frozenset({"tcp", "udp", "sctp"})
# Read once: most answers are one of these, and a lookup by a member of an Enum costs 0.3 us.
_NO_NAMESPACE: Final = NAME_ERRORS[Missing.NAMESPACE]
_NO_SERVICE: Final = NAME_ERRORS[Missing.SERVICE]
_NO_READY: Final = NAME_ERRORS[Missing.READY]
_NO_PORT: Final = NAME_ERRORS[Missing.PORT]
_LENGTH_OF_TYPE: Final = {RRType.A: 4, RRType.AAAA: 16}  # octets of an address


def answer_service(kubernetes: KubernetesZone, name: ServiceName | ZonalName, question: ZoneQuestion) -> Answer:
    """Records of the type queried, NODATA or NXDOMAIN.

    SERVFAIL for an unknown name of a ServiceImport while RBAC denies ServiceImports: it may exist. Also for names of
    which objects are left out, but for those of a Service's ClusterIPs.
    """
    state, namespace = kubernetes.state, name.namespace
    if ("", namespace) not in state.namespaces or (
        kubernetes.limits_namespaces and not exposes(kubernetes.settings, state, namespace)
    ):
        return _NO_NAMESPACE
    key, multicluster = ObjectKey(namespace, name.service), question.origin.multicluster
    service = (state.imports if multicluster else state.services).get(key)
    if service is None:
        if lacks_objects(state, key, multicluster):
            return LEFT_OUT
        return NOT_READY if multicluster and "ServiceImport" in state.denied else _NO_SERVICE
    if not service.headless or isinstance(name, ZonalName) or name.endpoint:
        answer = _answer_other(kubernetes, name, service, question)
    else:
        answer = _answer_headless(kubernetes, key, name, service, question)
    does_not_exist = answer.rcode == Rcode.NXDOMAIN
    is_short = (service.headless or does_not_exist) and namespace in state.left_out.namespaces
    if is_short and lacks_objects(state, key, multicluster):
        return LEFT_OUT
    return NO_DATA if does_not_exist and _is_above_others(kubernetes, name, service, question) else answer


def _with_aliases(
    kubernetes: KubernetesZone,
    name: ServiceName | ZonalName,
    backends: Backends,
    question: ZoneQuestion,
    answer: Answer,
) -> Answer:
    targets = aliases.targets_of(backends, name, kubernetes.settings.endpoint_pod_names)
    return aliases.with_cnames(answer, targets, question.qname, question.qtype, kubernetes.settings.ttl)


def _answer_other(
    kubernetes: KubernetesZone, name: ServiceName | ZonalName, service: Service, question: ZoneQuestion
) -> Answer:
    """The answer for all names but those of a headless Service itself and of its ports."""
    if isinstance(name, ZonalName):
        if not service.headless:
            return NAME_ERRORS[Missing.ZONES]
        answer = answer_zonal(kubernetes, name, service, question)
    elif service.external_name is not None:
        if name.endpoint or name.port or name.protocol:
            return NAME_ERRORS[Missing.BELOW_EXTERNAL_NAME]
        return external_name.answer_alias(service.external_name, question, kubernetes.settings.ttl)
    elif name.endpoint:
        answer = answer_named(kubernetes, name, service, question)
        if answer.rcode == Rcode.NXDOMAIN and lacks_objects(kubernetes.state, service.key, service.imported):
            return LEFT_OUT
    else:
        return _answer_cluster_ips(kubernetes, name, service, question)
    return _with_aliases(kubernetes, name, backends_below(kubernetes, service, name), question, answer)


def _is_above_others(
    kubernetes: KubernetesZone, name: ServiceName | ZonalName, service: Service, question: ZoneQuestion
) -> bool:
    """Whether this is an empty non-terminal below a Service: no records, but names below it (RFC 8020).

    These are a protocol (`_tcp.web`, above `_http._tcp.web`), a cluster of an imported Service, and the labels
    between a Service and its topology zones (`_zone.db`, `pin._zone.db`).
    """
    if isinstance(name, ZonalName) or service.external_name is not None:
        return False
    labels = question.labels
    zonal_names = kubernetes.settings.zonal and service.headless and not service.imported
    if zonal_names and is_above_zones(labels):
        return True
    if service.imported and _is_above_clusters(labels, backends_of(kubernetes, service)):
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


def _answer_cluster_ips(
    kubernetes: KubernetesZone, name: ServiceName, service: Service, question: ZoneQuestion
) -> Answer:
    if kubernetes.settings.ignore_empty_service and not backends_of(kubernetes, service).has_ready:
        return _NO_READY
    ports: Sequence[ServicePort] = service.ports
    if name.port or name.protocol:
        ports = matching(ports, name)
        if not ports:
            return _NO_PORT
    ttl, addresses = kubernetes.settings.ttl, service.cluster_ips
    if question.qtype == RRType.SRV:
        target, numbers = service_wire(service, question), [port.number for port in ports]
        return srv_answer(service_srv_records(target, addresses, (), numbers, ttl, question.limit), ttl)
    length = _LENGTH_OF_TYPE.get(question.qtype)
    if len(addresses) != 1:
        addresses = tuple(dict.fromkeys([each for each in addresses if len(each) == length]))
    elif len(addresses[0]) != length:
        return NO_DATA
    return Answer(Rcode.NOERROR, addresses, ttl) if addresses else NO_DATA


def _answer_headless(
    kubernetes: KubernetesZone, key: ObjectKey, name: ServiceName, service: Service, question: ZoneQuestion
) -> Answer:
    """The answer for a headless Service and its ports: what the client's topology leaves of its endpoints."""
    backends = NO_BACKENDS if kubernetes.settings.noendpoints else kubernetes.state.backends(key, service.imported)
    by_port = name.port or name.protocol
    ports = matching(backends.ports, name) if by_port else None
    if not backends.has_ready:
        return _NO_READY
    if ports is not None and not _any_ready(backends, ports):
        return _with_aliases(kubernetes, name, backends, question, _NO_PORT)
    qtype = question.qtype
    family, is_srv = FAMILY_OF_TYPE.get(qtype), qtype == RRType.SRV
    asked: Iterable[Pool] = ()  # the pools that an answer of this type is made of
    srv_ports: Sequence[EndpointPort] = ()
    if family is not None and ports is None:
        pool = backends.pools[family]
        if not pool.everyone.endpoints and kubernetes.state.synced and not kubernetes.refuses:
            # Empty for all clients: not the decision of a policy.
            return _with_aliases(kubernetes, name, backends, question, NO_DATA) if backends.aliases else NO_DATA
        asked = (pool,)
    elif family is not None:
        asked = tuple(pools_of(backends, (family,), ports or ()))
    elif is_srv:  # made as they are read: a Service may have thousands of ports
        srv_ports = backends.ports if ports is None else ports
        asked = pools_of(backends, FAMILIES, srv_ports)
    filtered = None if service.imported else key
    decision = decide(kubernetes, filtered, question, asked, lambda: pools_of(backends, FAMILIES, ports), is_srv)
    if decision.objection is not None:
        answer = decision.objection
    elif is_srv:
        answer = _answer_srv(kubernetes, service, backends, srv_ports, decision, question)
    elif ports is None or family is None:
        answer = decision.answer(decision.group.addresses if decision.group.endpoints else ())
    else:
        answer = decision.answer(backends.joined_addresses(map(decision.of, asked)))
    return _with_aliases(kubernetes, name, backends, question, answer) if backends.aliases else answer


def _answer_srv(
    kubernetes: KubernetesZone,
    service: Service,
    backends: Backends,
    ports: Iterable[EndpointPort],
    decision: Decision,
    question: ZoneQuestion,
) -> Answer:
    """The SRV records of these ports, as decided per family and port, and kube-proxy did per ServicePort."""
    if decision.ranking is None:
        offers = (
            offer
            for lot in lots(kubernetes, service, backends, question)
            for offer in offers_of(lot, ports, decision.of)
        )
        return decision.srv_answer(endpoint_srv_records(offers, kubernetes.labels, decision.ttl, question.limit))
    pools = ((backends.pool_for_port(family, port), port.number) for port in ports for family in FAMILIES)
    suffix, priorities = service_wire(service, question), len(decision.ranking.keys)
    return decision.srv_answer(
        ranked_srv_records(pools, priorities, decision.ranked, suffix, kubernetes.labels, decision.ttl, question.limit)
    )


def pools_of(backends: Backends, families: Iterable[int], ports: Iterable[EndpointPort] | None) -> Iterator[Pool]:
    """The endpoints of these families, for each of these ports; with None, all of a family as one pool."""
    if ports is None:
        for family in families:
            yield backends.pools[family]
        return
    for port in ports:
        for family in families:
            yield backends.pool_for_port(family, port)


def _any_ready(backends: Backends, ports: Iterable[EndpointPort]) -> bool:
    return any(pool.everyone.endpoints for pool in pools_of(backends, FAMILIES, ports))


def answer_zonal(kubernetes: KubernetesZone, name: ZonalName, service: Service, question: ZoneQuestion) -> Answer:
    """The ready endpoints of a headless Service in this topology zone, which is a field of an endpoint in its slice.

    If there are none of either address family, and no alias: NODATA (`pin`) or all ready endpoints (`prefer`).
    """
    backends, ttl = backends_of(kubernetes, service), kubernetes.settings.ttl
    missed = not any(backends.pools[family].by_topology_zone(name.topology_zone).endpoints for family in FAMILIES)
    missed = missed and not aliases.is_in_zone(backends, name.topology_zone)
    pick = _everyone if missed and name.prefer else lambda pool: pool.by_topology_zone(name.topology_zone)
    if question.qtype == RRType.SRV:
        offers = offers_of((backends, service_wire(service, question)), backends.ports, pick)
        return srv_answer(endpoint_srv_records(offers, kubernetes.labels, ttl, question.limit), ttl)
    family = FAMILY_OF_TYPE.get(question.qtype)
    return NO_DATA if family is None else Answer(rdatas=pick(backends.pools[family]).addresses, ttl=ttl)


def _everyone(pool: Pool) -> Group:
    return pool.everyone
