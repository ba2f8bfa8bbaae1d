"""The table as a picture: for each load a line with a dot for each server, on a logarithmic scale. Plain SVG 1.1."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import Final, NamedTuple

from bench.compare.figures import Spread

_LEFT: Final = 400  # pixels, of the titles of the rows
_SCALE: Final = 560
_RIGHT: Final = 40
_TOP: Final = 60
_ROW: Final = 26
_BOTTOM: Final = 54
_RADIUS: Final = 5.5
_COLORS: Final = ("#767676", "#0b6bcb", "#d1490b", "#2e7d32", "#7b3fb5", "#9a6700", "#b3006e")
_STEPS: Final = (1, 2, 5)  # of each power of ten that have a line


class Line(NamedTuple):
    """A row of the plot: its title, and a figure for each server that has one."""

    title: str
    spreads: Mapping[str, Spread]


class _Axis(NamedTuple):
    """The powers of ten on which the scale begins and ends."""

    low: int
    high: int

    def place(self, value: float) -> float:
        return _LEFT + (log10(value) - self.low) / (self.high - self.low) * _SCALE

    def steps(self) -> Iterator[float]:
        for power in range(self.low, self.high):
            yield from (step * 10.0**power for step in _STEPS)
        yield 10.0**self.high


def svg(head: str, servers: Sequence[str], lines: Sequence[Line]) -> str:
    """The picture; its text is read by screen readers too. Raises ValueError where nothing was measured."""
    axis = _axis(lines)
    width, height = _LEFT + _SCALE + _RIGHT, _TOP + _ROW * len(lines) + _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="13">',
        f"<title>{escape(head)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *_legend(servers),
        *_scale(axis, height),
    ]
    for number, line in enumerate(lines):
        parts += _row(axis, line, servers, _TOP + _ROW * (number + 0.5))
    parts += [_text(_LEFT + _SCALE / 2, height - 10, head, "middle"), "</svg>"]
    return "\n".join(parts) + "\n"


def _axis(lines: Sequence[Line]) -> _Axis:
    values = [value for line in lines for spread in line.spreads.values() for value in spread if value > 0]
    if not values:
        raise ValueError("nothing was measured")
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return _Axis(low, max(high, low + 1))


def _legend(servers: Sequence[str]) -> Iterator[str]:
    at = 16.0
    for number, server in enumerate(servers):
        yield _dot(at, 24, number)
        yield _text(at + 12, 28, server)
        at += 36 + 7.5 * len(server)


def _scale(axis: _Axis, height: int) -> Iterator[str]:
    for value in axis.steps():
        at = axis.place(value)
        yield f'<line x1="{at:.1f}" y1="{_TOP}" x2="{at:.1f}" y2="{height - _BOTTOM}" stroke="#e3e3e3"/>'
        yield _text(at, height - _BOTTOM + 16, f"{value:g}", "middle")


def _row(axis: _Axis, line: Line, servers: Sequence[str], y: float) -> Iterator[str]:
    yield _text(_LEFT - 12, y + 4, line.title, "end")
    for number, server in enumerate(servers):
        spread = line.spreads.get(server)
        if spread is None:
            continue
        least, greatest = axis.place(spread.least), axis.place(spread.greatest)
        color = _COLORS[number % len(_COLORS)]
        yield f'<line x1="{least:.1f}" y1="{y:.1f}" x2="{greatest:.1f}" y2="{y:.1f}" stroke="{color}"/>'
        yield _dot(axis.place(spread.middle), y, number, f"{line.title}: {server} {spread.middle:.3g}")


def _dot(x: float, y: float, number: int, title: str = "") -> str:
    """A circle, or a square for every second server, so that servers differ not only in color."""
    color = _COLORS[number % len(_COLORS)]
    inside = f"<title>{escape(title)}</title>" if title else ""
    if number % 2:
        size = 2 * _RADIUS - 1
        corner = f'x="{x - size / 2:.1f}" y="{y - size / 2:.1f}" width="{size}" height="{size}"'
        return f'<rect {corner} fill="{color}">{inside}</rect>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS}" fill="{color}">{inside}</circle>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#1f1f1f">{escape(text)}</text>'
