"""Counting without cost: a cell per distinct kind of answer, a list slot per count, read only at scrape time.

A hot answer carries its cell, so a hit costs one list increment. No metric library here: `edge.metrics` publishes.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from topodns.dns.message import RRType
from topodns.resolve.rosters import OTHERS

# CoreDNS's buckets: 0.25 ms doubling to 8.192 s, and sizes in octets.
DURATION_BUCKETS: Final = tuple(0.00025 * 2**k for k in range(16))
SIZE_BUCKETS: Final = (0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16000, 32000, 48000, 64000)

MAX_CELLS: Final = 8192  # of one socket; beyond it sizes are rounded and nobody is named, so a flood cannot grow this

_MAX_SIZE: Final = 65535

# CoreDNS names these types in its label `type`, every other one is "other".
_NAMED_TYPES: Final = {
    int(rtype): rtype.name
    for rtype in (
        *(RRType.A, RRType.AAAA, RRType.CNAME, RRType.DNSKEY, RRType.DS, RRType.MX, RRType.NSEC, RRType.NSEC3),
        *(RRType.NS, RRType.PTR, RRType.RRSIG, RRType.SOA, RRType.SRV, RRType.TXT, RRType.HTTPS, RRType.SVCB),
        *(RRType.IXFR, RRType.AXFR, RRType.ANY),
    )
}

# [times seen, the durations of its origin]. A plain list: incrementing a slot is the cheapest count there is.
Cell = list[object]
# [sum of seconds, then one count per bucket, then the count beyond the last bucket]
Durations = list[float]


class Kind(NamedTuple):
    """What is counted apart. Sizes are exact while there is room."""

    origin: str  # of the server block, with final dot; "dropped" where no block was asked
    qtype: str
    rcode: str
    plugin: str
    dnssec_ok: bool
    outcome: str  # why topology chose what it chose, or a step's note; "" mostly
    topology_key: str
    query_size: int
    response_size: int
    view: str = ""  # of the server block
    missed: str = ""  # the Service whose endpoints topology kept from the client, by its name in `rosters`
    prefix: str = ""  # the source of a client that nobody could locate, likewise


def type_label(qtype: int) -> str:
    """CoreDNS's label value for a query type."""
    return _NAMED_TYPES.get(qtype, "other")


def server_label(at: tuple[str, int]) -> str:
    """CoreDNS's label value for what listens at (host, port); host "" is every address."""
    host, port = at
    return f"dns://[{host}]:{port}" if ":" in host else f"dns://{host}:{port}"


class Tally:
    """The counts of one socket: `server` as CoreDNS labels it, `transport` udp or tcp, `family` "1" or "2"."""

    def __init__(self, server: str, transport: str, family: str) -> None:
        self.server = server
        self.transport = transport
        self.family = family
        self.durations: dict[tuple[str, str], Durations] = {}  # by (origin, view) of the kinds
        self.panics = 0
        self._cells: dict[Kind, Cell] = {}

    def cell(self, kind: Kind) -> Cell:
        """The cell that counts this kind of answer, new where it was never seen."""
        found = self._cells.get(kind)
        if found is not None:
            return found
        if len(self._cells) >= MAX_CELLS:
            rounded = kind._replace(
                query_size=_round_up(kind.query_size),
                response_size=_round_up(kind.response_size),
                missed=OTHERS if kind.missed else "",
                prefix=OTHERS if kind.prefix else "",
            )
            return self._cells.setdefault(rounded, [0, self._durations_of(kind)])
        return self._cells.setdefault(kind, [0, self._durations_of(kind)])

    def count(self, cell: Cell, seconds: float) -> None:
        """One answer of this kind took so long to make."""
        cell[0] += 1  # type: ignore[operator]
        durations: Durations = cell[1]  # type: ignore[assignment]
        durations[0] += seconds
        durations[1 + bisect_left(DURATION_BUCKETS, seconds)] += 1

    def batch_done(self, hits: int, seconds: float, last_cell: Cell | None) -> None:
        """`hits` hot answers, counted in their cells already, took `seconds` together.

        Their mean is booked on the origin of the last one: two clock reads a batch, not two a query.
        """
        if last_cell is not None:
            _book(last_cell[1], hits, seconds)  # type: ignore[arg-type]

    def kinds(self) -> Iterator[tuple[Kind, int]]:
        """What was counted, and how often."""
        for kind, cell in self._cells.items():
            yield kind, cell[0]  # type: ignore[misc]

    def _durations_of(self, kind: Kind) -> Durations:
        return self.durations.setdefault((kind.origin, kind.view), [0.0] * (len(DURATION_BUCKETS) + 2))


def _book(durations: Durations, count: int, seconds: float) -> None:
    durations[0] += seconds
    durations[1 + bisect_left(DURATION_BUCKETS, seconds / count)] += count


def _round_up(size: int) -> int:
    at = bisect_left(SIZE_BUCKETS, size)
    return SIZE_BUCKETS[at] if at < len(SIZE_BUCKETS) else _MAX_SIZE
