"""Resolves names in other server blocks of the same listener: CNAME targets, and the names that `autopath` tries."""

from collections.abc import Callable, Collection

from topodns.dns.message import Flag, Query, Response
from topodns.dns.name import Name, name_wire
from topodns.dns.rrtype import Rcode, RRClass
from topodns.dnsserver.router import Block
from topodns.query.cname import MAX_CHASE
from topodns.query.deferred import Deferred
from topodns.query.plugin import Answered, Below, Client, Resolution, Scope, settled


class Chaser:
    """Implements `Chase`: resolves the target of a CNAME in the server block that `match` finds for it, if any.

    None as the answer without a server block; SERVFAIL after MAX_CHASE targets in a row, as CoreDNS: of a zone file it
    is that of the whole chain, which may be a loop.
    """

    def __init__(self, match: Callable[[Query, Client], Block | None]) -> None:
        self._match = match

    def __call__(self, target: Name, qtype: int, client: Client) -> Answered | None:
        query = Query(
            id=0,
            flags=Flag.RD,
            qname=target,
            spelling=name_wire(target),
            qtype=qtype,
            qclass=RRClass.IN,
            edns=None,
            size=0,
        )
        block = self._match(query, client)
        if block is None:
            return None
        if client.depth >= MAX_CHASE:
            return Resolution(Response(Rcode.SERVFAIL), "", Scope.CLIENT)
        return block.chain.resolve(query, client._replace(depth=client.depth + 1))


class Neighbours:
    """Resolves a name in the server block that it belongs to, which may be another one than the calling plugin's.

    `own`: the origins of the calling server block. `rotate`: whether the cached answers of that block rotate their
    addresses.
    """

    def __init__(
        self, match: Callable[[Query, Client], Block | None], own: Collection[Name], rotate: bool = False
    ) -> None:
        self._match = match
        self._own = own
        self._rotate = rotate

    def __call__(self, query: Query, client: Client, below: Below) -> Answered:
        """The answer of the matching server block; if that is the calling block, the answer of `below`.

        REFUSED if no block matches. Scope.CLIENT if the matching block depends on the client, or if it rotates
        addresses and the calling block does not: the packet cache would repeat such an answer wrongly.
        """
        block = self._match(query, client)
        if block is None:
            return Resolution(Response(Rcode.REFUSED, flags=0), "", Scope.CLIENT)
        if block.origin in self._own:
            return below(query, client)
        answered = block.chain.resolve(query, client._replace(depth=client.depth + 1))
        if block.client_dependent or (block.rotate and not self._rotate):
            return _for_this_client(answered)
        return answered


def _for_this_client(answered: Answered) -> Answered:
    """The same answer with Scope.CLIENT: never kept."""
    if not isinstance(answered, Resolution):
        return _for_this_client_later(answered)
    answered.scope = Scope.CLIENT
    return answered


async def _for_this_client_later(deferred: Deferred[Resolution]) -> Resolution:
    return await settled(_for_this_client(await deferred))
