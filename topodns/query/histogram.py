"""Histogram: counts of observed values by bucket, and their sum, as Prometheus defines it."""

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """Counts values in buckets with these upper bounds (inclusive, ascending), and above the last one."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)  # by bucket, not cumulative; the last is +Inf
        self.sum: float = 0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def observe_mean(self, times: int, total: float) -> None:
        """Count `times` values that are known by their sum alone (`times` is not 0): all in the bucket of the mean."""
        self.counts[bisect_left(self.bounds, total / times)] += times
        self.sum += total

    def count(self) -> int:
        """The number of values."""
        return sum(self.counts)

    def add(self, other: "Histogram") -> None:
        """Add the values of a histogram with the same bounds."""
        self.counts = [a + b for a, b in zip(self.counts, other.counts, strict=True)]
        self.sum += other.sum
