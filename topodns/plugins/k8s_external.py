"""The `k8s_external` directive: `<service>.<namespace>.<origin>` for the world outside of the cluster.

The addresses are those at which the outside reaches the Service: spec.externalIPs and its load balancer's; with
`headless`, endpoints. Topology has no part in it, since who asks from outside is on no node.

As CoreDNS's plugin, to which one label in front of a Service with external addresses means nothing. What differs: where
a load balancer has only a hostname, that is one CNAME for A, AAAA and CNAME questions (CoreDNS writes several where
there are several, and none for CNAME); SRV answers with such a hostname come without its addresses; names of Services
are SERVFAIL instead of NXDOMAIN while the watches are incomplete.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from topodns.cluster.backends import endpoint_label
from topodns.cluster.facts import Fact, address_fact, namespace_fact, service_fact
from topodns.cluster.model import ObjectKey, Service
from topodns.cluster.state import ClusterState
from topodns.dns.message import Query, RRset, RRType
from topodns.dns.names import Name, is_subdomain, label_wire, name_wire, reverse_address
from topodns.resolve.chase import Chase, follow
from topodns.resolve.exposure import Exposure
from topodns.resolve.external_names import target_of
from topodns.resolve.srv import Offer, address_records, address_type, glue, srv_records
from topodns.resolve.step import Answered, Client, FellThrough, Resolution, Scope
from topodns.resolve.verdict import NXDOMAIN, Facts, found, name_error, no_data, not_ready
from topodns.settings.k8s_external import K8sExternal
from topodns.settings.kubernetes import KubernetesSettings

PLUGIN: Final = "k8s_external"

_A, _AAAA, _SRV, _PTR, _SOA, _NS, _CNAME = (
    int(each) for each in (RRType.A, RRType.AAAA, RRType.SRV, RRType.PTR, RRType.SOA, RRType.NS, RRType.CNAME)
)
_ALIASED: Final = frozenset((_A, _AAAA, _CNAME))
_FAMILIES: Final = (4, 6)
_SERVER: Final = "ns1"
_MAILBOX: Final = "hostmaster"
_NUMBERS: Final = Struct("!IIIII")
_REFRESH, _RETRY, _EXPIRE = 7200, 1800, 86400


class _Question(NamedTuple):
    query: Query
    labels: Name  # in front of the origin
    origin: Name
    origin_wire: bytes  # as the query spells it


class _Part(NamedTuple):
    """The part of a Service that a name asks for; "" is any."""

    endpoint: str = ""
    port: str = ""
    protocol: str = ""

    def means(self, port: str, protocol: str) -> bool:
        """Ignoring case, since the name has lost its own."""
        return self.port in ("", port.lower()) and self.protocol in ("", protocol.lower())


class ExternalZone:
    """The step of a `k8s_external` directive, over the state of the block's `kubernetes`.

    `own_addresses` (packed) are those that the server is bound to, without loopback ones. `chase` finds what is behind
    the hostname of a load balancer.
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
        self._servers = label_wire(_SERVER) + label_wire(settings.apex)  # the name of all servers together
        self._exposure = Exposure(kubernetes, state)
        self._pod_names = kubernetes.endpoint_pod_names
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
            query, qname[: len(qname) - len(origin)], origin, query.spelling[-len(name_wire(origin)) :]
        )
        resolution = self._look_up(question)
        resolution.plugin = PLUGIN
        response = resolution.response
        if response.rcode == NXDOMAIN and any(is_subdomain(qname, each) for each in self._settings.fallthrough):
            return FellThrough(resolution.facts)
        if not response.answer:
            response.authority = (self._soa(question),)
        if resolution.chase is not None:
            return follow(resolution.chase, resolution, query, client, self._chase)
        return resolution

    def _look_up(self, question: _Question) -> Resolution:
        labels = question.labels
        if not labels:
            return self._apex(question)
        if labels[-1] == self._settings.apex:
            return self._below_apex(question)
        resolution = self._respond(question)
        if resolution.response.rcode == NXDOMAIN and not self._state.synced:
            return not_ready(resolution.facts)
        return resolution

    def _apex(self, question: _Question) -> Resolution:
        """The SOA is never kept, since its serial tells of the last change to anything."""
        ttl = self._settings.ttl
        if question.query.qtype == _SOA:
            resolution = found((), (self._soa(question),))
            resolution.scope = Scope.CLIENT
            return resolution
        if question.query.qtype == _NS:
            name = self._servers + question.origin_wire
            addresses, facts = self._server_addresses()
            return found(facts, (RRset(b"", _NS, ttl, (name,)),), glue(((name, each) for each in addresses), ttl))
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
        """Where the outside reaches the Services that have this server behind them; without any, its own addresses."""
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
        return tuple(each for family in _FAMILIES for each in backends.pool(family).everyone.addresses)

    def _respond(self, question: _Question) -> Resolution:
        query, labels = question.query, question.labels
        if query.qtype == _PTR and (address := reverse_address(query.qname)) is not None:
            return self._pointers(address)
        namespace = labels[-1]
        facts: Facts = (namespace_fact(namespace),)
        if not self._exposure.exposes(namespace):
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
            return self._of_endpoints(service, part, name, query.qtype, facts)
        return self._of_service(service, part, name, query.qtype, facts)

    def _is_headless(self, service: Service, part: _Part) -> bool:
        """Whether endpoints are what is asked for, and may be."""
        if not self._settings.headless or service.external_ips or service.external_hostnames:
            return False
        return service.headless or bool(part.endpoint)

    def _pointers(self, address: bytes) -> Resolution:
        facts: list[Fact] = [address_fact(address)]
        targets = []
        for key in self._state.external.at(address):
            facts += (namespace_fact(key.namespace), service_fact(*key))
            if self._exposure.exposes_reverse(key.namespace):
                targets.append(name_wire((key.name, key.namespace, *self._settings.origins[0])))
        if not targets:
            return name_error(tuple(facts))
        return found(tuple(facts), (RRset(b"", _PTR, self._settings.ttl, tuple(targets)),))

    def _of_service(self, service: Service, part: _Part, name: bytes, qtype: int, facts: Facts) -> Resolution:
        ports = [port.number for port in service.ports if part.means(port.name, port.protocol)]
        hosts = [target for text in service.external_hostnames if (target := target_of(text)) is not None]
        if not ports or not (service.external_ips or hosts):
            return name_error(facts)
        ttl = self._settings.ttl
        if qtype == _SRV:
            return found(facts, *_service_srv(service.external_ips, hosts, ports, name, ttl))
        if hosts and not service.external_ips and qtype in _ALIASED:
            resolution = found(facts, (RRset(b"", _CNAME, ttl, (name_wire(hosts[0]),)),))
            resolution.chase = hosts[0] if qtype != _CNAME else None
            return resolution
        addresses = tuple(dict.fromkeys(each for each in service.external_ips if address_type(each) == qtype))
        return found(facts, address_records(qtype, ttl, addresses))

    def _of_endpoints(self, service: Service, part: _Part, name: bytes, qtype: int, facts: Facts) -> Resolution:
        offers = self._offers(service, part, name)
        if not offers:
            return name_error(facts)
        if qtype == _SRV:
            return found(facts, *srv_records(offers, self._settings.ttl))
        addresses = tuple(dict.fromkeys(offer.address for offer in offers if address_type(offer.address) == qtype))
        return found(facts, address_records(qtype, self._settings.ttl, addresses))

    def _offers(self, service: Service, part: _Part, name: bytes) -> list[Offer]:
        """Each ready endpoint that the name means, once for each port that it means."""
        backends = self._state.backends(service.key)
        meant = [port for port in backends.ports if part.means(port.name, port.protocol)]
        labelled = (
            (endpoint_label(endpoint, self._pod_names), endpoint.address, port.number)
            for port in meant
            for family in _FAMILIES
            for endpoint in backends.pool_for_port(family, port).everyone.endpoints
        )
        return [
            Offer(label_wire(label) + name, address, port)
            for label, address, port in labelled
            if part.endpoint in ("", label.lower())
        ]

    def _soa(self, question: _Question) -> RRset:
        origin, apex, ttl = question.origin_wire, label_wire(self._settings.apex), self._settings.ttl
        numbers = _NUMBERS.pack(self._state.external.serial & 0xFFFFFFFF, _REFRESH, _RETRY, _EXPIRE, ttl)
        rdata = self._servers + origin + label_wire(_MAILBOX) + apex + origin + numbers
        return RRset(origin, _SOA, ttl, (rdata,))


def _part(labels: Name) -> _Part | None:
    """What labels in front of a Service's name ask for; None for too many."""
    match labels:
        case ():
            return _Part()
        case (endpoint,):
            return _Part(endpoint=endpoint.removeprefix("_"))
        case (port, protocol):
            return _Part(port=port.removeprefix("_"), protocol=protocol.removeprefix("_"))
        case _:
            return None


def _service_srv(
    addresses: Sequence[bytes], hosts: Sequence[Name], ports: Sequence[int], name: bytes, ttl: int
) -> tuple[tuple[RRset, ...], tuple[RRset, ...]]:
    """The SRV records of a Service: of its own name where it has addresses, and of each host; and those addresses."""
    offers = [Offer(name, address, port) for address in addresses for port in ports]
    offers += [Offer(name_wire(host), b"", port) for host in hosts for port in ports]
    answer, _ = srv_records(offers, ttl)
    return answer, glue(((name, address) for address in addresses), ttl)
