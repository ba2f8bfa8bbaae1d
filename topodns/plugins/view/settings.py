"""The settings of a `view` directive."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """A server block takes the queries for which every expression is true; without expressions, all queries."""

    name: str  # CoreDNS's metric label `view`
    expressions: tuple[str, ...] = ()  # in the language of `plugins.view`
