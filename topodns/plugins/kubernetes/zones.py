"""The origins of one `kubernetes` directive, and a query relative to its origin."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from topodns.dns.message import Query
from topodns.dns.name import IN_ADDR_ARPA, IP6_ARPA, Name, is_subdomain, name_wire
from topodns.query.plugin import Client


class Origin(NamedTuple):
    name: Name
    wire: bytes  # lower-case
    reverse: bool  # in-addr.arpa, ip6.arpa or below them
    multicluster: bool  # serves ServiceImports


class ZoneQuestion(NamedTuple):
    """A query under `origin`. `origin_wire` is the origin in the query's spelling, which answers repeat."""

    query: Query
    client: Client
    origin: Origin
    origin_wire: bytes
    seen: tuple[Name, ...] = ()  # names whose CNAMEs led here, the client's query first


class Origins:
    """`names` in the order of the Corefile; at least one of them is a forward origin."""

    def __init__(self, names: Sequence[Name], multicluster: Sequence[Name] = ()) -> None:
        self._by_name: Final = {name: _origin(name, multicluster) for name in names}
        self._sizes: Final = sorted({len(name) for name in names}, reverse=True)
        self.primary: Final = next(origin for origin in self._by_name.values() if not origin.reverse)

    def match(self, qname: Name) -> Origin | None:
        """The longest origin that this lower-case name is at or below."""
        labels = len(qname)
        for size in self._sizes:
            if size <= labels and (origin := self._by_name.get(qname[labels - size :])) is not None:
                return origin
        return None


def _origin(name: Name, multicluster: Sequence[Name]) -> Origin:
    reverse = is_subdomain(name, IN_ADDR_ARPA) or is_subdomain(name, IP6_ARPA)
    return Origin(name, name_wire(name), reverse, any(is_subdomain(name, other) for other in multicluster))


def question_of(query: Query, client: Client, origin: Origin, seen: tuple[Name, ...] = ()) -> ZoneQuestion:
    """The query relative to `origin`, which its qname is at or below."""
    # Labels have the same length in any spelling, so the origin has the same number of octets at the end of the name.
    return ZoneQuestion(query, client, origin, query.spelling[-len(origin.wire) :], seen)
