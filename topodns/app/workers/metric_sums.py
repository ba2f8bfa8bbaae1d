"""Metric families of the workers, and their sums with those of the first process."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Final, cast

from topodns.metrics.registry import Distribution, Published, Reading
from topodns.query.counters import QueryCounters, ReplyKind
from topodns.query.histogram import Histogram

Labels = tuple[str, ...]
Numbers = dict[Labels, float]
Histograms = dict[Labels, Histogram]

_MISSES: Final = "topodns_misses"
_SOURCES: Final = "topodns_unlocated_sources"


class Families:
    """The samples of metric families by name and label values."""

    def __init__(self) -> None:
        self.numbers: dict[str, Numbers] = {}
        self.histograms: dict[str, Histograms] = {}
        self._gauges: set[str] = set()

    def take(self, family: bytes) -> None:
        """Add the samples of one `family_octets`."""
        kind, name, rows = json.loads(family)
        if kind == "histogram":
            for labels, bounds, counts, total in rows:
                counted = Histogram(bounds)
                counted.counts, counted.sum = counts, total
                _add_histogram(self.histograms.setdefault(name, {}), tuple(labels), counted)
            return
        if kind == "gauge":
            self._gauges.add(name)
        numbers = self.numbers.setdefault(name, {})
        for labels, value in rows:
            numbers[tuple(labels)] = numbers.get(tuple(labels), 0) + value

    def add(self, other: "Families", gauges: bool = True) -> None:
        """Add the samples of other families; `gauges`: of gauges, too."""
        for name, found in other.numbers.items():
            if gauges or name not in other._gauges:
                numbers = self.numbers.setdefault(name, {})
                for labels, value in found.items():
                    numbers[labels] = numbers.get(labels, 0) + value
        for name, histograms in other.histograms.items():
            for labels, counted in histograms.items():
                _add_histogram(self.histograms.setdefault(name, {}), labels, counted)

    def missed(self) -> QueryCounters:
        """Counters with the misses by Service and the sources of unlocated clients, for the topology page."""
        counters = QueryCounters("", "", "")
        for (name, outcome), value in self.numbers.get(_MISSES, {}).items():
            _count(counters, value, missed=name, outcome=outcome)
        for (prefix,), value in self.numbers.get(_SOURCES, {}).items():
            _count(counters, value, prefix=prefix)
        return counters


def _count(counters: QueryCounters, value: float, missed: str = "", outcome: str = "", prefix: str = "") -> None:
    kind = ReplyKind(
        origin="",
        qtype="",
        rcode="",
        plugin="",
        dnssec_ok=False,
        outcome=outcome,
        topology_key="",
        query_bucket=0,
        response_bucket=0,
        missed=missed,
        prefix=prefix,
    )
    counters.cell(kind)[0] = int(value)


def _add_histogram(histograms: Histograms, labels: Labels, counted: Histogram) -> None:
    held = histograms.get(labels)
    if held is None or len(held.counts) != len(counted.counts):
        held = histograms[labels] = Histogram(counted.bounds)
    held.add(counted)


def family_octets(published: Published) -> bytes | None:
    """A family, or a part of one, for `Families.take`; None if it does not add up, or has no samples."""
    if isinstance(published, Distribution):
        rows = [(labels, list(each.bounds), each.counts, each.sum) for labels, each in published.read()]
        return json.dumps(("histogram", published.name, rows)).encode() if rows else None
    if not published.adds_up:
        return None
    numbers = list(published.read())
    return json.dumps((published.kind, published.name, numbers)).encode() if numbers else None


def totals(own: Iterable[Published], others: Families) -> Iterator[Published]:
    """The families of this process with the samples of `others` added.

    The parts of a family come as one, after a part without samples for each, at which the consumer may pause.
    """
    for name, group in groupby(own, attrgetter("name")):
        parts: list[Published] = []
        for part in group:
            parts.append(_fixed(part))
            yield _without_samples(part)
        first = parts[0]
        if isinstance(first, Distribution):
            yield _histogram_sums(cast("list[Distribution]", parts), others.histograms.get(name, {}))
        else:
            yield _number_sums(cast("list[Reading]", parts), others.numbers.get(name, {}) if first.adds_up else {})


def _fixed(part: Published) -> Published:
    """The part with the samples of now, whatever happens while the consumer pauses."""
    if isinstance(part, Distribution):
        histograms = [(labels, _copy(counted)) for labels, counted in part.read()]
        return replace(part, read=lambda: histograms)
    numbers = list(part.read())
    return replace(part, read=lambda: numbers)


def _copy(counted: Histogram) -> Histogram:
    made = Histogram(counted.bounds)
    made.add(counted)
    return made


def _without_samples(part: Published) -> Published:
    return replace(part, read=_no_histograms) if isinstance(part, Distribution) else replace(part, read=_no_numbers)


_no_histograms: Callable[[], Iterable[tuple[Labels, Histogram]]] = tuple
_no_numbers: Callable[[], Iterable[tuple[Labels, float]]] = tuple


def _number_sums(parts: list[Reading], added: Mapping[Labels, float]) -> Reading:
    sums: Numbers = dict(added)
    for part in parts:
        for labels, value in part.read():
            sums[labels] = sums.get(labels, 0) + value
    return replace(parts[0], read=sums.items)


def _histogram_sums(parts: list[Distribution], added: Mapping[Labels, Histogram]) -> Distribution:
    sums: Histograms = {}
    for labels, counted in added.items():
        _add_histogram(sums, labels, counted)
    for part in parts:
        for labels, counted in part.read():
            _add_histogram(sums, labels, counted)
    return replace(parts[0], read=sums.items)
