"""The answer of a cluster to a question: where the rules come together on which names exist, and what they have.

All names under the origins are answered as by CoreDNS's plugin `kubernetes`. Differences, on purpose: clients of a
headless Service with a topology policy get the endpoints of their topology domain; while watches are incomplete a name
that seems not to exist is SERVFAIL, and an answer made of a snapshot is a stale one; NS at the apex ignores the query's
case (RFC 4343); a name that has records of some type, or names below it, is NODATA for all other types, where CoreDNS
has NXDOMAIN for some (RFC 8020).

`parse` is the grammar of names below a forward origin: Kubernetes DNS schema 1.1.0 as CoreDNS reads it. A Service has
its ClusterIPs, a headless one its endpoints (`plugins.kubernetes.headless`). Zone-scoped names of headless Services
exist by the option `zonal`: `ZONE.pin._zone.SERVICE...` and `ZONE.prefer._zone.SERVICE...`, as in CoreDNS. Topology
keys never filter them: a client that queries such a name has chosen the topology zone itself.
"""

from collections.abc import Sequence
from typing import Final

from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import Group, Pool
from topodns.cluster.model import ObjectKey, Service, ServicePort
from topodns.dns.message import Query
from topodns.dns.name import Name, is_below_any, is_part_of_reverse, reverse_address
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.kubernetes import aliases, other_names
from topodns.plugins.kubernetes.endpoints import (
    FAMILIES,
    FAMILY_OF_TYPE,
    any_ready,
    backends_below,
    backends_of,
    offers_of,
    service_wire,
)
from topodns.plugins.kubernetes.headless import answer_headless, answer_named, rule_of
from topodns.plugins.kubernetes.question import (
    ALL,
    LEFT_OUT,
    NAME_ERRORS,
    NEAR,
    NO_DATA,
    NOT_READY,
    SCHEMA_VERSION,
    SERVICE_LABELS,
    Answer,
    Fixed,
    Missing,
    NameOrAddress,
    NamespaceNode,
    PodName,
    SchemaName,
    ServiceName,
    ZonalName,
    ZoneQuestion,
    confirmed,
    matching,
)
from topodns.plugins.kubernetes.records import endpoint_srv_records, service_srv_records, srv_answer
from topodns.plugins.kubernetes.zone import KubernetesZone, Origin, exposes, lacks_objects
from topodns.query.plugin import Client

_PROTOCOLS: Final = frozenset({"tcp", "udp", "sctp"})
# Read once: most answers are one of these, and a lookup by a member of an Enum costs 0.3 us.
_NO_NAME: Final = NAME_ERRORS[Missing.NAME]
_NO_NAMESPACE: Final = NAME_ERRORS[Missing.NAMESPACE]
_NO_SERVICE: Final = NAME_ERRORS[Missing.SERVICE]
_NO_READY: Final = NAME_ERRORS[Missing.READY]
_NO_PORT: Final = NAME_ERRORS[Missing.PORT]
_LENGTH_OF_TYPE: Final = {RRType.A: 4, RRType.AAAA: 16}  # octets of an address
_VERSION: Final = Answer(
    rdatas=(bytes((len(SCHEMA_VERSION),)) + SCHEMA_VERSION.encode(),),
    ttl=28800,  # whatever `ttl` says (CoreDNS)
)

_ZONAL_ANCHOR: Final = "_zone"
_ZONAL_DIRECTIVES: Final = frozenset({"pin", "prefer"})
_VIEW_LABELS: Final = SERVICE_LABELS + 1
_VIEWS: Final = frozenset({(NEAR,), (ALL,)})
_ABOVE_ZONES: Final = frozenset({(_ZONAL_ANCHOR,), *((each, _ZONAL_ANCHOR) for each in _ZONAL_DIRECTIVES)})

