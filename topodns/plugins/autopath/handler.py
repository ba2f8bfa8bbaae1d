"""The `autopath` directive: goes through a client's search list here, so that `example.com` costs it one round trip.

A name under the list's first domain that does not exist is tried under the other domains, and bare, in order; each try
goes through all the steps below, `acl` among them. What is found is given under a CNAME from the name that was asked.

Whose list it is `search_list` tells from the name. What differs from CoreDNS: whoever asks for such a name, from
whatever namespace or by hand, gets the CNAME where CoreDNS says NXDOMAIN to all but the Pods there. For other names,
such as `web.shop.svc.cluster.local` without such a Service, it matters who asks: clients that a watch of Pods shows to
be in that namespace get what CoreDNS gives them, all others NXDOMAIN.
"""

from collections.abc import Callable, Iterator
from typing import Final

from topodns.dns.message import Flag, Query, Rcode, RRClass, RRset, RRType
from topodns.dns.names import MAX_WIRE, ROOT, is_subdomain, name_wire
from topodns.resolve.chase import owned
from topodns.resolve.course import Course
from topodns.resolve.grounds import rest_on
from topodns.resolve.part_counts import AutopathCounts
from topodns.resolve.search_list import Premise, Searcher, SearchList
from topodns.resolve.step import Answered, Below, Client, Resolution, settled
from topodns.settings.autopath import Autopath

_NXDOMAIN, _IN = int(Rcode.NXDOMAIN), int(RRClass.IN)
_FAILURES: Final = frozenset({int(Rcode.SERVFAIL), int(Rcode.REFUSED)})

Asking = Callable[[Query, Client, Below], Answered]
"""Asks for a name on the way, whose block need not be this one; `below` are the steps of this one."""


def ask_below(query: Query, client: Client, below: Below) -> Answered:
    """Every name of the list is for the steps of this block, as in CoreDNS."""
    return below(query, client)


class SearchPath:
    """The around of one `autopath` directive."""

    def __init__(
        self,
        settings: Autopath,
        searcher: Searcher,
        counts: AutopathCounts | None = None,
        asking: Asking = ask_below,
    ) -> None:
        self.counts = counts or AutopathCounts()
        self._origins = settings.origins
        self._everywhere = ROOT in settings.origins
        self._searcher = searcher
        self._asking = asking

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
        if not search.others:
            return first
        return _Search(self.counts, first, query, search, lambda asked: self._asking(asked, client, below)).go_on()


def _questions(query: Query, search: SearchList) -> Iterator[tuple[Query, Premise | None]]:
    """What is to be asked in turn: for the premises, then for the query under each of the other domains.

    There the client's labels are as it spelled them.
    """
    for premise in search.premises:
        name = premise.name
        yield Query(0, Flag.RD, name, name_wire(name), RRType.A, RRClass.IN, None, 0), premise
    labels = query.qname[: search.labels]
    spelled = query.spelling[: sum(map(len, labels)) + len(labels)]
    _, _, _, _, qtype, qclass, edns, size = query
    for domain, wire in search.others:
        if len(spelled) + len(wire) <= MAX_WIRE:
            yield Query(query.id, query.flags, labels + domain, spelled + wire, qtype, qclass, edns, size), None


class _Search:
    """One walk along a list."""

    __slots__ = ("_ask", "_counts", "_first", "_questions")

    def __init__(
        self,
        counts: AutopathCounts,
        first: Resolution,
        query: Query,
        search: SearchList,
        ask: Callable[[Query], Answered],
    ) -> None:
        self._counts = counts
        self._first = first  # gathers what all answers so far rest on
        self._questions = _questions(query, search)
        self._ask = ask

    def go_on(self) -> Answered:
        for query, premise in self._questions:
            answered = self._ask(query)
            if not isinstance(answered, Resolution):
                return self._wait(answered, query, premise)
            if (ended := self._end(answered, query, premise)) is not None:
                return ended
        return self._first

    async def _wait(self, course: Course[Resolution], query: Query, premise: Premise | None) -> Resolution:
        ended = self._end(await course, query, premise)
        return await settled(self.go_on()) if ended is None else ended

    def _end(self, resolution: Resolution, query: Query, premise: Premise | None) -> Resolution | None:
        """What the client gets, None where the walk goes on."""
        if premise is None:
            return self._renamed(resolution, query) if self._is_found(resolution) else None
        rest_on(self._first, resolution.facts, resolution.scope, resolution.valid_until)
        return None if resolution.response.rcode == premise.rcode else self._first

    def _is_found(self, resolution: Resolution) -> bool:
        """What no step wanted to answer (a failure of no plugin) is not, though CoreDNS ends there."""
        rcode = resolution.response.rcode
        if rcode != _NXDOMAIN and (rcode not in _FAILURES or resolution.plugin):
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
