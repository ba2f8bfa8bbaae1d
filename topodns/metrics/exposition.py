"""Prometheus's text format 0.0.4, line by line: what a family is called, and its samples. Pure.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, Literal

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[str, ...]

_ESCAPED: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})
_ESCAPED_VALUE: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def gauge(name: str, documentation: str, labels: Labels, rows: Iterable[tuple[Labels, float]]) -> Iterator[str]:
    """The lines of a family whose values go up and down. A row: the values of `labels`, in their order, and its own."""
    yield from _head(name, documentation, "gauge")
    for values, value in rows:
        yield _sample(name, zip(labels, values, strict=True), value)


def counter(name: str, documentation: str, labels: Labels, rows: Iterable[tuple[Labels, float]]) -> Iterator[str]:
    """The same of one that only grows; `name` is without its `_total`."""
    name = f"{name}_total"
    yield from _head(name, documentation, "counter")
    for values, value in rows:
        yield _sample(name, zip(labels, values, strict=True), value)


def histogram(
    name: str,
    documentation: str,
    labels: Labels,
    bounds: Sequence[float],
    rows: Iterable[tuple[Labels, Sequence[float], float]],
) -> Iterator[str]:
    """The same of histograms: label values, the counts per bucket, the last one beyond all `bounds`, and the sum."""
    yield from _head(name, documentation, "histogram")
    edges = [*(f"{bound:g}" for bound in bounds), "+Inf"]  # as Go prints them: 100, not 100.0
    for values, slots, total in rows:
        named = list(zip(labels, values, strict=True))
        counts = list(accumulate(slots))
        for edge, count in zip(edges, counts, strict=True):
            yield _sample(f"{name}_bucket", [*named, ("le", edge)], count)
        yield _sample(f"{name}_count", named, counts[-1])
        yield _sample(f"{name}_sum", named, total)


def _head(name: str, documentation: str, kind: Literal["gauge", "counter", "histogram"]) -> Iterator[str]:
    yield f"# HELP {name} {documentation.translate(_ESCAPED)}\n"
    yield f"# TYPE {name} {kind}\n"


def _sample(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    inside = ",".join(f'{label}="{text.translate(_ESCAPED_VALUE)}"' for label, text in sorted(labels))
    return f"{name}{{{inside}}} {_number(value)}\n" if inside else f"{name} {_number(value)}\n"


def _number(value: float) -> str:
    """As Go reads it."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(float(value))
