"""The `k8s_external` plugin: names `<service>.<namespace>.<origin>` for clients outside the cluster.

Their addresses are spec.externalIPs and those of the load balancer; with `headless`, those of endpoints. Topology does
not apply: a client outside the cluster is on no Node.

As in CoreDNS, one label in front of a Service with external addresses is ignored. Differences: a load balancer with
only a hostname is one CNAME for queries of type A, AAAA and CNAME (CoreDNS writes several where there are several, and
none for CNAME); SRV answers with such a hostname come without its addresses; names of Services are SERVFAIL instead of
NXDOMAIN while the watches are incomplete.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, NamedTuple

from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import EMPTY_GROUP
from topodns.cluster.model import ObjectKey, Service
from topodns.cluster.state import ClusterState
from topodns.corefile.arguments import flag, fold_options, no_body, once_each, only_arg, whole, wrong
from topodns.corefile.parser import Directive
from topodns.corefile.zones import parse_origins
from topodns.dependency import Fact, address_fact, namespace_fact, service_fact
from topodns.dns.message import Query, RRset
from topodns.dns.name import (
    ROOT,
    BadName,
    Name,
    is_below_any,
    is_part_of_reverse,
    is_subdomain,
    label_wire,
    name_wire,
    parse_name,
    reverse_address,
)
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.wire_format import pack_soa_numbers
from topodns.plugins.compatibility import differs
from topodns.plugins.context import Context
from topodns.plugins.kubernetes.external_name import target_of
from topodns.plugins.kubernetes.label_cache import KeptLabels
from topodns.plugins.kubernetes.namespaces import exposes, exposes_reverse
from topodns.plugins.kubernetes.records import (
    Facts,
    GroupOffer,
    address_records,
    address_type,
    endpoint_srv_records,
    found,
    glue,
    name_error,
    no_data,
    not_ready,
    service_srv_records,
)
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.plugin import Install, Plugin
from topodns.plugins.setup import BlockListener, BlockSetup
from topodns.query.cname import Chase, follow
from topodns.query.plugin import Answered, ChainPart, Client, FellThrough, Resolution, Scope


@dataclass(frozen=True, slots=True)
class K8sExternal:
    origins: tuple[Name, ...]
    apex: str = "dns"  # the label under the origin, lower-case: the name servers are `ns1.<apex>.<origin>`
    ttl: int = 5  # seconds, 0..3600
    headless: bool = False  # headless Services without external addresses are answered with their endpoints
    fallthrough: tuple[Name, ...] = ()  # origins below which an unknown name goes to the next plugin; root: all


_MAX_TTL: Final = 3600  # seconds; CoreDNS's limit


def parse_k8s_external(directive: Directive, context: Context) -> K8sExternal:
    once_each(directive)
    return fold_options(directive, K8sExternal(context.origins_of(directive)), _EXTERNAL_READERS)


def _apex(option: Directive, settings: K8sExternal) -> K8sExternal:
    text = only_arg(option, "one label")
    try:
        label = parse_name(text)
    except BadName as problem:
        raise option.error(f"'apex' has no label: {problem}") from None
    if len(label) != 1:
        raise wrong(option, "one label, without dots")
    return replace(settings, apex=label[0])


def _ttl(option: Directive, settings: K8sExternal) -> K8sExternal:
    return replace(settings, ttl=whole(option, only_arg(option, "seconds"), 0, _MAX_TTL))


def _headless(option: Directive, settings: K8sExternal) -> K8sExternal:
    flag(option)
    return replace(settings, headless=True)


def _fallthrough(option: Directive, settings: K8sExternal) -> K8sExternal:
    no_body(option)
    return replace(settings, fallthrough=parse_origins(option, option.args) or (ROOT,))


_EXTERNAL_READERS: Final[Mapping[str, Callable[[Directive, K8sExternal], K8sExternal]]] = {
    "apex": _apex,
    "ttl": _ttl,
    "headless": _headless,
    "fallthrough": _fallthrough,
}

NAME: Final = "k8s_external"

_ALIASED: Final = frozenset((RRType.A, RRType.AAAA, RRType.CNAME))
_FAMILIES: Final = (4, 6)
_SERVER: Final = "ns1"
_MAILBOX: Final = "hostmaster"
_REFRESH, _RETRY, _EXPIRE = 7200, 1800, 86400


class _Question(NamedTuple):
    query: Query
    labels: Name  # before the origin
    origin: Name
    origin_wire: bytes  # in the query's spelling
    limit: int  # octets of the reply


class _Part(NamedTuple):
    """The endpoint, or port and protocol, of a Service that a name selects; "" is any."""

    endpoint: str = ""
    port: str = ""
    protocol: str = ""

    def means(self, port: str, protocol: str) -> bool:
        """Whether a port matches; case is ignored, because the labels of the qname are lower-case."""
        return self.port in ("", port.lower()) and self.protocol in ("", protocol.lower())


class ExternalZone:
    """The plugin of a `k8s_external` directive, over the cluster state of the block's `kubernetes`.

    `own_addresses` (packed) are those that the server is bound to, without loopback ones. `chase` resolves the hostname
    of a load balancer.
    """

    def __init__(
        self,
        settings: K8sExternal,
        kubernetes: KubernetesSettings,
        state: ClusterState,
        own_addresses: Sequence[bytes] = (),
        chase: Chase | None = None,
    ) -> None:
        self._settings = settings
        self._origins = tuple(sorted(settings.origins, key=len, reverse=True))
        self._servers = label_wire(_SERVER) + label_wire(settings.apex)  # one name for all name servers
        self._kubernetes = kubernetes
        self._labels = KeptLabels(kubernetes.endpoint_pod_names)
        self._state = state
        self._own = tuple(own_addresses)
        self._chase = chase

    def __call__(self, query: Query, client: Client) -> Answered | FellThrough | None:
        """The resolution of a query under one of the origins; None for any other."""
        qname = query.qname
        origin = next((each for each in self._origins if is_subdomain(qname, each)), None)
        if origin is None:
            return None
        question = _Question(
            query,
            qname[: len(qname) - len(origin)],
            origin,
            query.spelling[-len(name_wire(origin)) :],
            client.limit,
        )
        resolution = self._look_up(question)
        resolution.plugin = NAME
        response = resolution.response
        if response.rcode == Rcode.NXDOMAIN and self._falls_through(qname):
            return FellThrough(resolution.facts)
        if not response.answer:
            response.authority = (self._soa(question),)
        if resolution.chase is not None:
            return follow(resolution.chase, resolution, query, client, self._chase)
        return resolution

    def _falls_through(self, qname: Name) -> bool:
        return is_below_any(qname, self._settings.fallthrough)

    def _look_up(self, question: _Question) -> Resolution:
        labels = question.labels
        if not labels:
            return self._apex(question)
        if labels[-1] == self._settings.apex:
            return self._below_apex(question)
        resolution = self._respond(question)
        if resolution.response.rcode == Rcode.NXDOMAIN and not self._state.synced:
            return not_ready(resolution.facts)
        return resolution

    def _apex(self, question: _Question) -> Resolution:
        """SOA, NS or NODATA. An answer with the SOA is never cached: its serial is the time of the last change."""
        ttl = self._settings.ttl
        if question.query.qtype == RRType.SOA:
            resolution = found((), (self._soa(question),))
            resolution.scope = Scope.CLIENT
            return resolution
        if question.query.qtype == RRType.NS:
            name = self._servers + question.origin_wire
            addresses, facts = self._server_addresses()
            return found(facts, (RRset(b"", RRType.NS, ttl, (name,)),), glue(((name, each) for each in addresses), ttl))
        return no_data()

    def _below_apex(self, question: _Question) -> Resolution:
        labels, qtype = question.labels, question.query.qtype
        if len(labels) == 1:
            return no_data()
        if len(labels) > 2 or labels[0] != _SERVER:
            return name_error()
        addresses, facts = self._server_addresses()
        of_type = tuple(each for each in addresses if address_type(each) == qtype)
        return found(facts, address_records(qtype, self._settings.ttl, of_type))

    def _server_addresses(self) -> tuple[tuple[bytes, ...], Facts]:
        """The external addresses of the Services with this server as a ready endpoint; without such, its own."""
        facts: list[Fact] = [address_fact(each) for each in self._own]
        found_at: dict[bytes, None] = {}
        behind = False
        for address in self._own:
            for key, endpoint in self._state.endpoints_with_address(address):
                service = self._state.service(key)
                facts.append(service_fact(*key))
                if service is not None and endpoint.ready:
                    behind = True
                    found_at.update(dict.fromkeys(self._addresses(service)))
        return tuple(found_at) if behind else self._own, tuple(facts)

    def _addresses(self, service: Service) -> tuple[bytes, ...]:
        if not self._is_headless(service, _Part()):
            return service.external_ips
        backends = self._state.backends(service.key)
        return tuple(each for family in _FAMILIES for each in backends.pools[family].everyone.addresses)

    def _respond(self, question: _Question) -> Resolution:
        query, labels = question.query, question.labels
        if (address := reverse_address(query.qname)) is not None:
            return self._pointers(address, query.qtype)
        if is_part_of_reverse(query.qname) and not self._falls_through(query.qname):
            return no_data()  # reverse names of addresses may be below it (RFC 8020)
        namespace = labels[-1]
        facts: Facts = (namespace_fact(namespace),)
        if not exposes(self._kubernetes, self._state, namespace):
            return name_error(facts)
        if len(labels) == 1:
            return no_data(facts)
        facts += (service_fact(namespace, labels[-2]),)
        service = self._state.service(ObjectKey(namespace, labels[-2]))
        part = _part(labels[:-2])
        if service is None or part is None:
            return name_error(facts)
        name = label_wire(service.name) + label_wire(service.namespace) + question.origin_wire
        if self._is_headless(service, part):
            return self._of_endpoints(service, part, name, question, facts)
        return self._of_service(service, part, name, question, facts)

    def _is_headless(self, service: Service, part: _Part) -> bool:
        """Whether the answer is made of endpoints, as it may be with `headless`."""
        if not self._settings.headless or service.external_ips or service.external_hostnames:
            return False
        return service.headless or bool(part.endpoint)

    def _pointers(self, address: bytes, qtype: int) -> Resolution:
        facts: list[Fact] = [address_fact(address)]
        targets = []
        for key in self._state.external.at(address):
            facts += (namespace_fact(key.namespace), service_fact(*key))
            if exposes_reverse(self._kubernetes, self._state, key.namespace):
                targets.append(name_wire((key.name, key.namespace, *self._settings.origins[0])))
        if not targets:
            return name_error(tuple(facts))
        if qtype != RRType.PTR:
            return no_data(tuple(facts))
        return found(tuple(facts), (RRset(b"", RRType.PTR, self._settings.ttl, tuple(targets)),))

    def _of_service(self, service: Service, part: _Part, name: bytes, question: _Question, facts: Facts) -> Resolution:
        qtype = question.query.qtype
        ports = [port.number for port in service.ports if part.means(port.name, port.protocol)]
        hosts = [target for text in service.external_hostnames if (target := target_of(text)) is not None]
        if not ports or not (service.external_ips or hosts):
            return no_data(facts) if self._is_above_endpoints(service, part) else name_error(facts)
        ttl = self._settings.ttl
        if qtype == RRType.SRV:
            targets = [name_wire(host) for host in hosts]
            return found(facts, *service_srv_records(name, service.external_ips, targets, ports, ttl, question.limit))
        if hosts and not service.external_ips and qtype in _ALIASED:
            resolution = found(facts, (RRset(b"", RRType.CNAME, ttl, (name_wire(hosts[0]),)),))
            resolution.chase = hosts[0] if qtype != RRType.CNAME else None
            return resolution
        addresses = tuple(dict.fromkeys(each for each in service.external_ips if address_type(each) == qtype))
        return found(facts, address_records(qtype, ttl, addresses))

    def _is_above_endpoints(self, service: Service, part: _Part) -> bool:
        """Whether this is a Service without external addresses, whose endpoints' names are below it (RFC 8020)."""
        if part != _Part() or not self._is_headless(service, _Part(endpoint="*")):
            return False
        return any(offer.group.endpoints for offer in _offers(self._state.backends(service.key), part, b""))

    def _of_endpoints(
        self, service: Service, part: _Part, name: bytes, question: _Question, facts: Facts
    ) -> Resolution:
        qtype, limit = question.query.qtype, question.limit
        backends = self._state.backends(service.key)
        offers = (offer for offer in _offers(backends, part, name) if offer.group.endpoints)
        first = next(offers, None)
        if first is None:
            return no_data(facts) if part.endpoint and _is_protocol(backends, part.endpoint) else name_error(facts)
        ttl, offers_left = self._settings.ttl, chain((first,), offers)
        if qtype == RRType.SRV:
            return found(facts, *endpoint_srv_records(offers_left, self._labels, ttl, limit))
        groups = (offer.group for offer in offers_left)
        of_type = (group for group in groups if address_type(group.endpoints[0].address) == qtype)
        return found(facts, address_records(qtype, ttl, backends.joined_addresses(of_type)))

    def _soa(self, question: _Question) -> RRset:
        origin, apex, ttl = question.origin_wire, label_wire(self._settings.apex), self._settings.ttl
        numbers = pack_soa_numbers(self._state.external.serial & 0xFFFFFFFF, _REFRESH, _RETRY, _EXPIRE, ttl)
        rdata = self._servers + origin + label_wire(_MAILBOX) + apex + origin + numbers
        return RRset(origin, RRType.SOA, ttl, (rdata,))


