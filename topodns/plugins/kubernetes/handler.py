"""The `kubernetes` plugin of a server block: answers every name under its origins as CoreDNS's plugin does.

Differences, on purpose: clients of a headless Service with a topology policy get the endpoints of their topology
domain; while watches are incomplete a name that seems not to exist is SERVFAIL even where `fallthrough` applies, so
that no other server is queried for a name that may be in the cluster; NS at the apex ignores the query's case (RFC
4343); a name that has records of some type, or names below it, is NODATA for all other types, where CoreDNS has
NXDOMAIN for some (RFC 8020).
"""

from collections.abc import Sequence
from typing import Final

from topodns.cluster.state import ClusterState
from topodns.dependency import namespace_fact
from topodns.dns.message import Edns, Query, RRset
from topodns.dns.name import is_part_of_reverse, is_subdomain, reverse_address
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.soa import soa_rrset
from topodns.plugins.kubernetes.endpoints import FAMILY_OF_TYPE, EndpointNames
from topodns.plugins.kubernetes.external_name import ExternalNames
from topodns.plugins.kubernetes.nameservers import NameServers
from topodns.plugins.kubernetes.namespaces import Exposure
from topodns.plugins.kubernetes.parse import (
    SCHEMA_VERSION,
    Fixed,
    NamespaceNode,
    PodName,
    ServiceName,
    ZonalName,
    parse,
)
from topodns.plugins.kubernetes.pod_wait import PodWait
from topodns.plugins.kubernetes.pods import PodNames
from topodns.plugins.kubernetes.records import NXDOMAIN, found, name_error, no_data, not_ready
from topodns.plugins.kubernetes.reverse import ReverseZone
from topodns.plugins.kubernetes.services import ServiceNames
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.topology_filter import MAX_MISS_TTL, Chooser, is_miss
from topodns.plugins.kubernetes.zones import Origins, ZoneQuestion, question_of
from topodns.plugins.topology import TopologySettings
from topodns.query.client_claim import ecs_reply, read_claim
from topodns.query.cname import Chase, follow
from topodns.query.deferred import Deferred, Outcome
from topodns.query.label_limiter import LabelLimiters
from topodns.query.plugin import Answered, Client, FellThrough, Resolution, Scope, Stepped
from topodns.topology.client_locator import Locator

_REFUSED: Final = int(Rcode.REFUSED)
_PTR, _SOA = int(RRType.PTR), int(RRType.SOA)
_VERSION: Final = RRset(
    b"",
    RRType.TXT,
    28800,  # seconds, whatever `ttl` says (CoreDNS)
    (bytes((len(SCHEMA_VERSION),)) + SCHEMA_VERSION.encode(),),
)


