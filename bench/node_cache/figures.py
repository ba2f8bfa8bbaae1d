"""The figures of one subject, by line of the printed table."""

from collections.abc import Iterator
from statistics import median
from typing import Final, NamedTuple

NEVER: Final = float("inf")


class Line(NamedTuple):
    """A line of the printed table. `target` is printed as it is."""

    part: str
    title: str
    target: str = ""


class Figures:
    """By line, in the order of the first call: the values of all rounds, or counts that are added up, or a word."""

    def __init__(self) -> None:
        self._values: dict[Line, list[float]] = {}
        self._counts: dict[Line, tuple[int, int]] = {}
        self._cells: dict[Line, str] = {}

    def note(self, line: Line, value: float | None) -> None:
        """Add the value of one round; None: the event did not occur while it was waited for, printed as "never"."""
        values = self._values.setdefault(line, [])
        values.append(NEVER if value is None else value)
        self._cells[line] = _spread(values)

    def count(self, line: Line, some: int, of: int) -> None:
        before, total = self._counts.get(line, (0, 0))
        self._counts[line] = before + some, total + of
        self._cells[line] = f"{before + some:,} of {total + of:,}"

    def say(self, line: Line, word: str) -> None:
        self._cells[line] = word

    def items(self) -> Iterator[tuple[Line, str]]:
        """Each line with its printed figure."""
        yield from self._cells.items()


def _spread(values: list[float]) -> str:
    """The values as "min / median / max", or as one number if these are equal."""
    texts = [_number(value) for value in (min(values), median(values), max(values))]
    return texts[0] if len(set(texts)) == 1 else " / ".join(texts)


def _number(value: float) -> str:
    if value == NEVER:
        return "never"
    return f"{value:.2f}" if value < 100 and value != round(value) else f"{value:.0f}"
