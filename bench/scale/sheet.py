"""A table of figures: a line for each, a column for each server, and the target."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

_TITLE: Final = 60  # columns
_FIGURE: Final = 26


@dataclass
class Sheet:
    """The table as text. A line is identified by its part and title; lines are in the order in which they are written.

    A figure that was not written is a dash.
    """

    head: str
    servers: Sequence[str]
    _targets: dict[tuple[str, str], str] = field(default_factory=dict)
    _figures: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def write(self, server: str, part: str, title: str, figure: object, target: str = "") -> None:
        self._targets.setdefault((part, title), target)
        self._figures[part, title, server] = str(figure)

    def __str__(self) -> str:
        lines, last = [_line(self.head, self.servers, "target")], ""
        for (part, title), target in self._targets.items():
            figures = [self._figures.get((part, title, server), "-") for server in self.servers]
            lines.append(_line(f"  {part if part != last else '':31}{title}", figures, target))
            last = part
        return "\n".join(lines)


def _line(title: str, figures: Sequence[str], target: str) -> str:
    return f"{title:{_TITLE}}{''.join(f'{figure:{_FIGURE}} ' for figure in figures)}{target}".rstrip()
