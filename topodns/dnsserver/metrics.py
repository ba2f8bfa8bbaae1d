"""What Prometheus reads: CoreDNS's names, labels and buckets, made from the tallies at scrape time."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from topodns.edge.exposition import counter, gauge, histogram
from topodns.edge.process_figures import process_lines
from topodns.resolve.local import LOCALHOST_NOTE
from topodns.resolve.tally import DURATION_BUCKETS, SIZE_BUCKETS, Kind, Tally


@dataclass(frozen=True, slots=True)
class Reading:
    """Something that is read at scrape time. `name` without _total; `read` gives (label values, value) pairs."""

    name: str
    documentation: str
    kind: Literal["gauge", "counter"]
    labels: tuple[str, ...]
    read: Callable[[], Iterable[tuple[tuple[str, ...], float]]]


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram without labels: `read` gives the counts per bucket, the last beyond all `bounds`, and the sum."""

    name: str
    documentation: str
    bounds: tuple[float, ...]
    read: Callable[[], tuple[Sequence[float], float]]


@dataclass(frozen=True, slots=True)
class Distributions:
    """Histograms that differ in a label: `read` gives label values, counts as in a Distribution, and the sum."""

    name: str
    documentation: str
    labels: tuple[str, ...]
    bounds: tuple[float, ...]
    read: Callable[[], Iterable[tuple[tuple[str, ...], Sequence[float], float]]]


Published = Reading | Distribution | Distributions


class Metrics:
    """All that the process tells. `tallies` are asked for at each scrape, so a reload may change them."""

    def __init__(self, tallies: Callable[[], Iterable[Tally]], readings: Sequence[Published]) -> None:
        self._tallies = tallies
        self._readings = list(readings)

    def tell(self, readings: Iterable[Published]) -> None:
        """These, too, from now on."""
        self._readings += readings

    def exposition(self) -> bytes:
        """What there is to tell now, as `exposition.CONTENT_TYPE`."""
        told = chain.from_iterable(_lines(reading) for reading in self._readings)
        return "".join(chain(process_lines(), _of_tallies(list(self._tallies())), told)).encode()


def _lines(reading: Published) -> Iterator[str]:
    if isinstance(reading, Distribution):
        slots, total = reading.read()
        return histogram(reading.name, reading.documentation, (), reading.bounds, [((), slots, total)])
    if isinstance(reading, Distributions):
        return histogram(reading.name, reading.documentation, reading.labels, reading.bounds, reading.read())
    family = gauge if reading.kind == "gauge" else counter
    return family(reading.name, reading.documentation, reading.labels, reading.read())


def _of_tallies(tallies: Sequence[Tally]) -> Iterator[str]:
    counted = [(tally, kind, times) for tally in tallies for kind, times in tally.kinds()]
    yield from _counters(counted)
    yield from _sizes("coredns_dns_request_size_bytes", "Size of the request in octets.", counted, "query_size")
    yield from _sizes("coredns_dns_response_size_bytes", "Size of the response in octets.", counted, "response_size")
    yield from _durations(tallies)
    panics = sum(tally.panics for tally in tallies)
    yield from counter("coredns_panics", "Bugs met while answering.", (), [((), panics)])


Counted = Sequence[tuple[Tally, Kind, int]]
_OURS: tuple[str, ...] = ("server", "zone", "view")


