"""The `autopath` plugin: the server tries the domains of a client's search list, so that the client need not.

With `ndots:5` a Pod that looks up `example.com` queries `example.com.NAMESPACE.svc.cluster.local` first, and without
this plugin three more names after it. If the first name does not exist, the plugin resolves `example.com` under the
other domains of the list in order, then `example.com` itself. Each try goes through all plugins below, such as `acl`.
The first answer that is not NXDOMAIN is returned, with a CNAME from the name queried in front of its records.

A `search_list.Searcher` decides which list applies to a query. If Pods are watched, it is that of the client's Pod, as
in CoreDNS, and clients that are no Pods have none. If Pods are not watched, CoreDNS searches for nothing; here the name
determines the list, so that every client gets the same answer. Names that may be below a Service are never searched
for, unlike in CoreDNS (`search_list.may_be_of_service`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from topodns.dns.message import Flag, Query, RRset
from topodns.dns.name import MAX_WIRE, ROOT, is_below_any, name_wire
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.plugins.autopath.search_list import Premise, Searcher, SearchList
from topodns.plugins.autopath.settings import Autopath
from topodns.query.cname import owned
from topodns.query.deferred import Deferred
from topodns.query.plugin import Answered, Below, Client, Resolution, Scope, rest_on, settled

_FAILURES: Final = frozenset({Rcode.SERVFAIL, Rcode.REFUSED})

Asking = Callable[[Query, Client, Below], Answered]
"""Resolves a name of the list, perhaps in another server block; `below` are the plugins of this one."""


def ask_below(query: Query, client: Client, below: Below) -> Answered:
    """Resolve a name of the list with the plugins of this server block, as CoreDNS does for every name."""
    return below(query, client)


@dataclass(slots=True)
class AutopathCounts:
    successes: int = 0  # names found through a later search domain; packet cache hits are not counted again


class SearchPath:
    """The plugin of one `autopath` directive, over the plugins below it."""

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
        """The answer for the name; if that is NXDOMAIN, the first with another rcode for a name of the search list.

        NXDOMAIN stays if the name comes from no search list (as far as its premises show), or if no name of the list
        exists.
        """
        answered = below(query, client)
        qname = query.qname
        if not self._searcher.covers(qname) or query.qclass != RRClass.IN:
            return answered
        if not self._everywhere and not is_below_any(qname, self._origins):
            return answered
        if isinstance(answered, Resolution):
            return self._search(answered, query, client, below)
        return self._search_later(answered, query, client, below)

    async def _search_later(
        self, deferred: Deferred[Resolution], query: Query, client: Client, below: Below
    ) -> Resolution:
        return await settled(self._search(await deferred, query, client, below))

    def _search(self, first: Resolution, query: Query, client: Client, below: Below) -> Answered:
        if first.response.rcode != Rcode.NXDOMAIN:
            return first
        search = self._searcher.search_list(query.qname, client)
        rest_on(first, search.facts, search.scope)
        if not search.others:
            return first
        return _Search(
            self.counts,
            first,
            query,
            search,
            lambda asked: self._asking(asked, client, below),
            lambda: self._searcher.search_list(query.qname, client) == search,
        ).go_on()


def _questions(query: Query, search: SearchList) -> Iterator[tuple[Query, Premise | None]]:
    """(query, premise) pairs in order: for the premises, then, with None, for the client's labels under other domains.

    The client's labels keep the upper and lower case of the client's query. Names that would be too long are left out.
    """
    for premise in search.premises:
        name = premise.name
        yield (
            Query(
                id=0,
                flags=Flag.RD,
                qname=name,
                spelling=name_wire(name),
                qtype=RRType.A,
                qclass=RRClass.IN,
                edns=None,
                size=0,
            ),
            premise,
        )
    labels = query.qname[: search.labels]
    spelled = query.spelling[: sum(map(len, labels)) + len(labels)]
    _, _, _, _, qtype, qclass, edns, size = query
    for domain, wire in search.others:
        if len(spelled) + len(wire) <= MAX_WIRE:
            yield (
                Query(
                    id=query.id,
                    flags=query.flags,
                    qname=labels + domain,
                    spelling=spelled + wire,
                    qtype=qtype,
                    qclass=qclass,
                    edns=edns,
                    size=size,
                ),
                None,
            )


class _Search:
    """One walk along a search list."""

    __slots__ = ("_ask", "_counts", "_first", "_holds", "_questions")

    def __init__(
        self,
        counts: AutopathCounts,
        first: Resolution,
        query: Query,
        search: SearchList,
        ask: Callable[[Query], Answered],
        holds: Callable[[], bool],
    ) -> None:
        self._counts = counts
        self._holds = holds  # whether the list is still that of the client
        self._first = first  # collects the dependencies of all answers so far
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

    async def _wait(self, deferred: Deferred[Resolution], query: Query, premise: Premise | None) -> Resolution:
        ended = self._end(await deferred, query, premise)
        resolution = await settled(self.go_on()) if ended is None else ended
        if not self._holds():  # the address belongs to another Pod by now, whose namespace must not share this answer
            resolution.scope = Scope.CLIENT
        return resolution

    def _end(self, resolution: Resolution, query: Query, premise: Premise | None) -> Resolution | None:
        """The answer for the client; None where the walk continues.

        A premise that does not hold ends the walk: the client gets the first answer, NXDOMAIN.
        """
        if premise is None:
            return self._renamed(resolution, query) if self._is_found(resolution) else None
        rest_on(self._first, resolution.facts, resolution.scope, resolution.valid_until)
        return None if resolution.response.rcode == premise.rcode else self._first

    def _is_found(self, resolution: Resolution) -> bool:
        """Whether the walk ends here. It goes on after NXDOMAIN, and after a failure where no plugin answered (CoreDNS
        ends there).

        If it goes on, the dependencies of `resolution` are added to the first answer.
        """
        rcode = resolution.response.rcode
        if rcode != Rcode.NXDOMAIN and (rcode not in _FAILURES or resolution.plugin):
            return True
        rest_on(self._first, resolution.facts, resolution.scope, resolution.valid_until)
        return False

    def _renamed(self, resolution: Resolution, query: Query) -> Resolution:
        """The answer found for `query`, under a CNAME from the name that the client queried; counts a success."""
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
