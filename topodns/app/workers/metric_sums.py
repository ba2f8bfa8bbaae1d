"""Metric families of the workers, and their sums with those of the first process."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, cast

from topodns.app.workers.messages import FamilySamples
from topodns.metrics.registry import Distribution, Published
from topodns.query.counters import QueryCounters, ReplyKind
from topodns.query.histogram import Histogram

Labels = tuple[str, ...]
Samples = dict[Labels, float | Histogram]

_MISSES: Final = "topodns_misses"
_SOURCES: Final = "topodns_unlocated_sources"
_NO_KIND: Final = ReplyKind(
    origin="",
    qtype="",
    rcode="",
    plugin="",
    dnssec_ok=False,
    outcome="",
    topology_key="",
    query_bucket=0,
    response_bucket=0,
)


class Families:
    """The samples of metric families by name and label values."""

    def __init__(self) -> None:
        self.samples: dict[str, Samples] = {}
        self._gauges: set[str] = set()

    def take(self, family: FamilySamples) -> None:
        """Add the samples of one `family_samples`."""
        if family.is_gauge:
            self._gauges.add(family.name)
        self._add(family.name, ((labels, _read(value)) for labels, value in family.samples))

    def add(self, other: "Families", gauges: bool = True) -> None:
        """Add the samples of other families; `gauges`: of gauges, too."""
        for name, samples in other.samples.items():
            if gauges or name not in other._gauges:
                self._add(name, samples.items())

    def of(self, name: str) -> Samples:
        """The samples of one family; none if it is not there."""
        return self.samples.get(name, {})

    def numbers(self, name: str) -> Iterator[tuple[Labels, float]]:
        """The samples of one family that is no histogram; none if it is not there."""
        return ((labels, value) for labels, value in self.of(name).items() if not isinstance(value, Histogram))

    def missed(self) -> QueryCounters:
        """Counters with the misses by Service and the sources of unlocated clients, for the topology page."""
        counters = QueryCounters("", "", "")
        for (missed, outcome), times in self.numbers(_MISSES):
            counters.cell(_NO_KIND._replace(missed=missed, outcome=outcome))[0] = int(times)
        for (prefix,), times in self.numbers(_SOURCES):
            counters.cell(_NO_KIND._replace(prefix=prefix))[0] = int(times)
        return counters

    def _add(self, name: str, samples: Iterable[tuple[Labels, float | Histogram]]) -> None:
        _add(self.samples.setdefault(name, {}), samples)


def _add(sums: Samples, samples: Iterable[tuple[Labels, float | Histogram]]) -> None:
    for labels, value in samples:
        held = sums.get(labels)
        if not isinstance(value, Histogram):
            sums[labels] = value if held is None or isinstance(held, Histogram) else held + value
            continue
        if not isinstance(held, Histogram) or len(held.counts) != len(value.counts):
            held = sums[labels] = Histogram(value.bounds)
        held.add(value)


def _read(value: float | tuple[list[float], list[int], float]) -> float | Histogram:
    if not isinstance(value, tuple):
        return value
    bounds, counts, total = value
    counted = Histogram(bounds)
    counted.counts, counted.sum = counts, total
    return counted


def family_samples(published: Published) -> FamilySamples | None:
    """A family, or a part of one, for `Families.take`; None if it does not add up, or has no samples."""
    if isinstance(published, Distribution):
        found = [(labels, (list(each.bounds), each.counts, each.sum)) for labels, each in published.read()]
        return FamilySamples(published.name, False, [*found]) if found else None
    numbers = list(published.read()) if published.adds_up else []
    return FamilySamples(published.name, published.kind == "gauge", [*numbers]) if numbers else None


def totals(own: Iterable[Published], others: Families) -> Iterator[Published]:
    """The families of this process with the samples of `others` added.

    The parts of a family come as one, after a part without samples for each, at which the consumer may pause. Their
    samples are those of the time when the part comes.
    """
    for _, group in groupby(own, attrgetter("name")):
        sums: Samples = {}
        for part in group:
            _add(sums, part.read())
            yield _with(part, ())
        if isinstance(part, Distribution) or part.adds_up:
            _add(sums, others.of(part.name).items())
        yield _with(part, sums.items())


def _with(part: Published, samples: Collection[Any]) -> Published:
    """The part with these samples, which are of its sort."""
    changed: Published = replace(cast(Any, part), read=lambda: samples)
    return changed
