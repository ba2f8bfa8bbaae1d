"""Whose search list a name comes from, and what else stands on it: what `autopath` goes through.

The list of a Pod begins with its own namespace, and a DNS query does not say whose it is. CoreDNS looks the source
address up among all Pods. Here the name is enough where it can only have come from a search list: in
`example.com.shop.svc.cluster.local` two labels or more stand in front of a namespace that exists, and the one next to
it is no Service in it (else this were an endpoint or a port of that). No Pod has to be watched, it works behind a node
cache, an address that changes hands misleads nobody, and everyone gets the same answer. It gives away nothing, since
the client could have asked for each of the names tried. And it takes nobody to another namespace than the search list
of a Pod there would; only who means `NAME.NAMESPACE`, where there is no such thing, may get a NAME of two labels that
there is.
"""

import re
from typing import Final, NamedTuple, Protocol

from topodns.cluster.facts import Fact
from topodns.dns.message import Rcode
from topodns.dns.names import ROOT, Name, is_subdomain, name_wire
from topodns.resolve.step import Client, Scope

_NOERROR, _NXDOMAIN = int(Rcode.NOERROR), int(Rcode.NXDOMAIN)
# What StatefulSets call their Pods, and endpoints that have no name: `db-0`, `10-0-0-7`, `fd00-10--a`. What is
# two labels and begins so is an endpoint sooner than a name outside: while all of its Service are down,
# `app-0.app.shop.svc.cluster.local` must not become `app-0.app.`, which anybody may register.
_ENDPOINT: Final = re.compile(r".*-[0-9]+|[0-9a-f]{0,4}(-[0-9a-f]{0,4}){2,7}")

Domains = tuple[tuple[Name, bytes], ...]
"""Names with their wire form, in the order in which they are tried; the root stands for the bare name."""


class Premise(NamedTuple):
    """What must be so for a list to be the right one: that this name, asked for its address, gets this rcode."""

    name: Name
    rcode: int


class SearchList(NamedTuple):
    """Where else to look for a name that does not exist. `facts` and `scope`: why there, and for whom that is so."""

    labels: int  # how many of the name's are the client's own, in front of the list's first domain
    others: Domains  # none: nowhere
    facts: tuple[Fact, ...] = ()
    scope: Scope = Scope.EVERYONE
    premises: tuple[Premise, ...] = ()  # in the order in which they are asked


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


class DistantClusterSearch:
    """The lists of Pods where the cluster is not watched and its DNS is asked: what it says are the premises.

    It answers `NAMESPACE.svc.ORIGIN` without an address where there is such a namespace, and NXDOMAIN where not: so
    `www.example.com.svc.cluster.local`, which a Pod asks when its first question was lost, does not become
    `www.example.`. NXDOMAIN for the label next to the namespace means that it is no Service; or a headless one without
    a ready endpoint, which DNS does not tell from that. The names that such a one has are told by their shape.

    One label in front of the namespace is never searched: `redis.data.svc.cluster.local` is how everybody writes a
    Service of another namespace, and whether a Pod of `data` asked for `redis` is not to be seen.
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
        # A name that another name led to is nobody's search; and each search leads to others.
        if client.depth or _may_be_of_service(qname[:at]):
            return SearchList(at, ())
        premises = (Premise(qname[at:], _NOERROR), Premise(qname[at - 1 :], _NXDOMAIN))
        return SearchList(at, self._others[origin], premises=premises)


def _may_be_of_service(labels: Name) -> bool:
    """Whether these may be an endpoint or a port of a Service that has no endpoint now."""
    if any(label.startswith("_") for label in labels):
        return True
    return len(labels) == 2 and _ENDPOINT.fullmatch(labels[0]) is not None


def behind_namespace(origin: Name, host_domains: tuple[Name, ...]) -> Domains:
    """What stands behind a Pod's own namespace on its list; `host_domains` are those of its node."""
    return _once_each(("svc", *origin), origin, *host_domains, ROOT)


def _once_each(*domains: Name) -> Domains:
    return tuple((domain, name_wire(domain)) for domain in dict.fromkeys(domains))
