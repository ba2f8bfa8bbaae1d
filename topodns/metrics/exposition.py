"""The metrics of the process in the formats of prometheus_client, of which this is the only importer.

prometheus_client takes 25 ms and 4 MB to import, as http.server, wsgiref and email come with it. So this module is
imported when a route for /metrics is made, before the process serves.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from topodns.metrics.registry import Distribution, Published, Reading
from topodns.query.histogram import Histogram

Encode = Callable[[Collector], bytes]

ROWS: Final = 40  # of a gauge or counter in a part of its family: 0.3 ms of work
HISTOGRAMS: Final = 2  # in a part of their family, of about 20 samples each
MAX_RANGES: Final = 16  # media ranges of an Accept header that are read; Prometheus sends at most 6


class Form(NamedTuple):
    """A format of an exposition. Forms with the same octets have the same `encode`."""

    content_type: str
    encode: Encode


@dataclass(frozen=True, slots=True)
class _Families:
    """A collector of given families."""

    families: Sequence[Metric]

    def collect(self) -> Sequence[Metric]:
        return self.families


def _open_metrics(collector: Collector) -> bytes:
    """OpenMetrics 1.0.0, with bucket bounds as its section "Canonical Numbers" has them: 100.0, not 100."""
    families = list(collector.collect())
    for family in families:
        if family.type == "histogram":
            for sample in family.samples:
                if "le" in sample.labels:
                    sample.labels["le"] = floatToGoString(sample.labels["le"])  # type: ignore[no-untyped-call]
    return _OPEN_METRICS(_Families(families))


_TEXT, _TEXT_TYPE = choose_encoder("")
# All names are of letters, digits and "_", so every escaping gives the same octets; this one takes the least time.
_OPEN_METRICS, _ = choose_encoder("application/openmetrics-text; version=1.0.0; escaping=allow-utf-8")

TEXT: Final = Form(_TEXT_TYPE, _TEXT)  # version 0.0.4
TEXT_1: Final = Form(choose_encoder("text/plain; version=1.0.0")[1], _TEXT)
OPEN_METRICS: Final = Form(choose_encoder("application/openmetrics-text")[1], _open_metrics)

_WEIGHT: Final = re.compile(r";\s*q=([01](?:\.\d{0,3})?)\s*(?:;|$)", re.ASCII)  # RFC 9110 section 12.4.2
_ANY_TEXT: Final = ("text/plain", "text/*", "*/*")


def form_for(accept: str) -> Form:
    """The form for an Accept header (RFC 9110 section 12.5.1): one of three, by default TEXT.

    `choose_encoder` decides on each media range. It ignores weights, and passes over a range for version 0.0.4, so
    ranges are ordered here. Its content types repeat whatever version the client sends, so they are replaced.
    """
    for accepted in _by_weight(accept.lower()):
        try:
            chosen = choose_encoder(accepted)[1]
        except TypeError:  # a version that is not of numbers, such as 1.x
            continue
        if chosen.startswith("application/openmetrics-text"):
            return OPEN_METRICS
        if accepted.partition(";")[0].strip() in _ANY_TEXT:
            return TEXT if chosen == TEXT.content_type else TEXT_1
    return TEXT


def _by_weight(accept: str) -> list[str]:
    """The first MAX_RANGES media ranges in the order of preference, without those of weight 0."""
    weighed = []
    for accepted in accept.split(",", MAX_RANGES)[:MAX_RANGES]:
        weight = _WEIGHT.search(accepted)
        weighed.append((float(weight[1]) if weight is not None else 1.0, accepted))
    return [accepted for weight, accepted in sorted(weighed, key=lambda each: -each[0]) if weight > 0]


class PublishedCollector:
    """A collector of the families in `published`, which is called for each exposition.

    Large families come in parts, neighbours with the same name, each of which takes little time to make.
    """

    def __init__(self, published: Callable[[], Iterable[Published]]) -> None:
        self._published = published

    def collect(self) -> Iterator[Metric]:
        for each in self._published():
            yield from _of_histograms(each) if isinstance(each, Distribution) else _of_numbers(each)


def _of_numbers(published: Reading) -> Iterator[Metric]:
    name, documentation, labels = published.name, published.documentation, published.labels
    rows = list(published.read())  # at once: the caller may pause between two parts
    for start in range(0, max(1, len(rows)), ROWS):
        family = (GaugeMetricFamily if published.kind == "gauge" else CounterMetricFamily)(
            name, documentation, labels=labels
        )
        for values, value in rows[start : start + ROWS]:
            _check(published, values)
            family.add_metric(values, value)
        yield family


def _of_histograms(published: Distribution) -> Iterator[Metric]:
    rows = list(published.read())
    for start in range(0, max(1, len(rows)), HISTOGRAMS):
        family = HistogramMetricFamily(published.name, published.documentation, labels=published.labels)
        for values, counted in rows[start : start + HISTOGRAMS]:
            _check(published, values)
            family.add_metric(values, _buckets(counted), counted.sum)
        yield family


def _check(published: Published, values: Sequence[str]) -> None:
    """Raise ValueError unless each label has a value: the library would leave out the others."""
    if len(values) != len(published.labels):
        raise ValueError(f"{published.name} has {len(published.labels)} labels, found the values {values}")


def _buckets(counted: Histogram) -> list[tuple[str, float]]:
    """Upper bounds, in Go's format as CoreDNS has them (100, not 100.0), and the cumulative counts."""
    return list(zip(_edges(tuple(counted.bounds)), accumulate(counted.counts), strict=True))


@cache
def _edges(bounds: tuple[float, ...]) -> tuple[str, ...]:
    return (*(f"{bound:g}" for bound in bounds), "+Inf")


class Exposition:
    """All metrics of the process, for one scrape after another.

    They are those that `published` returns, called for each exposition, and those of the library's own collectors:
    process, Python and garbage collector.
    """

    def __init__(self, published: Callable[[], Iterable[Published]]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(PublishedCollector(published))
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def pieces(self, encode: Encode) -> Iterator[bytes]:
        """The octets of an exposition in pieces, which take less than a millisecond each to make.

        Families are read one after another as pieces are requested, so a caller may spread them over several turns of
        the event loop. The parts of a family come under one head.
        """
        end = encode(_Families(()))
        begun, head = "", b""
        for family in self._registry.collect():
            if family.name != begun:
                begun, head = family.name, encode(_Families((_without_samples(family),))).removesuffix(end)
                yield head
            if family.samples:
                yield encode(_Families((family,))).removeprefix(head).removesuffix(end)
            else:
                yield b""
        yield end


def _without_samples(family: Metric) -> Metric:
    return Metric(family.name, family.documentation, family.type)
