"""The server blocks behind one socket, and which of them a name belongs to."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from topodns.dns.message import Query, RRClass, RRType
from topodns.dns.names import ROOT, Name
from topodns.resolve.chain import Chain
from topodns.resolve.error_log import ErrorLog
from topodns.resolve.step import Client, Resolution

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


class BlockTable:
    """Blocks by origin; the longest match wins, but for DS (RFC 4035 section 3.1.4.1: the parent's side answers)."""

    def __init__(self, blocks: Iterable[Block], classes: frozenset[int] = frozenset({int(RRClass.IN)})) -> None:
        self.classes = classes  # those that any block takes; others are REFUSED
        self._blocks = {block.origin: block for block in blocks}
        self._depths = sorted({len(origin) for origin in self._blocks if origin}, reverse=True)
        self._root = self._blocks.get(ROOT)

    def match(self, qname: Name, qtype: int) -> Block | None:
        """The block that answers for this name, None where none does."""
        if qtype == RRType.DS:
            return self._match_parent(qname)
        for depth in self._depths:
            block = self._blocks.get(qname[-depth:])
            if block is not None:
                return block
        return self._root

    def _match_parent(self, qname: Name) -> Block | None:
        for depth in reversed(self._depths):
            block = self._blocks.get(qname[-depth:])
            if block is not None:
                return block
        return self._root
