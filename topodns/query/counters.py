"""Query counters: a cell (a list of counts) per distinct label set, aggregated into metrics only at scrape time.

A packet cache entry carries its cell, so a hit costs one list increment. No metric library: `metrics.registry`
publishes.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from topodns.dns.rrtype import TYPE_NAMES, RRType
from topodns.dns.wire_format import MAX_MESSAGE
from topodns.query.histogram import Histogram
from topodns.query.label_limiter import OTHERS

# CoreDNS's buckets: 0.25 ms doubling to 8.192 s, and sizes in octets.
DURATION_BUCKETS: Final = tuple(0.00025 * 2**k for k in range(16))
SIZE_BUCKETS: Final = (0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16000, 32000, 48000, 64000)

BEYOND: Final = len(SIZE_BUCKETS)  # the index of the bucket +Inf

# Limits on the cells of one socket. The label values that a client can cause (types, sizes, names of missed Services)
# multiply, so without these limits a flood would make every later scrape expensive.
NAMED_CELLS: Final = 512  # from here on, a new cell has OTHERS as topology key, Service and prefix
MAX_CELLS: Final = 768  # from here on, a new cell is one per server block, rcode, plugin, outcome and detail: few

BUCKET_OF_SIZE: Final = bytes(bisect_left(SIZE_BUCKETS, size) for size in range(MAX_MESSAGE + 1))

# The values of CoreDNS's label `type`; every other query type is "other".
TYPE_LABELS: Final = {
    rtype: TYPE_NAMES[rtype]
    for rtype in (
        *(RRType.A, RRType.AAAA, RRType.CNAME, RRType.DNSKEY, RRType.DS, RRType.MX, RRType.NSEC, RRType.NSEC3),
        *(RRType.NS, RRType.PTR, RRType.RRSIG, RRType.SOA, RRType.SRV, RRType.TXT, RRType.HTTPS, RRType.SVCB),
        *(RRType.IXFR, RRType.AXFR, RRType.ANY),
    )
}

# [count, durations and octets of its (origin, view)]. A plain list: incrementing a slot is the cheapest count.
Cell = list[object]
# [octets of queries, octets of responses]
Octets = list[int]


class CacheHit(NamedTuple):
    """An answer of `cache`: the labels of coredns_cache_hits_total that the general counters lack."""

    type: str  # CoreDNS's: "success" or "denial"
    zones: str  # of the directive
    stale: bool = False  # given beyond its TTL (RFC 8767)


class TemplateMatch(NamedTuple):
    """An answer of `template`: the labels of coredns_template_matches_total that the general counters lack."""

    origin: str  # of the directive, not of the server block
    qclass: str
    qtype: str


class LocalhostAnswer(NamedTuple):
    """An answer of `local` for localhost.<anything>, counted in coredns_local_localhost_requests_total."""


AnswerDetail = CacheHit | TemplateMatch | LocalhostAnswer
"""What the metrics of a plugin distinguish in its answers, beside the labels that all answers have."""


class ReplyKind(NamedTuple):
    """The label values of a cell: replies that differ in one of them are counted separately."""

    origin: str  # of the server block, with final dot; "dropped" if no server block was asked
    qtype: str
    rcode: str
    plugin: str
    dnssec_ok: bool
    outcome: str  # the reason of the topology decision; "" without one
    topology_key: str
    query_bucket: int  # a result of `size_bucket`
    response_bucket: int  # likewise; 0: no reply was sent
    view: str = ""  # of the server block
    missed: str = (
        ""  # the Service whose endpoints topology withheld from the client, as `LabelLimiters.service` names it
    )
    prefix: str = ""  # the source prefix of a client without a location, as `LabelLimiters.prefix` names it
    detail: AnswerDetail | None = None


def size_bucket(size: int) -> int:
    """The index of the first of SIZE_BUCKETS that is not below this size (0 to 65,535 octets); BEYOND if none is."""
    return BUCKET_OF_SIZE[size]


def type_label(qtype: int) -> str:
    """CoreDNS's value of the label `type` for a query type: one of TYPE_LABELS, or "other"."""
    return TYPE_LABELS.get(qtype, "other")


def server_label(at: tuple[str, int] | tuple[str, int, bool]) -> str:
    """CoreDNS's label `server` of a listener at (host, port), with True behind for TLS; host "" is all addresses."""
    host, port, *tls = at
    scheme = "tls" if any(tls) else "dns"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


