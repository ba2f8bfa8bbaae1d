"""The `kubernetes` plugin of a server block: answers every name under its origins as CoreDNS's plugin does.

Differences, on purpose: clients of a headless Service with a topology policy get the endpoints of their topology
domain; while watches are incomplete a name that seems not to exist is SERVFAIL even where `fallthrough` applies, so
that no other server is queried for a name that may be in the cluster; NS at the apex ignores the query's case (RFC
4343); a name that has records of some type, or names below it, is NODATA for all other types, where CoreDNS has
NXDOMAIN for some (RFC 8020).
"""

from typing import Final

from topodns.dependency import namespace_fact
from topodns.dns.message import Edns, Query, RRset
from topodns.dns.name import Name, is_below_any, is_part_of_reverse, is_subdomain, name_wire, reverse_address
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.soa import soa_rrset
from topodns.plugins.kubernetes import nameservers, pods, reverse, services
from topodns.plugins.kubernetes.endpoints import FAMILY_OF_TYPE
from topodns.plugins.kubernetes.namespaces import exposes
from topodns.plugins.kubernetes.not_ready import confirmed
from topodns.plugins.kubernetes.parse import (
    SCHEMA_VERSION,
    Fixed,
    NamespaceNode,
    PodName,
    ServiceName,
    ZonalName,
    parse,
)
from topodns.plugins.kubernetes.records import found, name_error, no_data
from topodns.plugins.kubernetes.topology_filter import MAX_MISS_TTL, is_miss
from topodns.plugins.kubernetes.zone import KubernetesZone, ZoneQuestion, question_of
from topodns.query.client_claim import ecs_reply, read_claim
from topodns.query.cname import follow_each, owned
from topodns.query.deferred import Deferred, Outcome
from topodns.query.plugin import Answered, Client, FellThrough, Resolution, Scope, Stepped

_MAX_CNAMES: Final = 11  # followed in a row, as CoreDNS: its limit of 10 does not count the last one
_VERSION: Final = RRset(
    b"",
    RRType.TXT,
    28800,  # seconds, whatever `ttl` says (CoreDNS)
    (bytes((len(SCHEMA_VERSION),)) + SCHEMA_VERSION.encode(),),
)


class ClusterZone:
    """Answers under the origins of one `kubernetes` directive."""

    __slots__ = ("kubernetes",)

    def __init__(self, kubernetes: KubernetesZone) -> None:
        self.kubernetes = kubernetes

    def __call__(self, query: Query, client: Client) -> Stepped | Deferred[Stepped]:
        """The resolution of a query under one of the origins, or FellThrough by `fallthrough`; None for all others.

        Deferred if it waits for the client's Pod (`pod_wait`) or for the target of a CNAME.
        """
        kubernetes, qname = self.kubernetes, query.qname
        origins, labels = kubernetes.origins.by_name, len(qname)
        for size in kubernetes.origins.sizes:  # as `Origins.match`: each query that misses the packet cache comes here
            if size <= labels and (origin := origins.get(qname[labels - size :])) is not None:
                break
        else:
            return None
        question = ZoneQuestion(query, client, origin, query.spelling[-len(origin.wire) :])
        resolution = _respond(kubernetes, question)
        location = resolution.location
        if location is not None and not location.node_name and kubernetes.pod_wait is not None:
            arrival = kubernetes.pod_wait.wait(client.address)
            if arrival is not None:
                return _respond_after(kubernetes, arrival, question)
        return _completed(kubernetes, question, resolution)


async def _respond_after(kubernetes: KubernetesZone, arrival: Outcome[None], question: ZoneQuestion) -> Stepped:
    await arrival
    completed = _completed(kubernetes, question, _respond(kubernetes, question))
    return completed if isinstance(completed, Resolution | FellThrough) else await completed


def _completed(kubernetes: KubernetesZone, question: ZoneQuestion, resolution: Resolution) -> Answered | FellThrough:
    """The resolution with its EDNS options, and with the records of its CNAME's target outside the origin.

    Without records it gets the SOA, but not with REFUSED. For NXDOMAIN under `fallthrough`, FellThrough instead.
    """
    query, response = question.query, resolution.response
    if not response.answer:
        if response.rcode == Rcode.NXDOMAIN and kubernetes.settings.fallthrough and _falls_through(kubernetes, query):
            return FellThrough(resolution.facts)
        if response.rcode != Rcode.REFUSED:
            response.authority = (_soa(kubernetes, question, is_miss(resolution)),)
    if query.edns is not None and query.edns.options:
        _echo_subnet(kubernetes, query.edns, question.client, resolution)
    if resolution.chase:
        return follow_each(resolution.chase, resolution, query, question.client, kubernetes.chase)
    return resolution


def _echo_subnet(kubernetes: KubernetesZone, edns: Edns, client: Client, resolution: Resolution) -> None:
    """Repeat a trusted Client Subnet, with the prefix length that the answer is for (RFC 7871 section 7.2.1).

    That is 0 where the client's location did not matter or was not found by this subnet. Raises BadOption, which is
    FORMERR, for a malformed one, whatever the name.
    """
    if kubernetes.locator is None or not kubernetes.locator.claims.trusts(client.address):
        return
    read_claim(edns)
    location = resolution.location
    used = location.prefix_length if location is not None and location.method == "ecs" else 0
    echoed = ecs_reply(edns, used)
    if echoed is not None:
        resolution.response.options = (*resolution.response.options, echoed)