_FIXED: Final[dict[Name, Fixed]] = {
    (): Fixed.APEX,
    ("dns",): Fixed.DNS,
    ("ns", "dns"): Fixed.NS_DNS,
    ("dns-version",): Fixed.DNS_VERSION,
    ("svc",): Fixed.SVC,
    ("pod",): Fixed.POD,
}


def answer_query(
    kubernetes: KubernetesZone, query: Query, client: Client, origin: Origin
) -> tuple[NameOrAddress, ZoneQuestion, Answer]:
    """What the qname of a query at or below `origin` is, the query as a question, and its answer: see `answer`."""
    question = question_of(query, client, origin)
    name = name_of(kubernetes, question)
    return name, question, answer(kubernetes, name, question)


def question_of(query: Query, client: Client, origin: Origin) -> ZoneQuestion:
    """The query relative to `origin`, which its qname is at or below."""
    # Labels have the same length in any spelling, so the origin has the same number of octets at the end of the name.
    origin_wire = query.spelling[-len(origin.wire) :]
    labels = query.qname[: len(query.qname) - len(origin.name)]
    return ZoneQuestion(
        labels=labels,
        qtype=query.qtype,
        address=client.address,
        limit=client.limit,
        origin=origin,
        origin_wire=origin_wire,
        edns=query.edns,
    )


def name_of(kubernetes: KubernetesZone, question: ZoneQuestion) -> NameOrAddress:
    """What the qname of this question is."""
    origin = question.origin
    if _may_be_reverse(question) and (address := reverse_address(question.qname)) is not None:
        return address
    name = parse(question.labels, origin.multicluster, kubernetes.settings.zonal, kubernetes.topology is not None)
    return None if origin.reverse and not isinstance(name, Fixed) else name


def answer(kubernetes: KubernetesZone, name: NameOrAddress, question: ZoneQuestion) -> Answer:
    """The answer to this question, whose qname is `name`, of any type but SOA.

    Raises BadOption for a malformed Client Subnet from a trusted source, where the client's location counts.
    """
    if isinstance(name, ServiceName) or isinstance(name, ZonalName):  # noqa: SIM101 - most are the first
        found = _answer_service(kubernetes, name, question)
    elif name is None:
        found = NO_DATA if _may_be_reverse(question) and _is_above_addresses(kubernetes, question) else _NO_NAME
    elif isinstance(name, PodName):
        found = other_names.answer_pod(kubernetes, name, question)
    elif isinstance(name, bytes):
        found = other_names.answer_address(kubernetes, name, question.qtype)
    elif isinstance(name, Fixed):
        found = _answer_fixed(kubernetes, name, question)
    else:
        found = _answer_namespace(kubernetes, name)
    return found if kubernetes.state.synced else confirmed(found, kubernetes.state.restored)


def falls_through(kubernetes: KubernetesZone, question: ZoneQuestion) -> bool:
    """Whether the next plugin answers for this name if it does not exist here."""
    return is_below_any(question.qname, kubernetes.settings.fallthrough)


def _answer_fixed(kubernetes: KubernetesZone, name: Fixed, question: ZoneQuestion) -> Answer:
    if name is Fixed.DNS_VERSION and question.qtype == RRType.TXT:
        return _VERSION
    if name is Fixed.NS_DNS and question.qtype in FAMILY_OF_TYPE:
        return other_names.server_addresses(kubernetes, question)
    if name is Fixed.APEX and question.qtype == RRType.NS:
        return other_names.name_servers(kubernetes, question)
    return NO_DATA


def _answer_namespace(kubernetes: KubernetesZone, node: NamespaceNode) -> Answer:
    if node.pods:
        missing = other_names.missing_of_pods(kubernetes, node.namespace)
    else:
        missing = None if exposes(kubernetes.settings, kubernetes.state, node.namespace) else Missing.NAMESPACE
    return NO_DATA if missing is None else NAME_ERRORS[missing]


def _may_be_reverse(question: ZoneQuestion) -> bool:
    return question.origin.reverse or question.qtype == RRType.PTR or not question.origin.name


