"""The search list that a name comes from, and the other domains on it, for `autopath`.

The list of a Pod begins with `NAMESPACE.svc.ZONE`, and a DNS query does not identify its Pod. CoreDNS looks the source
address up among all Pods, and so does `ClusterSearch` where Pods are watched. Where they are not, the name is enough if
it can only come from a search list: in `example.com.shop.svc.cluster.local` two labels or more precede an existing
namespace, and the label next to it is no Service there (else this would be an endpoint or a port of that Service).
That works behind a node cache, too, and all clients get the same answer.

The name of an endpoint or a port must never lead outside while its Service is gone:
`app-0.app.shop.svc.cluster.local` would become `app-0.app.`, in a domain that anybody may register. A Pod that queries
`app-0.app` and means the name outside walks its list itself.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from topodns.cluster.model import ObjectKey
from topodns.cluster.state import ClusterState
from topodns.dependency import Fact, namespace_fact, service_fact
from topodns.dns.name import ROOT, Name, is_subdomain, name_wire
from topodns.dns.rrtype import Rcode
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.zone import Origins, exposes
from topodns.query.plugin import Client, Scope

# Labels of endpoints: of a StatefulSet's Pods (`db-0`), and of those without a hostname (`10-0-0-7`, `fd00-10--a`).
_ENDPOINT: Final = re.compile(r".*-[0-9]+|[0-9a-f]{0,4}(-[0-9a-f]{0,4}){2,7}")

Domains = tuple[tuple[Name, bytes], ...]
"""Names with their wire form, in the order of the tries; the root means the bare name."""


class Premise(NamedTuple):
    """A condition for a list to be the right one: the answer to an A query for this name has this rcode."""

    name: Name
    rcode: int


class SearchList(NamedTuple):
    """The other domains for a nonexistent name, with the dependencies of this list and the clients that share it."""

    labels: int  # number of the name's labels that are the client's own, before the list's first domain
    others: Domains  # empty: no search
    facts: tuple[Fact, ...] = ()
    scope: Scope = Scope.EVERYONE
    premises: tuple[Premise, ...] = ()  # in the order of their queries


class Searcher(Protocol):
    def covers(self, qname: Name) -> bool:
        """Whether the name may come from a search list. Called for every query."""

    def search_list(self, qname: Name, client: Client) -> SearchList:
        """The list that this name comes from. Only for a name that `covers` accepts and that got NXDOMAIN."""


class FixedSearch:
    """One list for all clients: that of a file."""

    def __init__(self, domains: tuple[Name, ...]) -> None:
        self._first = domains[0]
        self._others = _once_each(*domains[1:], ROOT)

    def covers(self, qname: Name) -> bool:
        return len(qname) > len(self._first) and is_subdomain(qname, self._first)

    def search_list(self, qname: Name, client: Client) -> SearchList:
        return SearchList(len(qname) - len(self._first), self._others)


class DistantClusterSearch:
    """The lists of Pods of a cluster that is not watched: the answers of its DNS are the premises.

    A cluster's DNS answers `NAMESPACE.svc.ORIGIN` with NODATA if the namespace exists, else with NXDOMAIN: so
    `www.example.com.svc.cluster.local`, which a Pod queries after its first query was lost, does not become
    `www.example.`. NXDOMAIN for the label next to the namespace means that it is no Service, or a headless one without
    a ready endpoint, which DNS cannot distinguish. Names below such a Service are recognised by their shape.

    One label before the namespace is never searched for: `redis.data.svc.cluster.local` is the usual name of a Service
    in another namespace, and cannot be distinguished from `redis` queried by a Pod of `data`.
    """

    def __init__(self, origins: tuple[Name, ...], host_domains: tuple[Name, ...]) -> None:
        self._others = {origin: behind_namespace(origin, host_domains) for origin in origins}
        self._depths = sorted({len(origin) for origin in origins}, reverse=True)

    def covers(self, qname: Name) -> bool:
        for depth in self._depths:
            if qname[-depth:] in self._others:
                at = len(qname) - depth - 1  # of `svc`
                return at >= 3 and qname[at] == "svc"
        return False

    def search_list(self, qname: Name, client: Client) -> SearchList:
        origin = next(qname[-depth:] for depth in self._depths if qname[-depth:] in self._others)
        at = len(qname) - len(origin) - 2  # of the namespace
        # The target of a CNAME comes from no search list, and each search may lead to further CNAMEs.
        if client.depth or may_be_of_service(qname[:at]):
            return SearchList(at, ())
        premises = (Premise(qname[at:], Rcode.NOERROR), Premise(qname[at - 1 :], Rcode.NXDOMAIN))
        return SearchList(at, self._others[origin], premises=premises)


def may_be_of_service(labels: Name) -> bool:
    """Whether these labels before a namespace may be an endpoint or a port of a Service that is gone for now.

    No variant of `autopath` searches for such names. False for an endpoint whose `hostname` is unlike a StatefulSet's
    (`primary.db`): it cannot be distinguished from a name outside.
    """
    if any(label.startswith("_") for label in labels):
        return True
    return len(labels) == 2 and _ENDPOINT.fullmatch(labels[0]) is not None


def behind_namespace(origin: Name, host_domains: tuple[Name, ...]) -> Domains:
    """The domains after `NAMESPACE.svc.ORIGIN` on a Pod's list, the root at the end, each once.

    `host_domains`: the search list of the Pod's Node.
    """
    return _once_each(("svc", *origin), origin, *host_domains, ROOT)


def _once_each(*domains: Name) -> Domains:
    return tuple((domain, name_wire(domain)) for domain in dict.fromkeys(domains))


class ClusterSearch:
    """The lists of Pods: `NAMESPACE.svc.ORIGIN svc.ORIGIN ORIGIN` and `host_domains`.

    While Pods are known, a client's list is that of its Pod's namespace, and a client that is no Pod has none, as in
    CoreDNS. While they are unknown, because nothing needs them or RBAC denies them, the name determines the list.
    """

    def __init__(self, settings: KubernetesSettings, state: ClusterState, host_domains: tuple[Name, ...]) -> None:
        self._origins = Origins(settings.origins, settings.multicluster)
        self._settings = settings
        self._state = state
        self._others: Mapping[Name, Domains] = {
            origin: behind_namespace(origin, host_domains) for origin in settings.origins
        }

    def covers(self, qname: Name) -> bool:
        origin = self._origins.match(qname)
        if origin is None or origin.reverse or origin.multicluster:
            return False
        at = len(qname) - len(origin.name) - 1  # of `svc`
        return at >= 2 and qname[at] == "svc"

    def search_list(self, qname: Name, client: Client) -> SearchList:
        """The list, without other domains where no search is to be made.

        That is for a name that may be a Service's own, whether the Service exists or not, for the target of a CNAME,
        and for a client or namespace that has no such list.
        """
        origin = self._origins.match(qname)
        assert origin is not None
        at = len(qname) - len(origin.name) - 2  # of the namespace
        namespace, nearest = qname[at], qname[at - 1]
        facts = (namespace_fact(namespace), service_fact(namespace, nearest))
        if client.depth or may_be_of_service(qname[:at]) or self._state.service(ObjectKey(namespace, nearest)):
            return SearchList(at, (), facts)
        others = self._others[origin.name]
        if "Pod" in self._state.known:
            own = own_namespace(self._state, client.address) == namespace
            return SearchList(at, others if own else (), facts, Scope.NODE)
        return SearchList(at, others if at > 1 and exposes(self._settings, self._state, namespace) else (), facts)


def own_namespace(state: ClusterState, address: bytes) -> str:
    """The namespace of the Pods with this packed address.

    "" if no Pod has it, if its Pods are in several namespaces, or if one of them shares the address of its Node.
    Clients with different results share no cached replies: see `plugins.setup.BlockSetup.vary_by`.
    """
    pods = state.pods_with_address(address)
    namespaces = {pod.namespace for pod in pods}
    return namespaces.pop() if len(namespaces) == 1 and not any(pod.host_network for pod in pods) else ""
