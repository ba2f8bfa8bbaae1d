"""The server blocks behind one socket, and which of them a query belongs to."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from topodns.dns.message import Query, RRClass, RRType
from topodns.dns.names import ROOT, Name
from topodns.resolve.chain import Chain
from topodns.resolve.error_log import ErrorLog
from topodns.resolve.road import Road, RoadMap
from topodns.resolve.step import Client, Resolution

if TYPE_CHECKING:
    from topodns.resolve.view.filter import ViewFilter

_DS: Final = int(RRType.DS)

# Logs one exchange if the block's `log` asks for it; True: it did, so the answer must come this way each time.
QueryLog = Callable[[Query, Client, "Resolution | None", "bytes | None", float], bool]


@dataclass(frozen=True, slots=True)
class Block:
    """One origin of one server block, ready to answer."""

    origin: Name
    label: str  # the origin as text with final dot: CoreDNS's metric label `zone`
    chain: Chain
    payload_size: int  # octets: what we offer over UDP, and the most we send
    rotate: bool = False  # kept answers change the order of their addresses (`loadbalance`)
    log: QueryLog | None = None
    errors: ErrorLog | None = None
    road: Road | None = None  # the short way of plain questions to its `forward`, where it has one
    view: "ViewFilter | None" = None  # the queries that it takes; None: all
    view_name: str = ""  # CoreDNS's metric label `view`
    client_dependent: bool = False  # set by the table: the same octets of another client may belong to another block


_Row = tuple[tuple[Block, Block], ...]
"""The blocks of one origin in the order of the Corefile, each with its double that is `client_dependent`."""


class BlockTable:
    """Blocks by origin; the longest match wins, but for DS (RFC 4035 section 3.1.4.1: the parent's side answers).

    Blocks of one origin are tried in the order given, and the first whose view takes the query wins; so one without a
    view shadows those after it. Where none takes it, the next origin is tried. All of this is as in CoreDNS, but that
    of two blocks of one origin, the last that takes a query for DS wins there.
    """

    def __init__(self, blocks: Iterable[Block], classes: frozenset[int] = frozenset({int(RRClass.IN)})) -> None:
        self.classes = classes  # those that any block takes; others are REFUSED
        rows: dict[Name, list[Block]] = {}
        for block in blocks:
            rows.setdefault(block.origin, []).append(block)
        self._depths = sorted({len(origin) for origin in rows if origin}, reverse=True)
        self._depths_of_ds = self._depths[::-1]
        self._blocks = {origin: row[0] for origin, row in rows.items()}
        self._rows: dict[Name, _Row] = {}  # only where there are views: others shall not pay for them
        if any(block.view is not None for row in rows.values() for block in row):
            self._rows = {origin: tuple(map(_with_double, row)) for origin, row in rows.items()}
        self._root = None if self._rows else self._blocks.get(ROOT)  # the root's, whoever asks
        # With views it is the query as a whole that says which block it is for.
        self.roads = RoadMap({} if self._rows else {origin: block.road for origin, block in self._blocks.items()})

    def match(self, query: Query, client: Client) -> Block | None:
        """The block that answers this client's query, None where none does."""
        depths = self._depths_of_ds if query.qtype == _DS else self._depths
        if self._rows:
            return self._match_viewed(depths, query, client)
        qname = query.qname
        for depth in depths:
            block = self._blocks.get(qname[-depth:])
            if block is not None:
                return block
        return self._root

    def _match_viewed(self, depths: Iterable[int], query: Query, client: Client) -> Block | None:
        client_dependent = False
        for block, double in self._candidates(depths, query.qname):
            client_dependent = client_dependent or (block.view is not None and block.view.of_client)
            if block.view is None or block.view(query, client):
                return double if client_dependent else block
        return None

    def _candidates(self, depths: Iterable[int], qname: Name) -> Iterator[tuple[Block, Block]]:
        for depth in depths:
            yield from self._rows.get(qname[-depth:], ())
        yield from self._rows.get(ROOT, ())


def _with_double(block: Block) -> tuple[Block, Block]:
    return block, replace(block, client_dependent=True)