def _offers(backends: Backends, part: _Part, name: bytes) -> Iterator[GroupOffer]:
    """The ready endpoints that the name selects, once for each port that it selects."""
    named = backends.named(part.endpoint) if part.endpoint else None
    for port in backends.ports:
        if not part.means(port.name, port.protocol):
            continue
        for family in _FAMILIES:
            if named is None:
                group = backends.pool_for_port(family, port).everyone
            else:
                group = backends.exposing(family, port, named.get(family, EMPTY_GROUP))
            yield GroupOffer(group, port.number, name)


def _is_protocol(backends: Backends, label: str) -> bool:
    """Whether the label is a protocol (`_tcp`) above the names of ports that endpoints expose (RFC 8020)."""
    return any(offer.group.endpoints for offer in _offers(backends, _Part(protocol=label), b""))


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


def _setup(settings: K8sExternal, block: BlockSetup) -> Install | None:
    cluster = block.cluster
    if cluster is None:
        return None

    def install(listener: BlockListener) -> tuple[ChainPart]:
        handler = ExternalZone(settings, cluster.kubernetes, cluster.state, listener.addresses, listener.chase)
        return (ChainPart(step=handler),)

    return install


PLUGIN: Final = Plugin(
    name="k8s_external",
    coredns=differs("a load balancer's hostname is one CNAME; names are SERVFAIL until the cluster is known"),
    parse=parse_k8s_external,
    setup=_setup,
    requires=("kubernetes",),
)