def _is_above_addresses(kubernetes: KubernetesZone, question: ZoneQuestion) -> bool:
    """Whether reverse names of addresses may be below this one, which NXDOMAIN would deny as well (RFC 8020).

    Such names get NODATA: right for empty non-terminals, harmless for names with nothing below; no index
    distinguishes them. With `fallthrough` the next plugin may know such a name.
    """
    return is_part_of_reverse(question.qname) and not falls_through(kubernetes, question)


def _answer_service(kubernetes: KubernetesZone, name: ServiceName | ZonalName, question: ZoneQuestion) -> Answer:
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
        answer = answer_headless(kubernetes, key, name, service, question)
    does_not_exist = answer.rcode == Rcode.NXDOMAIN
    is_short = (service.headless or does_not_exist) and namespace in state.left_out.namespaces
    if is_short and lacks_objects(state, key, multicluster):
        return LEFT_OUT
    return NO_DATA if does_not_exist and _is_above_others(kubernetes, name, service, question) else answer


def _answer_other(
    kubernetes: KubernetesZone, name: ServiceName | ZonalName, service: Service, question: ZoneQuestion
) -> Answer:
    """The answer for all names but those of a headless Service itself and of its ports."""
    if isinstance(name, ServiceName) and name.view:
        return NAME_ERRORS[Missing.ENDPOINT if service.headless else Missing.VIEW]
    if isinstance(name, ZonalName):
        if not service.headless:
            return NAME_ERRORS[Missing.ZONES]
        answer = _answer_zonal(kubernetes, name, service, question)
    elif service.external_name is not None:
        if name.endpoint or name.port or name.protocol:
            return NAME_ERRORS[Missing.BELOW_EXTERNAL_NAME]
        return aliases.answer_alias(service.external_name, question, kubernetes.settings.ttl)
    elif name.endpoint:
        answer = answer_named(kubernetes, name, service, question)
        if answer.rcode == Rcode.NXDOMAIN and lacks_objects(kubernetes.state, service.key, service.imported):
            return LEFT_OUT
    else:
        return _answer_cluster_ips(kubernetes, name, service, question)
    return aliases.with_aliases(kubernetes, name, backends_below(kubernetes, service, name), question, answer)