def _respond(kubernetes: KubernetesZone, question: ZoneQuestion) -> Resolution:
    """The answer without SOA, with the records of the CNAMEs' targets under the same origin.

    SERVFAIL instead of NXDOMAIN while the state is incomplete.
    """
    resolution = _look_up(kubernetes, question)
    if resolution.response.rcode == Rcode.NXDOMAIN:
        return confirmed(resolution, kubernetes.state)
    for target in resolution.chase:
        if is_subdomain(target, question.origin.name) and resolution.response.rcode == Rcode.NOERROR:
            resolution = _follow_inside(kubernetes, question, target, resolution)
    return resolution


def _look_up(kubernetes: KubernetesZone, question: ZoneQuestion) -> Resolution:
    query, origin = question.query, question.origin
    labels = query.qname[: len(query.qname) - len(origin.name)]
    if query.qtype == RRType.SOA:  # CoreDNS answers SOA queries at the apex only, and none with NXDOMAIN
        return no_data() if labels else nameservers.apex_soa(_soa(kubernetes, question))
    may_be_reverse = origin.reverse or query.qtype == RRType.PTR or not origin.name
    if may_be_reverse and (address := reverse_address(query.qname)) is not None:
        return reverse.respond(kubernetes, address, query.qtype)
    name = parse(labels, origin.multicluster, kubernetes.settings.zonal)
    if name is None or (origin.reverse and not isinstance(name, Fixed)):
        return no_data() if may_be_reverse and _is_above_addresses(kubernetes, query) else name_error()
    if isinstance(name, (ServiceName, ZonalName)):
        return services.respond(kubernetes, name, question)
    if isinstance(name, PodName):
        return pods.respond(kubernetes, name, question)
    return _fixed(kubernetes, name, question) if isinstance(name, Fixed) else _namespace(kubernetes, name)


def _fixed(kubernetes: KubernetesZone, name: Fixed, question: ZoneQuestion) -> Resolution:
    qtype = question.query.qtype
    if name is Fixed.DNS_VERSION and qtype == RRType.TXT:
        return found((), (_VERSION,))
    if name is Fixed.NS_DNS and qtype in FAMILY_OF_TYPE:
        return nameservers.server_addresses(kubernetes, question)
    if name is Fixed.APEX and qtype == RRType.NS:
        return nameservers.name_servers(kubernetes, question)
    return no_data()


def _namespace(kubernetes: KubernetesZone, node: NamespaceNode) -> Resolution:
    exists = (
        pods.serves(kubernetes, node) if node.pods else exposes(kubernetes.settings, kubernetes.state, node.namespace)
    )
    facts = (namespace_fact(node.namespace),)
    return no_data(facts) if exists else name_error(facts)


def _follow_inside(kubernetes: KubernetesZone, question: ZoneQuestion, target: Name, alias: Resolution) -> Resolution:
    """`alias`, an answer with a CNAME to `target`, with the records of that under the same origin.

    Without the CNAME if those do not exist (CoreDNS), and for the whole of a loop or of a chain of more than
    _MAX_CNAMES; SERVFAIL if the target's answer is.
    """
    query = question.query
    seen = (*question.seen, query.qname)
    alias.chase = tuple(each for each in alias.chase if each != target)
    if target in seen or len(seen) > _MAX_CNAMES:
        alias.response.answer = _without_cname(alias.response.answer, target)
        return alias
    following = query._replace(qname=target, spelling=name_wire(target))
    resolution = _respond(kubernetes, question_of(following, question.client, question.origin, seen))
    response = resolution.response
    resolution.facts = (*alias.facts, *resolution.facts)
    if alias.scope is not Scope.EVERYONE:  # addresses beside the CNAME that a topology policy has chosen
        resolution.scope, resolution.location = Scope.CLIENT, alias.location
    if response.rcode == Rcode.NXDOMAIN:
        response.rcode = Rcode.NOERROR
    if response.rcode != Rcode.NOERROR:
        return resolution
    resolution.chase = (*alias.chase, *resolution.chase)
    if response.answer:
        response.answer = (*alias.response.answer, *owned(response.answer, following.spelling))
    else:
        response.answer = _without_cname(alias.response.answer, target)
    return resolution


def _without_cname(answer: tuple[RRset, ...], target: Name) -> tuple[RRset, ...]:
    """The answer without the CNAME record from the name queried to `target`."""
    wire = name_wire(target)
    left = (
        rrset._replace(rdatas=tuple(rdata for rdata in rrset.rdatas if rdata != wire))
        if rrset.rtype == RRType.CNAME and not rrset.owner
        else rrset
        for rrset in answer
    )
    return tuple(rrset for rrset in left if rrset.rdatas)


def _is_above_addresses(kubernetes: KubernetesZone, query: Query) -> bool:
    """Whether reverse names of addresses may be below this one, which NXDOMAIN would deny as well (RFC 8020).

    Such names get NODATA: right for empty non-terminals, harmless for names with nothing below; no index
    distinguishes them. With `fallthrough` the next plugin may know such a name.
    """
    return is_part_of_reverse(query.qname) and not _falls_through(kubernetes, query)


def _falls_through(kubernetes: KubernetesZone, query: Query) -> bool:
    return is_below_any(query.qname, kubernetes.settings.fallthrough)


def _soa(kubernetes: KubernetesZone, question: ZoneQuestion, miss: bool = False) -> RRset:
    """The SOA, owned by the origin in the query's spelling; with a TTL of a few seconds for a topology miss."""
    ttl = kubernetes.settings.ttl
    return soa_rrset(question.origin_wire, kubernetes.state.serial, min(ttl, MAX_MISS_TTL) if miss else ttl)
