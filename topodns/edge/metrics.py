"""What Prometheus reads: CoreDNS's names, labels and buckets, made from the tallies at scrape time.

The only importer of prometheus_client, which no query ever meets.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from topodns.resolve.local import LOCALHOST_NOTE
from topodns.resolve.tally import DURATION_BUCKETS, SIZE_BUCKETS, Kind, Tally

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

_INFINITY = "+Inf"


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
    """The registry of the process. `tallies` are asked for at each scrape, so a reload may change them."""

    def __init__(self, tallies: Callable[[], Iterable[Tally]], readings: Sequence[Published]) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(_TallyCollector(tallies))
        self._readings = list(readings)
        self._registry.register(_ReadingCollector(self._readings))

    def tell(self, readings: Iterable[Published]) -> None:
        """These, too, from now on."""
        self._readings += readings

    def exposition(self) -> bytes:
        """The text format 0.0.4."""
        return generate_latest(self._registry)


class _ReadingCollector(Collector):
    def __init__(self, readings: Sequence[Published]) -> None:
        self._readings = readings

    def collect(self) -> Iterator[Metric]:
        for reading in self._readings:
            if not isinstance(reading, Reading):
                yield _histogram(reading) if isinstance(reading, Distribution) else _histograms(reading)
                continue
            make = GaugeMetricFamily if reading.kind == "gauge" else CounterMetricFamily
            family = make(reading.name, reading.documentation, labels=reading.labels)
            for labels, value in reading.read():
                family.add_metric(labels, value)
            yield family


def _histogram(distribution: Distribution) -> Metric:
    slots, total = distribution.read()
    family = HistogramMetricFamily(distribution.name, distribution.documentation)
    family.add_metric((), _cumulative(distribution.bounds, slots), total)
    return family


def _histograms(distributions: Distributions) -> Metric:
    family = HistogramMetricFamily(distributions.name, distributions.documentation, labels=distributions.labels)
    for labels, slots, total in distributions.read():
        family.add_metric(labels, _cumulative(distributions.bounds, slots), total)
    return family


class _TallyCollector(Collector):
    def __init__(self, tallies: Callable[[], Iterable[Tally]]) -> None:
        self._tallies = tallies

    def collect(self) -> Iterator[Metric]:
        counted = [(tally, kind, times) for tally in self._tallies() for kind, times in tally.kinds()]
        yield from _counters(counted)
        yield _sizes("coredns_dns_request_size_bytes", "Size of the request in octets.", counted, "query_size")
        yield _sizes("coredns_dns_response_size_bytes", "Size of the response in octets.", counted, "response_size")
        yield _durations(self._tallies())
        panics = CounterMetricFamily("coredns_panics", "Bugs met while answering.")
        panics.add_metric((), sum(tally.panics for tally in self._tallies()))
        yield panics


Counted = Sequence[tuple[Tally, Kind, int]]
_OURS: Sequence[str] = ("server", "zone", "view")


def _counters(counted: Counted) -> Iterator[Metric]:
    requests: Counter[tuple[str, ...]] = Counter()
    responses: Counter[tuple[str, ...]] = Counter()
    secure: Counter[tuple[str, ...]] = Counter()
    refused: Counter[tuple[str, ...]] = Counter()
    selections: Counter[tuple[str, ...]] = Counter()
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
    yield _family("coredns_dns_requests", "Queries.", (*_OURS, "proto", "family", "type"), requests)
    yield _family("coredns_dns_responses", "Responses.", (*_OURS, "rcode", "plugin"), responses)
    yield _family("coredns_dns_do_requests", "Queries with the DO bit.", _OURS, secure)
    yield _family("topodns_selections", "Topology decisions, by why they came out so.", ("outcome", "key"), selections)
    unlocated: Counter[tuple[str, ...]] = Counter()
    unlocated[()] = sum(times for (outcome, _), times in selections.items() if outcome.startswith("unknown_client"))
    yield _family("topodns_unlocated_queries", "Queries under a policy from clients nobody can locate.", (), unlocated)
    localhost: Counter[tuple[str, ...]] = Counter()
    localhost[()] = sum(times for _, kind, times in counted if kind.outcome == LOCALHOST_NOTE)
    yield _family("coredns_local_localhost_requests", "Queries for localhost.<anything>.", (), localhost)
    yield _template_matches(counted)
    for rcode, verdict in (("REFUSED", "blocked"), ("NOERROR", "filtered"), ("", "dropped")):
        verdicts = Counter({place[1:]: times for place, times in refused.items() if place[0] == rcode})
        yield _family(f"coredns_acl_{verdict}_requests", f"Queries {verdict} by acl.", _OURS, verdicts)


def _template_matches(counted: Counted) -> Metric:
    """The note of a template that matched is `ORIGIN CLASS TYPE`; the origin is the directive's, not the block's."""
    matches: Counter[tuple[str, ...]] = Counter()
    for tally, kind, times in counted:
        if kind.plugin == "template" and kind.outcome:
            origin, qclass, qtype = kind.outcome.split(" ")
            matches[(tally.server, origin, kind.view, qclass, qtype)] += times
    labels = (*_OURS, "class", "type")
    return _family("coredns_template_matches", "Queries that a template was for.", labels, matches)


def _family(name: str, documentation: str, labels: Sequence[str], counts: Counter[tuple[str, ...]]) -> Metric:
    family = CounterMetricFamily(name, documentation, labels=labels)
    for values, times in counts.items():
        family.add_metric(values, times)
    return family


def _sizes(name: str, documentation: str, counted: Counted, which: Literal["query_size", "response_size"]) -> Metric:
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
    family = HistogramMetricFamily(name, documentation, labels=(*_OURS, "proto"))
    for place, slots in buckets.items():
        family.add_metric(place, _cumulative(SIZE_BUCKETS, slots), sums[place])
    return family


def _slot(size: int) -> int:
    return next((at for at, bound in enumerate(SIZE_BUCKETS) if size <= bound), len(SIZE_BUCKETS))


def _durations(tallies: Iterable[Tally]) -> Metric:
    totals: dict[tuple[str, ...], list[float]] = {}
    for tally in tallies:
        for labels, durations in tally.durations.items():
            total = totals.setdefault((tally.server, *labels), [0.0] * len(durations))
            totals[(tally.server, *labels)] = [a + b for a, b in zip(total, durations, strict=True)]
    family = HistogramMetricFamily(
        "coredns_dns_request_duration_seconds", "Time from query read to response written.", labels=_OURS
    )
    for place, (seconds, *slots) in totals.items():
        family.add_metric(place, _cumulative(DURATION_BUCKETS, slots), seconds)
    return family


def _cumulative(bounds: Sequence[float], slots: Sequence[float]) -> list[tuple[str, float]]:
    names = [*(f"{bound:g}" for bound in bounds), _INFINITY]  # as Go prints them: 100, not 100.0
    return list(zip(names, accumulate(slots), strict=True))
