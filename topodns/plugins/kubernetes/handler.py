"""The `kubernetes` plugin of a server block: the cluster's answers as resolutions of queries under its origins.

While watches are incomplete a name that seems not to exist is SERVFAIL even where `fallthrough` applies, so that no
other server is queried for a name that may be in the cluster.
"""

from typing import Final, NamedTuple

from topodns.cluster.model import ObjectKey
from topodns.dependency import namespace_fact, node_fact, service_fact
from topodns.dns.message import Edns, Flag, Query, Response, RRset
from topodns.dns.name import Name, is_below_any, is_subdomain, name_wire
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.soa import soa_rrset
from topodns.plugins.kubernetes.answer import answer_query
from topodns.plugins.kubernetes.question import (
    Answer,
    Facts,
    Fixed,
    Missing,
    NameOrAddress,
    NamespaceNode,
    PodName,
    ServiceName,
    ZoneQuestion,
    ttl_now,
)
from topodns.plugins.kubernetes.zone import KubernetesZone, Origin
from topodns.query.client_claim import ecs_reply, read_claim
from topodns.query.cname import follow_each, owned
from topodns.query.deferred import Deferred, Outcome
from topodns.query.plugin import Answered, Client, FellThrough, Resolution, Scope, Stepped
from topodns.topology.select import MISSES, UNLOCATED_REASONS

PLUGIN: Final = "kubernetes"
MAX_MISS_TTL: Final = 5  # seconds that a topology miss may be cached: a Pod on the client's Node may start any moment

_MAX_CNAMES: Final = 11  # followed in a row, as CoreDNS: its limit of 10 does not count the last one


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
        asked = _Asked(kubernetes, query, client, origin)
        resolution = _respond(asked)
        location = resolution.location
        if location is not None and not location.node_name and kubernetes.pod_wait is not None:
            arrival = kubernetes.pod_wait.wait(client.address)
            if arrival is not None:
                return _respond_after(arrival, asked)
        return _completed(asked, resolution)


class _Asked(NamedTuple):
    """A query under one of the origins."""

    kubernetes: KubernetesZone
    query: Query
    client: Client
    origin: Origin
    seen: tuple[Name, ...] = ()  # names whose CNAMEs led here, the client's query first

    @property
    def origin_wire(self) -> bytes:
        """The origin in the query's spelling."""
        return self.query.spelling[-len(self.origin.wire) :]


async def _respond_after(arrival: Outcome[None], asked: _Asked) -> Stepped:
    await arrival
    completed = _completed(asked, _respond(asked))
    return completed if isinstance(completed, Resolution | FellThrough) else await completed


def _completed(asked: _Asked, resolution: Resolution) -> Answered | FellThrough:
    """The resolution with its EDNS options, and with the records of its CNAME's target outside the origin.

    Without records it gets the SOA, but not with REFUSED. For NXDOMAIN under `fallthrough`, FellThrough instead.
    """
    kubernetes, query, client = asked.kubernetes, asked.query, asked.client
    response = resolution.response
    if not response.answer:
        if response.rcode == Rcode.NXDOMAIN and is_below_any(query.qname, kubernetes.settings.fallthrough):
            return FellThrough(resolution.facts)
        if response.rcode != Rcode.REFUSED:
            response.authority = (_soa(kubernetes, asked.origin_wire, _is_miss(resolution)),)
    if query.edns is not None and query.edns.options:
        _echo_subnet(kubernetes, query.edns, client, resolution)
    if resolution.chase:
        return follow_each(resolution.chase, resolution, query, client, kubernetes.chase)
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


def _respond(asked: _Asked) -> Resolution:
    """The answer without SOA, with the records of the CNAMEs' targets under the same origin."""
    kubernetes, query, client, origin, _ = asked
    if query.qtype == RRType.SOA:
        return _apex_soa(asked)
    name, question, found = answer_query(kubernetes, query, client, origin)
    resolution = _resolution(kubernetes, name, question, found)
    if asked.seen or client.depth:
        resolution.chase = resolution.chase[:1]  # of an alias that an alias led to: all of each would be 16 ^ 11 names
    for target in resolution.chase:
        if is_subdomain(target, origin.name) and resolution.response.rcode == Rcode.NOERROR:
            resolution = _follow_inside(asked, target, resolution)
    return resolution


