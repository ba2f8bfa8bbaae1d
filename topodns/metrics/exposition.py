"""Writes metric families in Prometheus's text format 0.0.4, line by line. Pure.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

import math
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final, Literal

from topodns.query.histogram import Histogram

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[str, ...]

_ESCAPED: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})
_ESCAPED_VALUE: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def gauge(name: str, documentation: str, labels: Labels, rows: Iterable[tuple[Labels, float]]) -> Iterator[str]:
    """The lines of a gauge. A row: the values of `labels`, in their order, and the sample's value."""
    yield from _head(name, documentation, "gauge")
    yield from _samples(name, labels, rows)


def counter(name: str, documentation: str, labels: Labels, rows: Iterable[tuple[Labels, float]]) -> Iterator[str]:
    """The lines of a counter; `name` without `_total`. Rows as of `gauge`."""
    name = f"{name}_total"
    yield from _head(name, documentation, "counter")
    yield from _samples(name, labels, rows)


def histogram(name: str, documentation: str, labels: Labels, rows: Iterable[tuple[Labels, Histogram]]) -> Iterator[str]:
    """The lines of a histogram. A row: the values of `labels`, in their order, and the counts."""
    yield from _head(name, documentation, "histogram")
    bucket_labels = (*labels, "le")
    for values, counted in rows:
        edges = [*(f"{bound:g}" for bound in counted.bounds), "+Inf"]  # in Go's format: 100, not 100.0
        counts = list(accumulate(counted.counts))
        yield from _samples(
            f"{name}_bucket",
            bucket_labels,
            (((*values, edge), count) for edge, count in zip(edges, counts, strict=True)),
        )
        yield from _samples(f"{name}_count", labels, [(values, counts[-1])])
        yield from _samples(f"{name}_sum", labels, [(values, counted.sum)])


def _head(name: str, documentation: str, kind: Literal["gauge", "counter", "histogram"]) -> Iterator[str]:
    yield f"# HELP {name} {documentation.translate(_ESCAPED)}\n"
    yield f"# TYPE {name} {kind}\n"


def _samples(name: str, labels: Labels, rows: Iterable[tuple[Labels, float]]) -> Iterator[str]:
    """Sample lines with labels sorted by name."""
    order = sorted(range(len(labels)), key=labels.__getitem__)
    for values, value in rows:
        if len(values) != len(labels):
            raise ValueError(f"{name} has {len(labels)} labels, found the values {values}")
        inside = ",".join([f'{labels[at]}="{values[at].translate(_ESCAPED_VALUE)}"' for at in order])
        yield f"{name}{{{inside}}} {_number(value)}\n" if inside else f"{name} {_number(value)}\n"


def _number(value: float) -> str:
    """A number in Go's syntax."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(float(value))
