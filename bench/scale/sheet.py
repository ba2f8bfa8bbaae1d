"""The figures of all servers side by side, each with its target."""

from collections.abc import Sequence
from dataclasses import dataclass, field

_TITLE, _FIGURE = 50, 28  # columns


@dataclass
class Sheet:
    """Lines in the order in which they were first written; a figure that is missing is a dash."""

    head: str
    servers: Sequence[str]
    _targets: dict[str, str] = field(default_factory=dict)
    _figures: dict[tuple[str, str], str] = field(default_factory=dict)

    def write(self, server: str, title: str, figure: object, target: str = "") -> None:
        self._targets.setdefault(title, target)
        self._figures[title, server] = str(figure)

    def __str__(self) -> str:
        lines = [_line(self.head, self.servers, "target")]
        for title, target in self._targets.items():
            figures = [self._figures.get((title, server), "-") for server in self.servers]
            lines.append(_line(f"  {title}", figures, target))
        return "\n".join(lines)


def _line(title: str, figures: Sequence[str], target: str) -> str:
    return f"{title:{_TITLE}}{''.join(f'{figure:{_FIGURE}}' for figure in figures)}{target}".rstrip()
