"""The `view` directive."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """Which queries a server block takes: those for which every expression is true; all of them where there is none."""

    name: str  # CoreDNS's metric label `view`
    expressions: tuple[str, ...] = ()  # in the language of `resolve.view`
