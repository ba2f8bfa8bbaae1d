"""The `autopath` directive: goes through a client's search list here, so that `example.com` costs it one round trip.

A name under the list's first domain that does not exist is tried under the other domains, and bare, in order; each try
goes through all the steps below, `acl` among them. What is found is given under a CNAME from the name that was asked.

The list of a Pod begins with its own namespace, and a DNS query does not say whose it is. CoreDNS looks the source
address up among all Pods. Here the name is enough where it can only have come from a search list: in
`example.com.shop.svc.cluster.local` two labels or more stand in front of a namespace that exists, and the one next to
it is no Service in it (else this were an endpoint or a port of that). No Pod has to be watched, it works behind a node
cache, an address that changes hands misleads nobody, and everyone gets the same answer. It gives away nothing, since
the client could have asked for each of the names tried. And it takes nobody to another namespace than the search list
of a Pod there would; only who means `NAME.NAMESPACE`, where there is no such thing, may get a NAME of two labels that
there is.

What differs from CoreDNS: whoever asks for such a name, from whatever namespace or by hand, gets the CNAME where
CoreDNS says NXDOMAIN to all but the Pods there. For other names, such as `web.shop.svc.cluster.local` without such a
Service, it matters who asks: clients that a watch of Pods shows to be in that namespace get what CoreDNS gives them,
all others NXDOMAIN.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from topodns.cluster.model import ObjectKey, namespace_fact, service_fact
from topodns.cluster.state import ClusterState
from topodns.dns.message import Query, Rcode, RRClass, RRset, RRType
from topodns.dns.names import MAX_WIRE, ROOT, Name, is_subdomain, name_wire
from topodns.resolve.chase import owned
from topodns.resolve.course import Course
from topodns.resolve.exposure import Exposure
from topodns.resolve.grounds import rest_on
from topodns.resolve.origins import Origins
from topodns.resolve.part_counts import AutopathCounts
from topodns.resolve.step import Answered, Below, Client, Resolution, Scope, settled
from topodns.resolve.verdict import Facts
from topodns.settings.autopath import Autopath
from topodns.settings.kubernetes import KubernetesSettings

_NXDOMAIN, _SERVFAIL, _IN = int(Rcode.NXDOMAIN), int(Rcode.SERVFAIL), int(RRClass.IN)


Domains = tuple[tuple[Name, bytes], ...]
"""Names with their wire form, in the order in which they are tried; the root stands for the bare name."""


class SearchList(NamedTuple):
    """Where else to look for a name that does not exist. `facts` and `scope`: why there, and for whom that is so."""

    labels: int  # how many of the name's are the client's own, in front of the list's first domain
    others: Domains  # none: nowhere
    facts: Facts = ()
    scope: Scope = Scope.EVERYONE


class Searcher(Protocol):
    def covers(self, qname: Name) -> bool:
        """Whether the name may be one of a search list. Asked for every query."""

    def search_list(self, qname: Name, client: Client) -> SearchList:
        """The list of whoever asked for this name, which is covered and does not exist."""


class FixedSearch:
    """One list for everyone: that of a file."""

    def __init__(self, domains: tuple[Name, ...]) -> None:
        self._first = domains[0]
        self._others = _once_each(*domains[1:], ROOT)

    def covers(self, qname: Name) -> bool:
        return len(qname) > len(self._first) and is_subdomain(qname, self._first)

    def search_list(self, qname: Name, client: Client) -> SearchList:
        return SearchList(len(qname) - len(self._first), self._others)


class ClusterSearch:
    """The lists of Pods: `NAMESPACE.svc.ORIGIN svc.ORIGIN ORIGIN` and `host_domains`."""

    def __init__(self, settings: KubernetesSettings, state: ClusterState, host_domains: tuple[Name, ...]) -> None:
        self._origins = Origins(settings.origins, settings.multicluster)
        self._exposure = Exposure(settings, state)
        self._state = state
        self._others: Mapping[Name, Domains] = {
            origin: _once_each(("svc", *origin), origin, *host_domains, ROOT) for origin in settings.origins
        }
        self._knows_pods = "Pod" in state.needed

    def covers(self, qname: Name) -> bool:
        origin = self._origins.match(qname)
        if origin is None or origin.reverse or origin.multicluster:
            return False
        at = len(qname) - len(origin.name) - 1  # of `svc`
        return at >= 2 and qname[at] == "svc"

    def search_list(self, qname: Name, client: Client) -> SearchList:
        origin = self._origins.match(qname)
        assert origin is not None
        at = len(qname) - len(origin.name) - 2  # of the namespace
        namespace, nearest = qname[at], qname[at - 1]
        facts = (namespace_fact(namespace), service_fact(namespace, nearest))
        others = self._others[origin.name]
        if at >= 2 and self._exposure.exposes(namespace) and self._state.service(ObjectKey(namespace, nearest)) is None:
            return SearchList(at, others, facts)
        if not self._knows_pods:
            return SearchList(at, (), facts)
        return SearchList(at, others if self._is_in(client, namespace) else (), facts, Scope.CLIENT)

    def _is_in(self, client: Client, namespace: str) -> bool:
        """Whether all Pods at the client's address, which are none on the host's network, are in this namespace."""
        pods = self._state.pods_with_address(client.address)
        return {pod.namespace for pod in pods} == {namespace} and not any(pod.host_network for pod in pods)


def _once_each(*domains: Name) -> Domains:
    return tuple((domain, name_wire(domain)) for domain in dict.fromkeys(domains))


class SearchPath:
    """The around of one `autopath` directive."""

    def __init__(self, settings: Autopath, searcher: Searcher, counts: AutopathCounts | None = None) -> None:
        self.counts = counts or AutopathCounts()
        self._origins = settings.origins
        self._everywhere = ROOT in settings.origins
        self._searcher = searcher

    def __call__(self, query: Query, client: Client, below: Below) -> Answered:
        """The first answer that is no NXDOMAIN; where there is none, the answer to the name itself."""
        answered = below(query, client)
        qname = query.qname
        if not self._searcher.covers(qname) or query.qclass != _IN:
            return answered
        if not self._everywhere and not any(is_subdomain(qname, origin) for origin in self._origins):
            return answered
        if isinstance(answered, Resolution):
            return self._search(answered, query, client, below)
        return self._search_later(answered, query, client, below)

    async def _search_later(self, course: Course[Resolution], query: Query, client: Client, below: Below) -> Resolution:
        return await settled(self._search(await course, query, client, below))

    def _search(self, first: Resolution, query: Query, client: Client, below: Below) -> Answered:
        if first.response.rcode != _NXDOMAIN:
            return first
        search = self._searcher.search_list(query.qname, client)
        rest_on(first, search.facts, search.scope)
        return _Search(self.counts, first, _tries(query, search), client, below).go_on()


def _tries(query: Query, search: SearchList) -> Iterator[Query]:
    """The query under each of the other domains; the client's labels as it spelled them."""
    labels = query.qname[: search.labels]
    spelled = query.spelling[: sum(map(len, labels)) + len(labels)]
    _, _, _, _, qtype, qclass, edns, size = query
    for domain, wire in search.others:
        if len(spelled) + len(wire) <= MAX_WIRE:
            yield Query(query.id, query.flags, labels + domain, spelled + wire, qtype, qclass, edns, size)


