"""Requests to the fake API server with their times: for assertions about how often a client may ask."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. `at` is in seconds of the loop's monotonic clock; `verb` as RBAC says it."""

    at: float
    verb: str
    resource: str
    namespace: str
    name: str
    query: Mapping[str, str]
    headers: Mapping[str, str]


class RequestLog:
    def __init__(self) -> None:
        self.all: list[Asked] = []

    def add(self, asked: Asked) -> None:
        self.all.append(asked)

    def of(self, resource: str = "", verb: str = "") -> list[Asked]:
        """Those for this resource with this verb, "" for any, in the order in which they came."""
        return [one for one in self.all if resource in ("", one.resource) and verb in ("", one.verb)]

    def count(self, resource: str = "", verb: str = "") -> int:
        return len(self.of(resource, verb))

    def times(self, resource: str = "", verb: str = "") -> list[float]:
        return [one.at for one in self.of(resource, verb)]

    def clear(self) -> None:
        self.all.clear()
