"""The figures in the tree, `figures.json`: calls by path and version of Python; comparison with a run.

Another version of Python makes other calls for the same code (3.12 none for a comprehension), so each has its own.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

FIGURES: Final = Path(__file__).with_name("figures.json")
TOLERANCE: Final = 0.10  # of a figure; a path that takes more calls fails

Figures = Mapping[str, float]
"""Calls of a query or a change, by path."""


def read_figures(version: str, file: Path = FIGURES) -> Figures:
    """The figures of this version of Python; empty if it has none."""
    figures: dict[str, dict[str, float]] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return figures.get(version, {})


def write_figures(version: str, counted: Figures, file: Path = FIGURES) -> None:
    """Replace the figures of this version of Python; those of others stay."""
    figures = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    figures[version] = dict(counted)
    file.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def problems(counted: Figures, figures: Figures) -> Iterator[str]:
    """A line for each path that takes over 10 % more calls than its figure, and for each without one of the two."""
    for path, calls in counted.items():
        figure = figures.get(path)
        if figure is None:
            yield f"{path}: {calls} calls, and no figure: add it with --write"
        elif calls > figure * (1 + TOLERANCE):
            yield f"{path}: {calls} calls, {_change(calls, figure)}; the figure is {figure}"
    for path in figures.keys() - counted.keys():
        yield f"{path}: a figure, and no such path: remove it with --write"


def gains(counted: Figures, figures: Figures) -> Iterator[str]:
    """A line for each path that takes over 10 % fewer calls than its figure, which would hide a later loss."""
    for path, calls in counted.items():
        figure = figures.get(path)
        if figure is not None and calls < figure * (1 - TOLERANCE):
            yield f"{path}: {calls} calls, {_change(calls, figure)}; renew the figure {figure} with --write"


def _change(calls: float, figure: float) -> str:
    share = calls / figure - 1
    return f"{abs(share):.0%} {'more' if share > 0 else 'fewer'}"
