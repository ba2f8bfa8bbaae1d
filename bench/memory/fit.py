"""Least squares: the linear formula with the smallest deviations from the measurements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Sizes = Mapping[str, float]
"""Numbers of each thing that the formula counts, such as Nodes; a thing that is left out counts 0."""


@dataclass(frozen=True)
class Formula:
    """A linear formula: `base`, and for each thing its number times `each[thing]`."""

    base: float
    each: Mapping[str, float]

    def of(self, sizes: Sizes) -> float:
        return self.base + sum(each * sizes.get(name, 0.0) for name, each in self.each.items())


def fit(names: Sequence[str], measured: Sequence[tuple[Sizes, float]]) -> Formula:
    """The formula over these things with the least sum of squared residuals.

    Raises ValueError if the numbers of two things never vary independently.
    """
    rows = [[1.0, *(sizes.get(name, 0.0) for name in names)] for sizes, _ in measured]
    # Numbers are from tens to hundred thousands: each column is divided by its largest, so that no pivot is near 0.
    scales = [max(column) or 1.0 for column in zip(*rows, strict=True)]
    scaled = [[value / scale for value, scale in zip(row, scales, strict=True)] for row in rows]
    columns = list(zip(*scaled, strict=True))
    values = [value for _, value in measured]
    normal = [[_product(one, other) for other in columns] + [_product(one, values)] for one in columns]
    solved = [value / scale for value, scale in zip(_solved(normal), scales, strict=True)]
    return Formula(solved[0], dict(zip(names, solved[1:], strict=True)))


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def _solved(matrix: list[list[float]]) -> list[float]:
    """Gauss and Jordan's elimination of a square matrix with the right side as its last column."""
    for at in range(len(matrix)):
        best = max(range(at, len(matrix)), key=lambda row: abs(matrix[row][at]))
        matrix[at], matrix[best] = matrix[best], matrix[at]
        pivot = matrix[at][at]
        if abs(pivot) < 1e-9:
            raise ValueError("expected measurements that differ in each thing by itself")
        matrix[at] = [value / pivot for value in matrix[at]]
        for row in range(len(matrix)):
            if row != at:
                factor = matrix[row][at]
                matrix[row] = [value - factor * own for value, own in zip(matrix[row], matrix[at], strict=True)]
    return [row[-1] for row in matrix]