class _Search:
    """One walk along a list."""

    __slots__ = ("_below", "_client", "_counts", "_first", "_tries")

    def __init__(
        self, counts: AutopathCounts, first: Resolution, tries: Iterator[Query], client: Client, below: Below
    ) -> None:
        self._counts = counts
        self._first = first  # gathers what all answers so far rest on
        self._tries = tries
        self._client = client
        self._below = below

    def go_on(self) -> Answered:
        for query in self._tries:
            answered = self._below(query, self._client)
            if not isinstance(answered, Resolution):
                return self._wait(answered, query)
            if self._is_found(answered):
                return self._renamed(answered, query)
        return self._first

    async def _wait(self, course: Course[Resolution], query: Query) -> Resolution:
        resolution = await course
        if self._is_found(resolution):
            return self._renamed(resolution, query)
        return await settled(self.go_on())

    def _is_found(self, resolution: Resolution) -> bool:
        """What no step below wanted to answer (SERVFAIL of no plugin) is not, though CoreDNS ends there."""
        rcode = resolution.response.rcode
        if rcode != _NXDOMAIN and (rcode != _SERVFAIL or resolution.plugin):
            return True
        rest_on(self._first, resolution.facts, resolution.scope, resolution.valid_until)
        return False

    def _renamed(self, resolution: Resolution, query: Query) -> Resolution:
        """What was found for `query`, as the answer to the name that the client asked for."""
        self._counts.successes += 1
        first, response = self._first, resolution.response
        rest_on(resolution, first.facts, first.scope, first.valid_until)
        response.answer = owned(response.answer, query.spelling)
        response.authority = owned(response.authority, query.spelling)
        response.additional = owned(response.additional, query.spelling)
        if response.answer:
            head = response.answer[0]
            response.answer = (RRset(b"", RRType.CNAME, head.ttl, (head.owner,)), *response.answer)
        return resolution