class QueryCounters:
    """The counters of one socket, with its labels in CoreDNS: `server`, `transport` (udp, tcp), `family` (1, 2)."""

    def __init__(self, server: str, transport: str, family: str) -> None:
        self.server = server
        self.transport = transport
        self.family = family
        self.durations: dict[tuple[str, str], Histogram] = {}  # in seconds, by (origin, view) of the kinds
        self.octets: dict[tuple[str, str], Octets] = {}  # likewise
        self.panics = 0
        self._cells: dict[ReplyKind, Cell] = {}

    def cell(self, kind: ReplyKind) -> Cell:
        """The cell of these label values, created at first use; with coarser labels from NAMED_CELLS on."""
        found = self._cells.get(kind)
        if found is not None:
            return found
        if len(self._cells) >= NAMED_CELLS:
            kind = _unnamed(kind)
        if len(self._cells) >= MAX_CELLS and kind not in self._cells:
            kind = _coarse(kind)
        place = (kind.origin, kind.view)
        durations = self.durations.get(place)
        if durations is None:
            durations = self.durations[place] = Histogram(DURATION_BUCKETS)
        return self._cells.setdefault(kind, [0, durations, self.octets.setdefault(place, [0, 0])])

    def count_kind(self, kind: ReplyKind, seconds: float, query_size: int, response_size: int) -> Cell:
        """Count one reply as `count` does, in the cell of these label values, which is returned."""
        cell = self._cells.get(kind)
        if cell is None:
            cell = self.cell(kind)
        self.count(cell, seconds, query_size, response_size)
        return cell

    def count(self, cell: Cell, seconds: float, query_size: int, response_size: int) -> None:
        """Count one reply in `cell`. `seconds`: time to make it. Sizes in octets; `response_size` 0: none was sent."""
        _, durations, octets = cell
        cell[0] += 1  # type: ignore[operator]
        # `Histogram.observe`, written out because each query that misses the packet cache is counted here.
        durations.counts[bisect_left(DURATION_BUCKETS, seconds)] += 1  # type: ignore[attr-defined]
        durations.sum += seconds  # type: ignore[attr-defined]
        octets[0] += query_size  # type: ignore[index]
        octets[1] += response_size  # type: ignore[index]

    def batch_done(
        self,
        hits: int,
        seconds: float,
        last_cell: Cell | None,
        query_sizes: Sequence[int],
        response_sizes: Sequence[int],
    ) -> None:
        """Add the durations and octets of a batch's `hits` in the packet cache, already counted in their cells.

        `seconds` is the time of all hits together; `response_sizes` has 0 for each miss. The mean time and all octets
        are attributed to the origin of the last hit: two clock reads and two sums per batch, not per query.
        """
        if last_cell is None or not hits:
            return
        _, durations, octets = last_cell
        durations.observe_mean(hits, seconds)  # type: ignore[attr-defined]
        asked = sum(query_sizes)
        if hits < len(query_sizes):
            asked -= sum(size for size, sent in zip(query_sizes, response_sizes, strict=True) if not sent)
        octets[0] += asked  # type: ignore[index]
        octets[1] += sum(response_sizes)  # type: ignore[index]

    def kinds(self) -> Iterator[tuple[ReplyKind, int]]:
        """(label values, count) of each cell; the count includes queries without a reply."""
        for kind, cell in self._cells.items():
            yield kind, cell[0]  # type: ignore[misc]


def _unnamed(kind: ReplyKind) -> ReplyKind:
    """The label values of a new cell from NAMED_CELLS on: OTHERS in place of names."""
    if not (kind.missed or kind.prefix or kind.topology_key):
        return kind
    return kind._replace(
        topology_key=OTHERS if kind.topology_key else "",
        missed=OTHERS if kind.missed else "",
        prefix=OTHERS if kind.prefix else "",
    )


def _coarse(kind: ReplyKind) -> ReplyKind:
    """The label values of a new cell from MAX_CELLS on: type "other", no DO, and sizes only in the bucket +Inf.

    A missing reply stays in the bucket of 0 octets.
    """
    sent = BEYOND if kind.response_bucket else 0
    return kind._replace(qtype="other", dnssec_ok=False, query_bucket=BEYOND, response_bucket=sent)
