"""Metric families as values whose samples are read at scrape time. No metric library: `metrics.exposition` has it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from topodns.query.histogram import Histogram


@dataclass(frozen=True, slots=True)
class Reading:
    """A gauge or counter. `name` without _total; `read`, called at scrape time, gives (label values, value) pairs.

    `adds_up`: whether the processes of `multisocket` report their sum; else only the first process reports it.
    """

    name: str
    documentation: str
    kind: Literal["gauge", "counter"]
    labels: tuple[str, ...]
    read: Callable[[], Iterable[tuple[tuple[str, ...], float]]]
    adds_up: bool = True


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram: `read`, called at scrape time, gives (label values, histogram) pairs."""

    name: str
    documentation: str
    labels: tuple[str, ...]
    read: Callable[[], Iterable[tuple[tuple[str, ...], Histogram]]]


Published = Reading | Distribution
"""A metric family, or a part of one: neighbours with the same name are one family in the exposition.

A part may have no samples: it marks a piece of work, after which the consumer may pause.
"""