def _apex_soa(asked: _Asked) -> Resolution:
    """The answer to a query for an SOA: at the apex only, as CoreDNS, which answers none with NXDOMAIN.

    Never cached, since its serial is the time of the last change to any object.
    """
    if len(asked.query.qname) > len(asked.origin.name):
        return Resolution(Response(), PLUGIN)
    return Resolution(Response(answer=(_soa(asked.kubernetes, asked.origin_wire),)), PLUGIN, Scope.CLIENT)


def _resolution(kubernetes: KubernetesZone, name: NameOrAddress, question: ZoneQuestion, found: Answer) -> Resolution:
    """The resolution of this answer, with its dependencies and labels of metrics; without SOA."""
    resolution = resolution_of(found, question.qtype, ttl_now(kubernetes.settings.ttl, kubernetes.state), name)
    if found.selection is not None and isinstance(name, ServiceName):
        reason = found.selection.reason
        if reason in UNLOCATED_REASONS:
            resolution.prefix = kubernetes.limiters.prefix(question.address)
        if reason in MISSES:
            resolution.missed = kubernetes.limiters.service(ObjectKey(name.namespace, name.service))
    return resolution


def scope_and_facts(answer: Answer, name: NameOrAddress) -> tuple[Scope, Facts]:
    """(The clients that get the same answer to this name, all dependencies of the answer)."""
    facts = answer.facts
    if name is not None and not isinstance(name, (bytes, Fixed)):
        namespace = namespace_fact(name.namespace)
        if isinstance(name, (PodName, NamespaceNode)) or answer.missing is Missing.NAMESPACE:
            facts = (namespace, *facts)
        else:
            facts = (namespace, service_fact(name.namespace, name.service), *facts)
    location = answer.location
    if location is None:
        return Scope.EVERYONE, facts
    if location.node_name:
        facts = (*facts, node_fact(location.node_name))
    # A claim that is not trusted counts as well: the same octets from another source may be trusted.
    return Scope.CLIENT if answer.claimed else Scope.NODE, facts


def resolution_of(answer: Answer, qtype: int, cname_ttl: int, name: NameOrAddress = None) -> Resolution:
    """The resolution of the answer to this name with its records of this type.

    `cname_ttl`: seconds, of the CNAME records to its targets.
    """
    rcode, rdatas, ttl, additional, targets, selection, location, _, ede, _, _ = answer
    records: tuple[RRset, ...] = (RRset(b"", qtype, ttl, rdatas),) if rdatas else ()
    if targets:
        records += (RRset(b"", RRType.CNAME, cname_ttl, tuple(map(name_wire, targets))),)
    response = Response(rcode, records, (), additional, 0 if rcode == Rcode.REFUSED else Flag.AA, ede=ede)
    scope, facts = scope_and_facts(answer, name)
    return Resolution(
        response=response,
        plugin=PLUGIN,
        scope=scope,
        facts=facts,
        selection=selection,
        location=location,
        chase=targets,
    )


def _follow_inside(asked: _Asked, target: Name, alias: Resolution) -> Resolution:
    """`alias`, an answer with a CNAME to `target`, with the records of that under the same origin.

    Without the CNAME if those do not exist (CoreDNS), and for the whole of a loop or of a chain of more than
    _MAX_CNAMES; SERVFAIL if the target's answer is.
    """
    seen = (*asked.seen, asked.query.qname)
    alias.chase = tuple(each for each in alias.chase if each != target)
    if target in seen or len(seen) > _MAX_CNAMES:
        alias.response.answer = _without_cname(alias.response.answer, target)
        return alias
    following = asked.query._replace(qname=target, spelling=name_wire(target))
    resolution = _respond(asked._replace(query=following, seen=seen))
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


def _is_miss(resolution: Resolution) -> bool:
    """Whether endpoints are ready, but the policy left none for this client."""
    selection = resolution.selection
    return selection is not None and not resolution.response.answer and selection.reason in MISSES


def _soa(kubernetes: KubernetesZone, origin_wire: bytes, miss: bool = False) -> RRset:
    """The SOA, owned by the origin in the query's spelling; with a TTL of a few seconds for a topology miss."""
    ttl = ttl_now(kubernetes.settings.ttl, kubernetes.state)
    return soa_rrset(origin_wire, kubernetes.state.serial, min(ttl, MAX_MISS_TTL) if miss else ttl)
