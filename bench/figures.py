"""Figures over rounds, and their table: median (min..max), the ratio to the plain UDP echo, the target."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median


@dataclass
class Series:
    """One figure, measured once in each round; `target` is printed beside it as it is."""

    title: str
    target: str = ""
    values: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{median(self.values):.2f} ({min(self.values):.2f}..{max(self.values):.2f})"

    def over(self, echo: "Series") -> str:
        """The median of the ratios to the plain echo's value in the same round. Both need a value of each round."""
        return f"{median(mine / its for mine, its in zip(self.values, echo.values, strict=True)):.1f}"


def table(head: str, series: Iterable[Series], echo: Series | None = None) -> str:
    """A line for each series that has values, under a head line; with `echo`, also its ratio to that series."""
    lines = [_line(head, "median (min..max)", "x echo" if echo else "", "target")]
    for one in series:
        if one.values:
            lines.append(_line(f"  {one.title}", str(one), one.over(echo) if echo else "", one.target))
    return "\n".join(lines)


def _line(title: str, figure: str, ratio: str, target: str) -> str:
    return f"{title:54}{figure:26}{ratio:8}{target}".rstrip()