def _counters(counted: Counted) -> Iterator[str]:
    requests: Counter[tuple[str, ...]] = Counter()
    responses: Counter[tuple[str, ...]] = Counter()
    secure: Counter[tuple[str, ...]] = Counter()
    refused: Counter[tuple[str, ...]] = Counter()
    selections: Counter[tuple[str, ...]] = Counter()
    misses: Counter[tuple[str, ...]] = Counter()
    sources: Counter[tuple[str, ...]] = Counter()
    for tally, kind, times in counted:
        place = (tally.server, kind.origin, kind.view)
        requests[(*place, tally.transport, tally.family, kind.qtype)] += times
        if kind.rcode:
            responses[(*place, kind.rcode, kind.plugin)] += times
        if kind.dnssec_ok:
            secure[place] += times
        if kind.plugin == "acl":
            refused[(kind.rcode, *place)] += times
        if kind.plugin == "kubernetes" and kind.outcome:
            selections[(kind.outcome, kind.topology_key)] += times
        if kind.missed:
            misses[(kind.missed, kind.outcome)] += times
        if kind.prefix:
            sources[(kind.prefix,)] += times
    yield from _family("coredns_dns_requests", "Queries.", (*_OURS, "proto", "family", "type"), requests)
    yield from _family("coredns_dns_responses", "Responses.", (*_OURS, "rcode", "plugin"), responses)
    yield from _family("coredns_dns_do_requests", "Queries with the DO bit.", _OURS, secure)
    yield from _family(
        "topodns_selections", "Topology decisions, by why they came out so.", ("outcome", "key"), selections
    )
    unlocated: Counter[tuple[str, ...]] = Counter()
    unlocated[()] = sum(times for (outcome, _), times in selections.items() if outcome.startswith("unknown_client"))
    yield from _family(
        "topodns_unlocated_queries", "Queries under a policy from clients nobody can locate.", (), unlocated
    )
    yield from _family("topodns_misses", "Answers that topology left empty, by Service.", ("name", "outcome"), misses)
    yield from _family("topodns_unlocated_sources", "Unlocated queries by where they are from.", ("prefix",), sources)
    localhost: Counter[tuple[str, ...]] = Counter()
    localhost[()] = sum(times for _, kind, times in counted if kind.outcome == LOCALHOST_NOTE)
    yield from _family("coredns_local_localhost_requests", "Queries for localhost.<anything>.", (), localhost)
    yield from _template_matches(counted)
    for rcode, verdict in (("REFUSED", "blocked"), ("NOERROR", "filtered"), ("", "dropped")):
        verdicts = Counter({place[1:]: times for place, times in refused.items() if place[0] == rcode})
        yield from _family(f"coredns_acl_{verdict}_requests", f"Queries {verdict} by acl.", _OURS, verdicts)


def _template_matches(counted: Counted) -> Iterator[str]:
    """The note of a template that matched is `ORIGIN CLASS TYPE`; the origin is the directive's, not the block's."""
    matches: Counter[tuple[str, ...]] = Counter()
    for tally, kind, times in counted:
        if kind.plugin == "template" and kind.outcome:
            origin, qclass, qtype = kind.outcome.split(" ")
            matches[(tally.server, origin, kind.view, qclass, qtype)] += times
    labels = (*_OURS, "class", "type")
    return _family("coredns_template_matches", "Queries that a template was for.", labels, matches)


def _family(name: str, documentation: str, labels: tuple[str, ...], counts: Counter[tuple[str, ...]]) -> Iterator[str]:
    return counter(name, documentation, labels, counts.items())


def _sizes(
    name: str, documentation: str, counted: Counted, which: Literal["query_size", "response_size"]
) -> Iterator[str]:
    buckets: dict[tuple[str, ...], list[int]] = {}
    sums: Counter[tuple[str, ...]] = Counter()
    for tally, kind, times in counted:
        size = kind.query_size if which == "query_size" else kind.response_size
        if not size:
            continue  # nothing was sent
        labels = (tally.server, kind.origin, kind.view, tally.transport)
        slots = buckets.setdefault(labels, [0] * (len(SIZE_BUCKETS) + 1))
        slots[_slot(size)] += times
        sums[labels] += times * size
    rows = [(place, slots, sums[place]) for place, slots in buckets.items()]
    return histogram(name, documentation, (*_OURS, "proto"), SIZE_BUCKETS, rows)


def _slot(size: int) -> int:
    return next((at for at, bound in enumerate(SIZE_BUCKETS) if size <= bound), len(SIZE_BUCKETS))


def _durations(tallies: Iterable[Tally]) -> Iterator[str]:
    totals: dict[tuple[str, ...], list[float]] = {}
    for tally in tallies:
        for labels, durations in tally.durations.items():
            total = totals.setdefault((tally.server, *labels), [0.0] * len(durations))
            totals[(tally.server, *labels)] = [a + b for a, b in zip(total, durations, strict=True)]
    rows = [(place, slots, seconds) for place, (seconds, *slots) in totals.items()]
    documentation = "Time from query read to response written."
    return histogram("coredns_dns_request_duration_seconds", documentation, _OURS, DURATION_BUCKETS, rows)