class ClusterZone:
    """Answers under the origins of one `kubernetes` directive, from one cluster's state.

    `topology` and `locator` are None where the block has no `topology`. `own_addresses` (packed) are those the server
    is bound to, without loopback ones. `chase` resolves the target of an ExternalName outside the origins; where it is
    None or returns None, the answer is the CNAME alone. `rosters` limit the labels of metrics. With `pod_wait` a query
    under a policy from a client without a location waits briefly before it is answered as an unknown client's.
    """

    def __init__(
        self,
        settings: KubernetesSettings,
        topology: TopologySettings | None,
        state: ClusterState,
        locator: Locator | None,
        own_addresses: Sequence[bytes] = (),
        chase: Chase | None = None,
        rosters: LabelLimiters | None = None,
        pod_wait: PodWait | None = None,
    ) -> None:
        self._settings = settings
        self._pod_wait = pod_wait
        self._chase = chase
        self._locator = locator
        self._state = state
        self._origins = Origins(settings.origins, settings.multicluster)
        self._exposure = exposure = Exposure(settings, state)
        chooser = Chooser(topology, state, locator, settings.ttl, rosters or LabelLimiters())
        endpoints = EndpointNames(settings, state, chooser, topology is not None and topology.filter_hostnames)
        external = ExternalNames(settings.ttl, self._respond)
        self._services = ServiceNames(settings, state, exposure, chooser, endpoints, external)
        self._pods = PodNames(settings, state, exposure)
        self._reverse = ReverseZone(settings, state, exposure, endpoints, self._origins.primary)
        self._servers = NameServers(settings, state, endpoints, own_addresses)

    def __call__(self, query: Query, client: Client) -> Stepped | Deferred[Stepped]:
        """The resolution of a query under one of the origins, deferred with `pod_wait`; None for any other query."""
        origin = self._origins.match(query.qname)
        if origin is None:
            return None
        question = question_of(query, client, origin)
        resolution = self._respond(question)
        if self._pod_wait is not None and resolution.location is not None and not resolution.location.node_name:
            arrival = self._pod_wait.wait(client.address)
            if arrival is not None:
                return self._respond_after(arrival, question)
        return self._completed(question, resolution)

    async def _respond_after(self, arrival: Outcome[None], question: ZoneQuestion) -> Stepped:
        await arrival
        completed = self._completed(question, self._respond(question))
        return completed if isinstance(completed, Resolution | FellThrough) else await completed

    def _completed(self, question: ZoneQuestion, resolution: Resolution) -> Answered | FellThrough:
        """The resolution with its SOA and EDNS options, and with the records of its CNAME's target."""
        query, client = question.query, question.client
        response = resolution.response
        if response.rcode == NXDOMAIN and self._falls_through(query):
            return FellThrough(resolution.facts)
        if not response.answer and response.rcode != _REFUSED:
            response.authority = (self._soa(question, is_miss(resolution)),)
        if query.edns is not None and query.edns.options:
            self._echo_subnet(query.edns, client, resolution)
        if resolution.chase is not None:
            return follow(resolution.chase, resolution, query, client, self._chase)
        return resolution

    def _echo_subnet(self, edns: Edns, client: Client, resolution: Resolution) -> None:
        """Repeat a trusted Client Subnet, with the prefix length that the answer is for (RFC 7871 section 7.2.1).

        That is 0 where the client's location did not matter. A malformed one is FORMERR, for any name.
        """
        if self._locator is None or not self._locator.trusts(client.address):
            return
        read_claim(edns)
        location = resolution.location
        used = location.prefix_length if location is not None and location.method == "ecs" else 0
        echoed = ecs_reply(edns, used)
        if echoed is not None:
            resolution.response.options = (*resolution.response.options, echoed)

    def _respond(self, question: ZoneQuestion) -> Resolution:
        """The answer without SOA; SERVFAIL instead of NXDOMAIN while the state is incomplete."""
        resolution = self._look_up(question)
        if resolution.response.rcode == NXDOMAIN and not self._state.synced:
            return not_ready(resolution.facts)
        return resolution

    def _look_up(self, question: ZoneQuestion) -> Resolution:
        query, origin = question.query, question.origin
        labels = query.qname[: len(query.qname) - len(origin.name)]
        if query.qtype == _SOA:  # CoreDNS answers SOA queries at the apex only, and none with NXDOMAIN
            return no_data() if labels else self._apex_soa(question)
        may_be_reverse = origin.reverse or query.qtype == _PTR or not origin.name
        if may_be_reverse and (address := reverse_address(query.qname)) is not None:
            return self._reverse.respond(address, query.qtype)
        name = parse(labels, origin.multicluster, self._settings.zonal)
        if isinstance(name, Fixed):
            return self._fixed(name, question)
        if name is None or origin.reverse:
            return no_data() if may_be_reverse and self._is_above_addresses(query) else name_error()
        if isinstance(name, (ServiceName, ZonalName)):
            return self._services.respond(name, question)
        if isinstance(name, PodName):
            return self._pods.respond(name, question)
        return self._namespace(name)

    def _fixed(self, name: Fixed, question: ZoneQuestion) -> Resolution:
        qtype = question.query.qtype
        if name is Fixed.DNS_VERSION and qtype == RRType.TXT:
            return found((), (_VERSION,))
        if name is Fixed.NS_DNS and qtype in FAMILY_OF_TYPE:
            return self._servers.addresses(question)
        if name is Fixed.APEX and qtype == RRType.NS:
            return self._servers.name_servers(question)
        return no_data()

    def _namespace(self, node: NamespaceNode) -> Resolution:
        exists = self._pods.serves(node) if node.pods else self._exposure.exposes(node.namespace)
        facts = (namespace_fact(node.namespace),)
        return no_data(facts) if exists else name_error(facts)

    def _is_above_addresses(self, query: Query) -> bool:
        """Whether reverse names of addresses may be below this one, which NXDOMAIN would deny as well (RFC 8020).

        Such names get NODATA: right for empty non-terminals, harmless for names with nothing below; no index
        distinguishes them. With `fallthrough` the next plugin may know such a name.
        """
        return is_part_of_reverse(query.qname) and not self._falls_through(query)

    def _apex_soa(self, question: ZoneQuestion) -> Resolution:
        """Never cached, since the serial is the time of the last change to any object."""
        resolution = found((), (self._soa(question),))
        resolution.scope = Scope.CLIENT
        return resolution

    def _falls_through(self, query: Query) -> bool:
        origins = self._settings.fallthrough
        return bool(origins) and any(is_subdomain(query.qname, origin) for origin in origins)

    def _soa(self, question: ZoneQuestion, miss: bool = False) -> RRset:
        """The SOA, owned by the origin in the query's spelling; with a TTL of a few seconds for a topology miss."""
        ttl = self._settings.ttl
        return soa_rrset(question.origin_wire, self._state.serial, min(ttl, MAX_MISS_TTL) if miss else ttl)
