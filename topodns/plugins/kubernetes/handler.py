"""The `kubernetes` step of a server block: every name under its origins, answered as CoreDNS's plugin does.

What differs on purpose: clients of headless Services under a topology policy get the endpoints meant for them; while
watches are incomplete a name that seems not to exist is SERVFAIL even where `fallthrough` applies, so that no other
server is asked about a name that may be ours; NS at the apex ignores the query's case (RFC 4343).
"""

from collections.abc import Sequence
from typing import Final

from topodns.cluster.facts import namespace_fact
from topodns.cluster.locate import Locator
from topodns.cluster.state import ClusterState
from topodns.dns.message import Edns, Query, Rcode, RRset, RRType
from topodns.dns.names import is_subdomain, reverse_address
from topodns.resolve.apex import NameServers
from topodns.resolve.chase import Chase, follow
from topodns.resolve.endpoint_names import FAMILY_OF_TYPE, EndpointNames
from topodns.resolve.exposure import Exposure
from topodns.resolve.external_names import ExternalNames
from topodns.resolve.identity import ecs_reply, read_claim
from topodns.resolve.origins import Origins, Question, question_of
from topodns.resolve.pod_names import PodNames
from topodns.resolve.reverse_zone import ReverseZone
from topodns.resolve.rosters import Rosters
from topodns.resolve.schema import SCHEMA_VERSION, Fixed, NamespaceNode, PodName, ServiceName, ZonalName, parse
from topodns.resolve.service_names import ServiceNames
from topodns.resolve.soa import soa_rrset
from topodns.resolve.step import Answered, Client, FellThrough, Resolution, Scope
from topodns.resolve.topology_choice import MAX_MISS_TTL, Chooser, is_miss
from topodns.resolve.verdict import NXDOMAIN, found, name_error, no_data, not_ready
from topodns.settings.kubernetes import KubernetesSettings
from topodns.settings.topology import TopologySettings

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
    is bound to, without loopback ones. `chase` asks the listener about the target of an ExternalName elsewhere; where
    it is None or gives None, the CNAME stands alone. `rosters` say who is named in metrics.
    """

    def __init__(
        self,
        settings: KubernetesSettings,
        topology: TopologySettings | None,
        state: ClusterState,
        locator: Locator | None,
        own_addresses: Sequence[bytes] = (),
        chase: Chase | None = None,
        rosters: Rosters | None = None,
    ) -> None:
        self._settings = settings
        self._chase = chase
        self._locator = locator
        self._state = state
        self._origins = Origins(settings.origins, settings.multicluster)
        self._exposure = exposure = Exposure(settings, state)
        chooser = Chooser(topology, state, locator, settings.ttl, rosters or Rosters())
        endpoints = EndpointNames(settings, state, chooser, topology is not None and topology.filter_hostnames)
        external = ExternalNames(settings.ttl, self._respond)
        self._services = ServiceNames(settings, state, exposure, chooser, endpoints, external)
        self._pods = PodNames(settings, state, exposure)
        self._reverse = ReverseZone(settings, state, exposure, endpoints, self._origins.primary)
        self._servers = NameServers(settings, state, endpoints, own_addresses)

    def __call__(self, query: Query, client: Client) -> Answered | FellThrough | None:
        """The resolution of a query under one of the origins; None for any other."""
        origin = self._origins.match(query.qname)
        if origin is None:
            return None
        question = question_of(query, client, origin)
        resolution = self._respond(question)
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
        """Repeat a Client Subnet that is believed, with the prefix that the answer is for (RFC 7871 section 7.2.1).

        That is 0 where the client's place did not matter. One that is malformed is FORMERR, whatever the name.
        """
        if self._locator is None or not self._locator.trusts(client.address):
            return
        read_claim(edns)
        location = resolution.location
        used = location.prefix_length if location is not None and location.method == "ecs" else 0
        echoed = ecs_reply(edns, used)
        if echoed is not None:
            resolution.response.options = (*resolution.response.options, echoed)

    def _respond(self, question: Question) -> Resolution:
        """What is under the name, without SOA; SERVFAIL for a name error that a complete state might take back."""
        resolution = self._look_up(question)
        if resolution.response.rcode == NXDOMAIN and not self._state.synced:
            return not_ready(resolution.facts)
        return resolution

    def _look_up(self, question: Question) -> Resolution:
        query, origin = question.query, question.origin
        labels = query.qname[: len(query.qname) - len(origin.name)]
        if query.qtype == _SOA:  # CoreDNS looks at no other name than the apex, so none is an error
            return no_data() if labels else self._apex_soa(question)
        if query.qtype == _PTR and (address := reverse_address(query.qname)) is not None:
            return self._reverse.respond(address)
        name = parse(labels, origin.multicluster, self._settings.zonal)
        if isinstance(name, Fixed):
            return self._fixed(name, question)
        if name is None or origin.reverse:
            return name_error()
        if isinstance(name, (ServiceName, ZonalName)):
            return self._services.respond(name, question)
        if isinstance(name, PodName):
            return self._pods.respond(name, question)
        return self._namespace(name, query.qtype)

    def _fixed(self, name: Fixed, question: Question) -> Resolution:
        qtype = question.query.qtype
        if name is Fixed.DNS_VERSION:
            return found((), (_VERSION,)) if qtype == RRType.TXT else name_error()
        if name is Fixed.NS_DNS:
            return self._primary(question)
        if name is Fixed.APEX and qtype == RRType.NS:
            return self._servers.name_servers(question)
        return _bare(qtype)

    def _primary(self, question: Question) -> Resolution:
        """`ns.dns`, which CoreDNS denies where it looks for the name among Services and Pods."""
        qtype = question.query.qtype
        if qtype in FAMILY_OF_TYPE:
            return self._servers.addresses(question)
        return name_error() if qtype in (RRType.TXT, _PTR) else no_data()

    def _namespace(self, node: NamespaceNode, qtype: int) -> Resolution:
        exists = self._pods.serves(node) if node.pods else self._exposure.exposes(node.namespace)
        resolution = _bare(qtype) if exists else name_error()
        resolution.facts = (namespace_fact(node.namespace),)
        return resolution

    def _apex_soa(self, question: Question) -> Resolution:
        """Never kept, since its serial tells of the last change to anything."""
        resolution = found((), (self._soa(question),))
        resolution.scope = Scope.CLIENT
        return resolution

    def _falls_through(self, query: Query) -> bool:
        origins = self._settings.fallthrough
        return bool(origins) and any(is_subdomain(query.qname, origin) for origin in origins)

    def _soa(self, question: Question, miss: bool = False) -> RRset:
        """The SOA for the end of the query's name, or, of a topology miss, one that is forgotten within seconds."""
        ttl = self._settings.ttl
        return soa_rrset(question.origin_wire, self._state.serial, min(ttl, MAX_MISS_TTL) if miss else ttl)


def _bare(qtype: int) -> Resolution:
    """A name that exists without records: NODATA, except that CoreDNS denies it to whoever asks for TXT."""
    return name_error() if qtype == RRType.TXT else no_data()
