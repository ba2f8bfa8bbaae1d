"""What was measured of one subject, line by line."""

from collections.abc import Iterator
from statistics import median
from typing import Final, NamedTuple

NEVER: Final = float("inf")


class Line(NamedTuple):
    """One of the sheet."""

    part: str
    title: str
    target: str = ""


class Figures:
    """Of each line the values of all rounds; or counts, which are added up; or a word. In the order of noting."""

    def __init__(self) -> None:
        self._values: dict[Line, list[float]] = {}
        self._counts: dict[Line, tuple[int, int]] = {}
        self._cells: dict[Line, str] = {}

    def note(self, line: Line, value: float | None) -> None:
        """None is never, or not while it was watched."""
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
        """Lines and what is printed of them."""
        yield from self._cells.items()


def _spread(values: list[float]) -> str:
    """min / median / max."""
    told = [_number(value) for value in (min(values), median(values), max(values))]
    return told[0] if len(set(told)) == 1 else " / ".join(told)


def _number(value: float) -> str:
    if value == NEVER:
        return "never"
    return f"{value:.2f}" if value < 100 and value != round(value) else f"{value:.0f}"
