"""Metric families whose samples are collected at scrape time, and their lines in Prometheus's text format."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from topodns.metrics.exposition import counter, gauge, histogram


@dataclass(frozen=True, slots=True)
class Reading:
    """A gauge or counter. `name` without _total; `read`, called at scrape time, gives (label values, value) pairs."""

    name: str
    documentation: str
    kind: Literal["gauge", "counter"]
    labels: tuple[str, ...]
    read: Callable[[], Iterable[tuple[tuple[str, ...], float]]]


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram without labels: `read` gives the counts per bucket, the last for +Inf, and the sum."""

    name: str
    documentation: str
    bounds: tuple[float, ...]
    read: Callable[[], tuple[Sequence[float], float]]


@dataclass(frozen=True, slots=True)
class Distributions:
    """A histogram with labels: `read` gives label values, counts as in a Distribution, and the sum."""

    name: str
    documentation: str
    labels: tuple[str, ...]
    bounds: tuple[float, ...]
    read: Callable[[], Iterable[tuple[tuple[str, ...], Sequence[float], float]]]


Published = Reading | Distribution | Distributions


def reading_lines(reading: Published) -> Iterator[str]:
    if isinstance(reading, Distribution):
        slots, total = reading.read()
        return histogram(reading.name, reading.documentation, (), reading.bounds, [((), slots, total)])
    if isinstance(reading, Distributions):
        return histogram(reading.name, reading.documentation, reading.labels, reading.bounds, list(reading.read()))
    family = gauge if reading.kind == "gauge" else counter
    return family(reading.name, reading.documentation, reading.labels, list(reading.read()))


PACE: Final = 64  # cells between two empty lines, at which the consumer of the lines (`scrapes`) may pause
