"""The router: the server blocks of one socket, and the block that a query matches.

`Chaser` and `Neighbours` resolve further names in the blocks of the listener: CNAME targets, and the names that
`autopath` tries.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from topodns.dns.message import Flag, Query, Response
from topodns.dns.name import ROOT, Name, is_subdomain, name_wire
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.dns.wire_format import MIN_UDP_PAYLOAD
from topodns.dnsserver.chain import Chain
from topodns.dnsserver.fast_forward.eligibility import FastRoute, FastRoutes
from topodns.query.cname import MAX_CHASE
from topodns.query.deferred import Deferred
from topodns.query.packet_entry import Variants
from topodns.query.plugin import Answered, Below, BlockSelector, Client, ExchangeLog, Resolution, Scope, settled
from topodns.query.session import PushedZones

if TYPE_CHECKING:
    from topodns.dnsserver.fast_kubernetes.eligibility import FastZone
    from topodns.plugins.kubernetes.client_pods import ClientPods


@dataclass(frozen=True, slots=True)
class Block:
    """One origin of one server block, with the chain that answers its queries."""

    origin: Name
    label: str  # the origin as text with final dot: CoreDNS's metric label `zone`
    chain: Chain
    payload_size: int  # octets: the UDP payload size that the server advertises, and the maximum that it sends
    rotate: bool = False  # cached answers rotate their addresses (`loadbalance`)
    log: ExchangeLog | None = None
    errors: Callable[[Query, str], object] | None = None
    fast_route: FastRoute | None = None  # the fast path of plain questions to its `forward`, if eligible
    fast_zones: tuple["FastZone", ...] = ()  # the origins of its `kubernetes` with a fast path
    view: BlockSelector | None = None  # the queries that it accepts; None: all
    view_name: str = ""  # CoreDNS's metric label `view`
    scope: Scope = Scope.EVERYONE  # set by the table: the clients whose same query comes to this block
    variants: Variants | None = None  # the query variants that a cached answer of it may serve at most
    push: PushedZones | None = None  # the zones whose names clients may subscribe to, by `push`
    client_pods: "ClientPods | None" = None  # None: nothing of the block reads something of its clients' Pods

    @property
    def whole_scope(self) -> Scope:
        """The clients for which an answer is, by the views and the plugins of the block."""
        return max(self.scope, self.chain.scope)


class BlockTable:
    """Server blocks by origin; the longest match wins. For DS, which the parent answers (RFC 4035 section 3.1.4.1), it
    is the shortest one, and the root only if no other matches.

    Blocks of one origin are tried in the given order, and the first whose view accepts the query wins; so a block
    without a view shadows those after it. If none accepts it, the next origin is tried. All of this is as in CoreDNS,
    except that there, of several blocks of one origin, the last that accepts a query for DS wins.
    """

    def __init__(self, blocks: Iterable[Block], classes: frozenset[int] = frozenset({RRClass.IN})) -> None:
        self.classes = classes  # the query classes that some block accepts; others are REFUSED
        blocks = [*blocks]
        # The limits of the first `push`, which count for all clients of the listener; None without one.
        self.push_limits = next((block.push.limits for block in blocks if block.push is not None), None)
        # Octets: the maximum that any block sends over UDP.
        self.payload_size = max([MIN_UDP_PAYLOAD, *(block.payload_size for block in blocks)])
        self._depths = sorted({len(block.origin) for block in blocks if block.origin}, reverse=True)
        self._depths_of_ds = self._depths[::-1]
        self._rows: dict[Name, tuple[Block, ...]] = {}  # by origin; empty without views, which avoids their cost
        self._narrowed: dict[tuple[int, Scope, int], Block] = {}  # copies of blocks, by their id
        self._blocks: dict[Name, Block] = {}  # and empty with views: then the block depends on the whole query
        if any(block.view is not None for block in blocks):
            self._rows = _rows(blocks)
        else:
            for block in blocks:
                self._blocks.setdefault(block.origin, block)
        self._root = self._blocks.get(ROOT)  # the root's block, for any client
        self.only = None if self._depths else self._root  # the block of every query; None if it depends on the query
        self.fast_zones = [*self._fast_zones()]
        self.fast_routes = FastRoutes({origin: block.fast_route for origin, block in self._blocks.items()})

    def match(self, query: Query, client: Client) -> Block | None:
        """The block that answers this query of this client, by the rules of the class; None: no block, for REFUSED.

        `client` matters only to blocks with a view. Only the name and type are compared, not the class (`classes`).
        """
        depths = self._depths_of_ds if query.qtype == RRType.DS else self._depths
        if self._rows:
            return self._match_viewed(depths, query, client)
        qname = query.qname
        for depth in depths:
            block = self._blocks.get(qname[-depth:])
            if block is not None:
                return block
        return self._root

    def _fast_zones(self) -> Iterator["FastZone"]:
        """The zones of all whose names come to the block of the zone."""
        for origin, block in self._blocks.items():
            for each in block.fast_zones:
                own = each.origin.name
                others = (other for other in self._blocks if other != origin and len(other) > len(origin))
                if not any(is_subdomain(other, own) or is_subdomain(own, other) for other in others):
                    yield each

    def _match_viewed(self, depths: Iterable[int], query: Query, client: Client) -> Block | None:
        scope, pods = Scope.EVERYONE, None
        for block in self._candidates(depths, query.qname):
            if block.view is not None:
                scope, pods = max(scope, block.view.scope), pods or block.client_pods
            if block.view is None or block.view(query, client):
                return block if scope is Scope.EVERYONE else self._narrow(block, scope, pods or block.client_pods)
        return None

    def _narrow(self, block: Block, scope: Scope, pods: "ClientPods | None") -> Block:
        """The block for queries that came past views, or into one, whose decisions have this scope and read `pods`."""
        key = (id(block), scope, id(pods))
        narrowed = self._narrowed.get(key)
        if narrowed is None:
            narrowed = self._narrowed[key] = replace(block, scope=scope, client_pods=pods)
        return narrowed

    def _candidates(self, depths: Iterable[int], qname: Name) -> Iterator[Block]:
        for depth in depths:
            yield from self._rows.get(qname[-depth:], ())
        yield from self._rows.get(ROOT, ())


def _rows(blocks: Iterable[Block]) -> dict[Name, tuple[Block, ...]]:
    """The blocks of each origin in the order of the Corefile, without query variants: a view may read the size of a
    message, say.
    """
    rows: dict[Name, tuple[Block, ...]] = {}
    for block in blocks:
        rows[block.origin] = (*rows.get(block.origin, ()), replace(block, variants=None))
    return rows


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

        REFUSED if no block matches. Scope.CLIENT if which block matches depends on the client, or if it rotates
        addresses and the calling block does not: the packet cache would repeat such an answer wrongly.
        """
        block = self._match(query, client)
        if block is None:
            return Resolution(Response(Rcode.REFUSED, flags=0), "", Scope.CLIENT)
        if block.origin in self._own:
            return below(query, client)
        answered = block.chain.resolve(query, client._replace(depth=client.depth + 1))
        if block.scope or (block.rotate and not self._rotate):
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