def _is_above_others(
    kubernetes: KubernetesZone, name: ServiceName | ZonalName, service: Service, question: ZoneQuestion
) -> bool:
    """Whether this is an empty non-terminal below a Service: no records, but names below it (RFC 8020).

    These are a protocol (`_tcp.web`, above `_http._tcp.web`), a cluster of an imported Service, and the labels
    between a Service and its topology zones (`_zone.db`, `pin._zone.db`).
    """
    if isinstance(name, ZonalName) or service.external_name is not None or (name.view and not service.headless):
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
        return any_ready(backends, matching(backends.ports, name)) or bool(
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


def _answer_zonal(kubernetes: KubernetesZone, name: ZonalName, service: Service, question: ZoneQuestion) -> Answer:
    """The ready endpoints of a headless Service in this topology zone, which is a field of an endpoint in its slice.

    If there are none of either address family, and no alias: NODATA (`pin`) or all ready endpoints (`prefer`). No keys
    filter them, but max-endpoints bounds them.
    """
    backends, ttl = backends_of(kubernetes, service), kubernetes.settings.ttl
    rule = rule_of(kubernetes, None if service.imported else service.key, question, ALL)
    missed = not any(backends.pools[family].by_topology_zone(name.topology_zone).endpoints for family in FAMILIES)
    missed = missed and not aliases.is_in_zone(backends, name.topology_zone)

    def pick(pool: Pool) -> Group:
        group = pool.everyone if missed and name.prefer else pool.by_topology_zone(name.topology_zone)
        return rule.bounded(group)

    family = FAMILY_OF_TYPE.get(question.qtype)
    if question.qtype == RRType.SRV:
        offers = offers_of((backends, service_wire(service, question)), backends.ports, pick)
        answer = srv_answer(endpoint_srv_records(offers, kubernetes.labels, ttl, question.limit), ttl)
    elif family is not None:
        answer = Answer(rdatas=pick(backends.pools[family]).addresses, ttl=ttl)
    else:
        return NO_DATA
    return answer._replace(location=rule.location, claimed=rule.for_one_client) if rule.location is not None else answer


def parse(labels: Name, multicluster: bool = False, zonal: bool = False, views: bool = False) -> SchemaName | None:
    """The name that these lower-case labels, leaf first and without the origin, are; None: not a name of the schema.

    `multicluster`: under an origin of ServiceImports, where two or more plain labels in front of a Service are an
    endpoint and its cluster (KEP-1645), and there are no views. `zonal`, `views`: whether zone-scoped names, and
    `_near.SERVICE` and `_all.SERVICE`, are served.
    """
    if len(labels) == SERVICE_LABELS and labels[2] == "svc":
        return ServiceName(labels[1], labels[0])
    if labels in _FIXED:
        return _FIXED[labels]
    if labels[-1] == "svc":
        if views and not multicluster and labels[-_VIEW_LABELS:-SERVICE_LABELS] in _VIEWS:
            return _parse_view(labels)
        return _parse_service(labels, multicluster, zonal)
    return _parse_pod(labels) if labels[-1] == "pod" else None


def is_above_zones(labels: Name) -> bool:
    """Whether the labels of a ServiceName are `_zone` or `pin|prefer._zone` in front of the Service.

    By labels, as `parse` takes them: a ServiceName lacks the underscores, and `pin.zone` has no names below it.
    """
    return labels[:-SERVICE_LABELS] in _ABOVE_ZONES


def _parse_service(labels: Name, multicluster: bool, zonal: bool) -> SchemaName | None:
    namespace = labels[-2]
    match len(labels) - SERVICE_LABELS:
        case -1:
            return NamespaceNode(namespace, pods=False)
        case 0:
            return ServiceName(namespace, labels[0])
        case 1:
            return ServiceName(namespace, labels[1], endpoint=labels[0])
        case 2 if not multicluster or labels[0].startswith("_") or labels[1].startswith("_"):
            port, protocol = (label.removeprefix("_") for label in labels[:2])
            return ServiceName(namespace, labels[2], port=port, protocol=protocol)
        case _ if multicluster:
            return _parse_cluster(labels)
        case _:
            return _parse_zonal(labels) if zonal else None


def _parse_view(labels: Name) -> SchemaName | None:
    """A view of a Service, its ports, or a name below it, of which none exists."""
    name = _parse_service((*labels[:-_VIEW_LABELS], *labels[-SERVICE_LABELS:]), multicluster=False, zonal=False)
    return name._replace(view=labels[-_VIEW_LABELS]) if isinstance(name, ServiceName) else None


def _parse_cluster(labels: Name) -> ServiceName | None:
    """An endpoint of one cluster, whose id is a subdomain (KEP-2149); a dot within a label is in no id."""
    endpoint, *cluster, service, namespace, _ = labels
    if any("." in label for label in cluster):
        return None
    return ServiceName(namespace, service, endpoint=endpoint, cluster=".".join(cluster))


def _parse_zonal(labels: Name) -> ZonalName | None:
    *topology_zone, directive, anchor, service, namespace, _ = labels
    if anchor != _ZONAL_ANCHOR or directive not in _ZONAL_DIRECTIVES:
        return None
    text = ".".join(label.replace(".", "\\.") for label in topology_zone)  # a dot within a label is in no zone
    return ZonalName(namespace, service, text, prefer=directive == "prefer")


def _parse_pod(labels: Name) -> SchemaName | None:
    match len(labels):
        case 2:
            return NamespaceNode(labels[0], pods=True)
        case 3 | 4 | 5:
            return PodName(labels[-2], labels[-3])
        case _:
            return None
