"""Metric families whose samples are collected at scrape time, and their lines in Prometheus's text format."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from topodns.metrics.exposition import counter, gauge, histogram
from topodns.query.histogram import Histogram


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
    """A histogram: `read`, called at scrape time, gives (label values, histogram) pairs."""

    name: str
    documentation: str
    labels: tuple[str, ...]
    read: Callable[[], Iterable[tuple[tuple[str, ...], Histogram]]]


Published = Reading | Distribution


def reading_lines(reading: Published) -> Iterator[str]:
    if isinstance(reading, Distribution):
        return histogram(reading.name, reading.documentation, reading.labels, list(reading.read()))
    family = gauge if reading.kind == "gauge" else counter
    return family(reading.name, reading.documentation, reading.labels, list(reading.read()))


PACE: Final = 64  # cells between two empty lines, at which the consumer of the lines (`scrapes`) may pause
